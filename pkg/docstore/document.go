package docstore

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/idplatform/idplatform/pkg/clock"
)

// Meta holds the members that every document has. Embed it as the first member.
type Meta struct {
	ID           string     `json:"id" readOnly:"true" doc:"Given by the platform; never used again" example:"1048577"`
	TenantID     string     `json:"tenant_id" readOnly:"true" doc:"The tenant that it belongs to" example:"acme"`
	Version      int64      `json:"version" readOnly:"true" doc:"Grows by one with every change; If-Match takes it" example:"1"`
	TimeCreated  clock.Time `json:"time_created" readOnly:"true" doc:"When it was created" example:"2026-01-31T09:30:00.000Z"`
	TimeModified clock.Time `json:"time_modified" readOnly:"true" doc:"When it last changed" example:"2026-01-31T09:30:00.000Z"`

	counts int64 // see Stamp
}

func (m *Meta) meta() *Meta { return m }

func (m *Meta) stamp() Stamp { return Stamp{m.Version, m.counts} }

type document interface{ meta() *Meta }

func (c *collection) docs(r Reader, rows []Row) ([]anyDoc, error) {
	docs := make([]anyDoc, len(rows))
	for i := range rows {
		d, err := c.doc(r.store(), &rows[i])
		if err != nil {
			return nil, err
		}
		docs[i] = d
	}
	return docs, nil
}

// doc makes the Doc of a row, after Schema.ApplyDue.
func (c *collection) doc(s *Store, row *Row) (anyDoc, error) {
	d := anyDoc{ID: row.ID, Stamp: row.Stamp, body: row.Data, engine: s.engine, of: c}
	var now clock.Time
	due := row.Due != 0 && c.applyDue != nil
	if due { // reading the clock for every document of a list would cost as much as all else
		now = s.clock.Now()
		due = row.Due <= now.Millis()
	}
	if !due {
		d.encoded = s.engine.DataIsJSON()
		return d, nil
	}
	v, err := d.decoded()
	if err != nil {
		return d, err
	}
	c.applyDue(v, now)
	d.body = nil
	return d.with(v)
}

func (c *collection) written(v any, e *Entry, before []byte) anyDoc {
	return anyDoc{ID: e.ID, Stamp: e.Stamp, value: c.clone(v), body: e.JSON, encoded: e.JSON != nil,
		was: &former{body: before}, of: c, written: true}
}

// Doc is a document that was read or written. It holds the JSON form; the value is decoded when it is first asked for.
// A Doc is not safe for concurrent use. It is small, because a list has many.
type Doc[T any] struct{ anyDoc }

// anyDoc is a Doc whose type its collection knows.
type anyDoc struct {
	ID string
	Stamp

	of      *collection
	value   any     // a pointer, or nil if it is not decoded yet
	body    []byte  // the JSON form if encoded; otherwise the engine's own form, or nil if only value is known
	was     *former // nil unless the document was written
	engine  Engine
	encoded bool
	written bool
}

// former is the JSON form of a document before it was written.
type former struct {
	body []byte        // if it is known
	make func() []byte // makes body; nil if body is known or the document is new
}

// Value returns the decoded document. Changes to it do not change what is stored.
func (d *Doc[T]) Value() (*T, error) {
	v, err := d.decoded()
	if err != nil {
		return nil, err
	}
	return v.(*T), nil
}

func (d *anyDoc) decoded() (any, error) {
	if d.value == nil {
		v := d.of.def.Blank()
		if err := d.engine.Decode(d.body, v); err != nil {
			return nil, fmt.Errorf("docstore: decode %s: %w", d.ID, err)
		}
		metaOf(v).counts = d.Counts
		d.value = v
	}
	return d.value, nil
}

// JSON returns the document's JSON form. The caller must not change the bytes.
func (d *anyDoc) JSON() ([]byte, error) {
	if d.encoded {
		return d.body, nil
	}
	v, err := d.decoded()
	if err != nil {
		return nil, err
	}
	body, err := encode(v)
	if err != nil {
		return nil, err
	}
	d.body, d.encoded = body, true
	return body, nil
}

func (d anyDoc) with(v any) (anyDoc, error) {
	d.value = v
	_, err := d.JSON()
	return d, err
}

// Previous returns the members that this write changed, with their former values, without version and time_modified. It
// is nil for an inserted document and for one that was not changed.
func (d *anyDoc) Previous() map[string]json.RawMessage {
	was := d.was
	if was == nil {
		return nil
	}
	if was.make != nil {
		was.body, was.make = was.make(), nil
	}
	if was.body == nil || string(was.body) == string(d.body) {
		return nil
	}
	return difference(was.body, d.body)
}

// Changed reports whether the write changed the document. It is true for an inserted and for a deleted one.
func (d *anyDoc) Changed() bool {
	return d.was == nil || d.was.make != nil || d.was.body == nil || string(d.was.body) != string(d.body)
}

// Written reports whether this transaction inserted, replaced or deleted the document. Only then is the revision new,
// so that no event about it exists yet.
func (d *anyDoc) Written() bool { return d.written }

// Tag identifies the document's content: it changes whenever any member does. It is the version; if the type has
// Counts, a dash and a number that stands for them follow.
func (d *anyDoc) Tag() string {
	tag := strconv.FormatInt(d.Version, 10)
	if d.of.counts != nil {
		tag += "-" + strconv.FormatInt(d.Counts, 10)
	}
	return tag
}

// Stored is the document's JSON form and Tag, for code that does not know the document's type.
func (d anyDoc) Stored() (body []byte, tag string, err error) {
	body, err = d.JSON()
	return body, d.Tag(), err
}

// Deleted is the answer to the deletion of one document.
type Deleted struct {
	ID string `json:"id" doc:"Of the record that was deleted" example:"1048577"`
}

// Batch is the answer to a batch: its records in the order of the items.
type Batch struct {
	Items []json.RawMessage `json:"items"`
}

// BatchOf makes a Batch of the documents that a batch wrote.
func BatchOf[D stored](docs []D) (Batch, error) {
	b := Batch{make([]json.RawMessage, len(docs))}
	for i, doc := range docs {
		var err error
		if b.Items[i], _, err = doc.Stored(); err != nil {
			return Batch{}, err
		}
	}
	return b, nil
}

// stored is implemented by Doc[T] for every T.
type stored interface {
	Stored() (body []byte, tag string, err error)
}
