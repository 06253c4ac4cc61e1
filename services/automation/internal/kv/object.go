package kv

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
)

// Object is an object record: what the API shows, without the value if that is large.
type Object struct {
	docstore.Meta
	Bucket      string     `json:"bucket"`
	Key         string     `json:"key"`
	ContentType string     `json:"content_type"`
	Size        int64      `json:"size"` // of the value, in bytes
	TimeExpires clock.Time `json:"time_expires"`
	Kept        int64      `json:"kept_versions"` // how many former states are kept

	// Value is stored here if it has at most inline bytes, so that one read finds it, otherwise in values, so that
	// lists of keys do not read it. It is the last member: see recordOf.
	Value json.RawMessage `json:"value,omitempty"`
}

const (
	inline     = 16 << 10
	maxKey     = 1024 // bytes
	maxContent = 128  // characters of a content type
)

// value is a value that is larger than inline, of an object or of one of its kept versions.
type value struct {
	docstore.Meta                 // the id is that of the object or version
	Of            int64           `json:"of"` // the object's version
	Value         json.RawMessage `json:"value"`
}

const (
	byKey    = "key"
	byExpiry = "time_expires"
)

var objects = docstore.Define(docstore.Schema[Object]{
	Name: "kv_objects", Noun: "object",
	Sortable: []string{byKey},
	Indexes: []docstore.Index[Object]{
		docstore.Unique(docstore.ByText(byKey, func(o *Object) string { return place(o.Bucket, o.Key) }), "key"),
		docstore.ByNumber(byExpiry, func(o *Object) docstore.Value { return docstore.Moment(o.TimeExpires) }),
	},
	Due: func(o *Object) clock.Time { return o.TimeExpires },
})

var values = docstore.Define(docstore.Schema[value]{Name: "kv_values", Noun: "value", Part: true})

// place is where an object is among all of the tenant. Names of buckets have no slash.
func place(bucket, key string) string { return bucket + "/" + key }

// within selects a bucket's objects whose keys begin with prefix.
func within(bucket, prefix string) docstore.Filter {
	return docstore.Prefix(byKey, place(bucket, prefix))
}

// alive selects objects that have not expired. Outside is a form that engines leave out while nothing has expired.
func alive(f docstore.Filter, now clock.Time) docstore.Filter {
	others := docstore.Outside(byExpiry, docstore.Number(0), docstore.Number(now.Millis()+1))
	return docstore.And(f, docstore.Moving(others))
}

func (o *Object) expired(now clock.Time) bool {
	return !o.TimeExpires.IsZero() && !o.TimeExpires.After(now)
}

// Draft is what clients set of an object.
type Draft struct {
	Value       json.RawMessage `json:"value"`
	ContentType string          `json:"content_type"`
	TTLSeconds  *int64          `json:"ttl_seconds"` // nil means as the bucket says, 0 forever
}

// check fills in what is absent.
func (d *Draft) check(key string) error {
	var faults apperr.Faults
	checkKey(&faults, key)
	var compact bytes.Buffer
	if err := json.Compact(&compact, d.Value); err != nil {
		faults.Add("value", "must be JSON")
	}
	d.Value = compact.Bytes()
	if d.ContentType == "" {
		d.ContentType = "application/json"
	}
	faults.Text("content_type", d.ContentType, maxContent)
	faults.Check(d.TTLSeconds == nil || *d.TTLSeconds >= 0 && *d.TTLSeconds <= maxTTL, "ttl_seconds",
		"must lie in 0…%d", maxTTL)
	return faults.Err()
}

// historyTail ends the path of an object's history. A key that ends so could not be told from it.
const historyTail = "/history"

// checkKey accepts what can be the end of a path, whoever normalizes it on the way.
func checkKey(faults *apperr.Faults, key string) {
	faults.Check(key != "" && len(key) <= maxKey, "key", "must have 1…%d bytes", maxKey)
	faults.Check(utf8.ValidString(key) && !strings.ContainsFunc(key, unicode.IsControl), "key",
		"must not have control characters")
	segments := strings.Split(key, "/")
	faults.Check(key == "" || !slices.ContainsFunc(segments, func(s string) bool {
		return s == "" || s == "." || s == ".."
	}), "key", "must not have empty segments, . or .. between slashes")
	faults.Check(!strings.Contains(key, `\`), "key", `must not have \`)
	faults.Check(!strings.HasSuffix(key, historyTail), "key", "must not end in %s", historyTail)
}

// set changes an object to a draft, at a time, under a bucket's settings. The error is apperr.InvalidParameters.
func (o *Object) set(d Draft, now clock.Time, in Settings) error {
	if size := int64(len(d.Value)); size > in.MaxObjectBytes {
		return apperr.Invalid("value", "must have at most %d bytes in this bucket", in.MaxObjectBytes)
	}
	ttl := in.TTLSeconds
	if d.TTLSeconds != nil {
		ttl = *d.TTLSeconds
	}
	o.Value, o.Size, o.ContentType, o.TimeExpires = d.Value, int64(len(d.Value)), d.ContentType, clock.Time{}
	if ttl > 0 {
		o.TimeExpires = now.Add(time.Duration(ttl) * time.Second)
	}
	return nil
}

// Record is an object with its value, in its JSON form.
type Record struct {
	JSON []byte
	Tag  string
}

// Stored makes a Record what an Idempotency-Key keeps.
func (r Record) Stored() (body []byte, tag string, err error) { return r.JSON, r.Tag, nil }

// recordOf makes the Record of a document. large is the value if that is stored apart.
func recordOf(doc *docstore.Doc[Object], large json.RawMessage) (Record, error) {
	body, err := doc.JSON()
	if err != nil || large == nil {
		return Record{body, doc.Tag()}, err
	}
	whole := slices.Concat(bytes.TrimSuffix(body, []byte("}")), []byte(`,"value":`), large, []byte("}"))
	return Record{whole, doc.Tag()}, nil
}

// valueMember is where the value begins in an object's JSON form. The members before it are numbers and strings, and no
// string has this text: its quotes are escaped.
var valueMember = []byte(`,"value":`)

// isPlain reports whether an object in its JSON form never expires and has its value, without decoding it.
func isPlain(body []byte) bool {
	head, _, whole := bytes.Cut(body, valueMember)
	return whole && bytes.Contains(head, []byte(`,"time_expires":null`))
}

// bare returns the JSON form of an object without its value.
func bare(doc *docstore.Doc[Object]) ([]byte, error) {
	body, err := doc.JSON()
	if head, _, found := bytes.Cut(body, valueMember); found {
		body = append(slices.Clip(head), '}')
	}
	return body, err
}

// encode makes JSON in the same form as the store does: without HTML escapes, which would change values.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// tellObject tells a change of an object. Events have no values: those can be large and confidential.
func tellObject(ctx context.Context, tx *docstore.Tx, action string, doc *docstore.Doc[Object]) error {
	record, err := bare(doc)
	if err != nil {
		return err
	}
	previous := doc.Previous()
	delete(previous, "value")
	return outbox.Append(ctx, tx, outbox.Event{
		Entity: "kv_object", Action: action, Source: "/kv/buckets/objects", Subject: doc.ID, Revision: doc.Revision(),
		Record: record, Previous: previous,
	})
}
