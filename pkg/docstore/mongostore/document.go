package mongostore

import (
	"bytes"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Members of stored documents: those of Meta that the engine reads, and those that it adds.
const (
	fieldKey     = "_id"
	fieldID      = "id"
	fieldTenant  = "tenant_id"
	fieldVersion = "version"
	fieldCounts  = "_counts" // only if not 0
	fieldDue     = "_due"
	fieldEntries = "_ix"
	fieldReads   = "_reads"
)

// maxDocument is MongoDB's limit for one document, in bytes.
const maxDocument = 16 << 20

// tenantInKey escapes a tenant so that it cannot contain the separator of keys.
var tenantInKey = strings.NewReplacer("%", "%25", "/", "%2F")

func keyPrefix(tenant string) string { return tenantInKey.Replace(tenant) + "/" }

func key(tenant, id string) string { return keyPrefix(tenant) + id }

func keys(tenant string, ids []string) bson.A {
	prefix := keyPrefix(tenant)
	list := make(bson.A, len(ids))
	for i, id := range ids {
		list[i] = prefix + id
	}
	return list
}

// stored makes the document that is stored for e. It returns apperr.TooLarge if the document is too large for MongoDB.
func stored(def *docstore.Def, e *docstore.Entry) (bson.Raw, error) {
	record, err := encode(e.Doc)
	if err != nil {
		return nil, fmt.Errorf("mongostore: encode %s: %w", def.Name, err)
	}
	members, err := record.Elements()
	if err != nil {
		return nil, fmt.Errorf("mongostore: encode %s: %w", def.Name, err)
	}
	doc := make(bson.D, 0, len(members)+4)
	doc = append(doc, bson.E{Key: fieldKey, Value: key(e.Tenant, e.ID)})
	for _, m := range members {
		name := m.Key()
		if strings.HasPrefix(name, "_") {
			return nil, fmt.Errorf("mongostore: %s has a member %s; such names are reserved for the engine", def.Name,
				name)
		}
		doc = append(doc, bson.E{Key: name, Value: m.Value()})
	}
	if e.Counts != 0 {
		doc = append(doc, bson.E{Key: fieldCounts, Value: e.Counts})
	}
	if e.Due != 0 {
		doc = append(doc, bson.E{Key: fieldDue, Value: bson.DateTime(e.Due)})
	}
	doc = append(doc, bson.E{Key: fieldEntries, Value: entries(def, e)})
	raw, err := bson.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("mongostore: encode %s: %w", def.Name, err)
	}
	if len(raw) > maxDocument {
		return nil, apperr.New(apperr.TooLarge,
			"the record would take %d bytes in the store; the limit is %d", len(raw), maxDocument)
	}
	return raw, nil
}

// entries makes the _ix member of e's document.
func entries(def *docstore.Def, e *docstore.Entry) bson.D {
	ix := make(bson.D, 0, len(def.Indexes))
	for i := range def.Indexes {
		d := &def.Indexes[i]
		if d.Many {
			list := bson.A{} // never null: a list index has only arrays
			for _, text := range e.Lists[d.Slot] {
				list = append(list, text)
			}
			ix = append(ix, bson.E{Key: d.Name, Value: list})
		} else {
			ix = append(ix, bson.E{Key: d.Name, Value: scalar(d, e.Keys[d.Slot])})
		}
	}
	return ix
}

// scalar returns v in the form that the index d holds.
func scalar(d *docstore.IndexDef, v docstore.Value) any {
	if d.Number {
		return v.Num
	}
	return v.Text
}

// row reads a stored document. sort are the indexes whose values Row.Sort gets.
func row(def *docstore.Def, tenant string, raw bson.Raw, sort []docstore.Order, bare bool) (docstore.Row, error) {
	stored, ok := raw.Lookup(fieldKey).StringValueOK()
	id, inTenant := strings.CutPrefix(stored, keyPrefix(tenant))
	if !ok || !inTenant {
		return docstore.Row{}, fmt.Errorf("mongostore: a document of %s has another tenant's key", def.Name)
	}
	r := docstore.Row{ID: id}
	if !bare {
		r.Data = raw
		if r.Version, ok = raw.Lookup(fieldVersion).AsInt64OK(); !ok {
			return r, fmt.Errorf("mongostore: document %s of %s has no version", id, def.Name)
		}
		r.Counts = countsOf(raw)
		r.Due, _ = raw.Lookup(fieldDue).DateTimeOK() // absent is 0, which means never
	}
	entries, _ := raw.Lookup(fieldEntries).DocumentOK() // Lookup of a longer path panics if this is not a document
	for _, o := range sort {
		value, d := entries.Lookup(o.Index), def.Index(o.Index)
		var v docstore.Value
		if d.Number {
			v.Num, ok = value.AsInt64OK()
		} else {
			v.Text, ok = value.StringValueOK()
		}
		if !ok {
			return r, fmt.Errorf("mongostore: document %s of %s has no entry for %s", id, def.Name, o.Index)
		}
		r.Sort = append(r.Sort, v)
	}
	return r, nil
}

func countsOf(raw bson.Raw) int64 {
	n, _ := raw.Lookup(fieldCounts).AsInt64OK()
	return n
}

func encode(v any) (bson.Raw, error) {
	var b bytes.Buffer
	encoder := bson.NewEncoder(bson.NewDocumentWriter(&b))
	encoder.SetRegistry(registry)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Decode reads Row.Data into a *T.
func (*Engine) Decode(data []byte, into any) error {
	decoder := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(data)))
	decoder.SetRegistry(registry)
	return decoder.Decode(into)
}

// DataIsJSON returns false: rows are BSON.
func (*Engine) DataIsJSON() bool { return false }
