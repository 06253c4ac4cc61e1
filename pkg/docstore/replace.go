package docstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/idplatform/idplatform/pkg/clock"
)

// mode says which number of the stamp a replace increments, and whether it compares the document with its loaded form.
type mode int

const (
	ifChanged  mode = iota // compares; does not write an unchanged document
	inAnyCase              // compares; writes an unchanged document at the same version
	newVersion             // does not compare; writes the next version
	newCounts              // does not compare; writes at the same version
)

// replace is Replace, Revise, Touch and Recount; how says which. It changes v's Meta to that of the stored document.
func (c *collection) replace(ctx context.Context, tx *Tx, v any, how mode) (anyDoc, error) {
	m := metaOf(v)
	old, ok := tx.loaded[loadedKey{c.def.Name, m.ID}]
	if !ok {
		return anyDoc{}, fmt.Errorf("docstore: %s was not loaded in this transaction", c.def.Name)
	}
	if how != newCounts { // otherwise no sealed member has changed
		former := func() (any, error) {
			was, _, err := c.former(tx, old)
			return was, err
		}
		if changed, err := c.seal(ctx, tx, v, former); err != nil {
			return anyDoc{}, err
		} else if changed {
			how = newVersion
		}
	}
	var body, before []byte
	var err error
	change := ofContent
	if how != newVersion {
		if body, err = c.encode(v); err != nil {
			return anyDoc{}, err
		}
		if how == newCounts {
			change = ofCounts
		} else if before, change, err = c.compare(tx, old, v, body); err != nil {
			return anyDoc{}, err
		}
	}
	if change == noChange && how == ifChanged {
		d := c.written(v, &Entry{ID: m.ID, Stamp: m.stamp(), JSON: body}, before)
		d.written = false
		return d, nil
	}
	e, err := c.store(ctx, tx, v, body, change)
	if err != nil {
		return anyDoc{}, err
	}
	d := c.written(v, e, before)
	if how == newVersion {
		d.was.make = func() []byte {
			_, before, _ := c.former(tx, old) // it cannot fail, because Load has decoded the same form
			return before
		}
	}
	return d, nil
}

// store writes v, whose JSON form is body if it is not nil, at its next stamp.
func (c *collection) store(ctx context.Context, tx *Tx, v any, body []byte, what change) (*Entry, error) {
	m := metaOf(v)
	was := *m
	if what == ofContent {
		m.Version++
		m.TimeModified = latest(tx.Now, m.TimeModified, m.TimeCreated) // the clock may have been set back
		var err error
		if body, err = c.restamp(v, body, &was); err != nil {
			return nil, err
		}
	} else {
		m.counts++
	}
	globals, err := c.globalsBefore(tx, v)
	if err != nil {
		return nil, err
	}
	e := c.entryOf(v, body)
	e.refusal = c.refusal(inPlace, v)
	if err := tx.engine.Replace(ctx, c.def, e, was.stamp()); err != nil {
		return nil, c.translate(withEntry(err, e))
	}
	tx.noteDue(c.def, e)
	if err := tx.point(ctx, c.def.Name, e, globals, c.globals(v)); err != nil {
		return nil, err
	}
	tx.remember(c.def, m.ID, loaded{json: e.JSON})
	return e, nil
}

// restamp returns the JSON form of v. body, if it is not nil, is the JSON form of v with another Meta.
func (c *collection) restamp(v any, body []byte, was *Meta) ([]byte, error) {
	if body == nil {
		return c.encode(v)
	}
	before, err := encode(was)
	if err != nil {
		return nil, err
	}
	rest, ok := bytes.CutPrefix(body, bytes.TrimSuffix(before, []byte("}")))
	if !ok { // Meta is not the first member
		return c.encode(v)
	}
	now, err := encode(metaOf(v))
	return append(bytes.TrimSuffix(now, []byte("}")), rest...), err
}

// change is how a document differs from its loaded form.
type change int

const (
	noChange change = iota
	ofCounts
	ofContent
)

// compare returns how v, whose JSON form is body, differs from the loaded document. before is the JSON form of the
// loaded document as the type encodes it today: the type may have had other members when the document was stored.
func (c *collection) compare(tx *Tx, old loaded, v any, body []byte) (before []byte, what change, err error) {
	stored := old.json
	if stored == nil && tx.st.engine.DataIsJSON() {
		stored = old.data
	}
	if string(stored) == string(body) {
		return body, noChange, nil
	}
	was, before, err := c.former(tx, old)
	if err != nil {
		return nil, 0, err
	}
	if string(before) == string(body) {
		return before, noChange, nil
	}
	if c.counts == nil || !c.recount(was, v) {
		return before, ofContent, nil
	}
	recounted, err := c.encode(was)
	if err == nil && string(recounted) == string(body) {
		return before, ofCounts, nil
	}
	return before, ofContent, err
}

// former returns a loaded document as it was, and its JSON form as the type encodes it today.
func (c *collection) former(tx *Tx, old loaded) (was any, before []byte, err error) {
	was = c.def.Blank()
	if old.json != nil {
		err = json.Unmarshal(old.json, was)
	} else {
		err = tx.st.engine.Decode(old.data, was)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("docstore: decode %s: %w", c.def.Name, err)
	}
	before, err = c.encode(was)
	return was, before, err
}

// recount sets the counts of was to those of v, and reports whether they differed.
func (c *collection) recount(was, v any) (changed bool) {
	counts := c.counts(v)
	for i, n := range c.counts(was) {
		changed = changed || *n != *counts[i]
		*n = *counts[i]
	}
	return changed
}

func latest(first clock.Time, more ...clock.Time) clock.Time {
	for _, t := range more {
		if t.After(first) {
			first = t
		}
	}
	return first
}
