package kv

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// at selects the object with a key.
func at(bucket, key string) docstore.Filter {
	return docstore.Eq(byKey, docstore.Text(place(bucket, key)))
}

// Get returns an object. The error is apperr.NotFound, or Unavailable if the object changes again and again meanwhile.
func (s *KV) Get(ctx context.Context, bucket, key string) (Record, error) {
	// A large value takes a second read. If the object has changed in between, both are repeated.
	const attempts = 3
	for range attempts {
		doc, err := s.find(ctx, bucket, key)
		if err != nil {
			return Record{}, err
		}
		record, err := recordOf(&doc, nil)
		if err != nil || isPlain(record.JSON) {
			return record, err
		}
		o, err := doc.Value()
		if err != nil || o.expired(s.store.Now()) {
			return Record{}, errors.Join(err, apperr.Missing("object"))
		}
		if o.Size <= inline {
			return record, nil
		}
		large, err := largeValue(ctx, s.store, o.ID, o.Version)
		if apperr.IsNotFound(err) {
			continue
		}
		if err != nil {
			return Record{}, err
		}
		return recordOf(&doc, large)
	}
	return Record{}, apperr.New(apperr.Unavailable, "the object changes too often to be read")
}

// find returns an object even if it has expired. The error is apperr.NotFound.
func (s *KV) find(ctx context.Context, bucket, key string) (docstore.Doc[Object], error) {
	where := request.Tenant(ctx) + "/" + bucket + "/" + key
	if id, known := s.ids.Get(where); known {
		// The cached id cannot be wrong: an object keeps its bucket and key, and no id is used twice.
		if doc, err := objects.Find(ctx, s.store, id); !apperr.IsNotFound(err) {
			return doc, err
		}
	}
	doc, err := objects.First(ctx, s.store, at(bucket, key))
	if err == nil {
		s.ids.Set(where, doc.ID)
	}
	return doc, err
}

// largeValue returns the value that is stored in values for a version of an object. The error is apperr.NotFound if the
// object has changed since.
func largeValue(ctx context.Context, r docstore.Reader, id string, of int64) (jsontext.Value, error) {
	doc, err := values.Find(ctx, r, id)
	if err != nil {
		return nil, err
	}
	v, err := doc.Value()
	if err == nil && v.Of != of {
		err = apperr.Missing("value")
	}
	if err != nil {
		return nil, err
	}
	return v.Value, nil
}

// Create adds an object, and its bucket if there is none. The error is apperr.InvalidParameters, AlreadyExists, or
// InvalidState if the bucket is being deleted, or the tenant has too many buckets for a new one.
func (s *KV) Create(ctx context.Context, bucket, key string, d Draft) (Record, error) {
	w := writing{bucket: bucket, key: key, draft: d, expectsNew: true, may: func(exists bool) error {
		if exists {
			return apperr.Taken("key")
		}
		return nil
	}}
	return s.write(ctx, w)
}

// Put adds an object or replaces its value. With fresh it only adds (If-None-Match: *). The error is
// apperr.InvalidParameters, VersionMismatch or InvalidState.
func (s *KV) Put(ctx context.Context, bucket, key string, d Draft, fresh bool) (Record, error) {
	w := writing{bucket: bucket, key: key, draft: d, expectsNew: fresh, may: func(exists bool) error {
		switch {
		case exists && fresh:
			return apperr.New(apperr.VersionMismatch, "the object exists")
		case !exists && docstore.Expects(ctx, key):
			return apperr.New(apperr.VersionMismatch, "the object does not exist")
		}
		return nil
	}}
	return s.write(ctx, w)
}

// writing is a write of an object.
type writing struct {
	bucket, key string
	draft       Draft
	ids         []string // for the object and its bucket, if they are new
	may         func(exists bool) error
	// expectsNew says that there is most likely no object with the key, so that the write need not look for one first.
	expectsNew bool
	known      *known // nil if the bucket is read in the transaction
}

// write adds or replaces an object, unless w.may returns an error.
func (s *KV) write(ctx context.Context, w writing) (Record, error) {
	if err := w.draft.check(w.key); err != nil {
		return Record{}, err
	}
	var err error
	if w.ids, err = s.store.NewIDs(ctx, 2); err != nil {
		return Record{}, err
	}
	if !docstore.IsDryRun(ctx) { // it would not find out that what is known has changed
		if w.known, err = s.knownBucket(ctx, w.bucket); err != nil {
			return Record{}, err
		}
	}
	record, err := s.tryWrite(ctx, w)
	// A value may be too large only for what is known of the bucket.
	if errors.Is(err, docstore.ErrStale) || w.known != nil && apperr.KindOf(err) == apperr.InvalidParameters {
		s.forgetBucket(ctx, w.bucket)
		w.known = nil
		record, err = s.tryWrite(ctx, w)
	}
	if w.expectsNew && apperr.KindOf(err) == apperr.AlreadyExists { // it is there, and may have expired
		w.known, w.expectsNew = nil, false
		record, err = s.tryWrite(ctx, w)
	}
	return record, err
}

func (s *KV) tryWrite(ctx context.Context, w writing) (Record, error) {
	if w.known == nil {
		ctx = inTurn(ctx, w.bucket)
	}
	return docstore.Write(ctx, s.store, func(tx *docstore.Tx) (Record, error) {
		var o *Object
		var err error
		if !w.expectsNew {
			if o, err = load(ctx, tx, w.bucket, w.key); err != nil {
				return Record{}, err
			}
		}
		if err := w.may(o != nil); err != nil {
			return Record{}, err
		}
		settings, err := s.settings(ctx, tx, w)
		if err != nil {
			return Record{}, err
		}
		if o == nil {
			return add(ctx, tx, w, settings)
		}
		return change(ctx, tx, o, w.draft, settings)
	})
}

// load loads an object; nil if there is none. It removes an object that has expired.
func load(ctx context.Context, tx *docstore.Tx, bucket, key string) (*Object, error) {
	found, err := objects.LoadWhere(ctx, tx, at(bucket, key), "", 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	o := found[0]
	if o.expired(tx.Now) {
		return nil, remove(ctx, tx, o, "expired")
	}
	if docstore.Expects(ctx, key) {
		return objects.Load(docstore.ExpectFor(ctx, key, o.ID), tx, o.ID)
	}
	return o, nil
}

// add adds an object.
func add(ctx context.Context, tx *docstore.Tx, w writing, settings Settings) (Record, error) {
	o := &Object{Meta: docstore.Meta{ID: w.ids[0]}, Bucket: w.bucket, Key: w.key}
	if err := o.set(w.draft, tx.Now, settings); err != nil {
		return Record{}, err
	}
	last, err := recall(ctx, tx, w.bucket, w.key)
	if err != nil {
		return Record{}, err
	}
	large := o.takeLarge()
	doc, err := objects.InsertAfter(ctx, tx, o, last)
	if err != nil {
		return Record{}, err
	}
	if err := storeLarge(ctx, tx, o.ID, o.Version, large); err != nil {
		return Record{}, err
	}
	if err := emitObject(ctx, tx, "created", &doc); err != nil {
		return Record{}, err
	}
	return recordOf(&doc, large)
}

// settings returns the settings of the bucket. The transaction depends on them, so that no object is written while its
// bucket is deleted.
func (s *KV) settings(ctx context.Context, tx *docstore.Tx, w writing) (Settings, error) {
	if w.known != nil {
		return w.known.settings, s.assume(ctx, tx, w.known)
	}
	return bucketFor(ctx, tx, w.bucket, w.ids[1])
}

// bucketFor reads the settings of a bucket, and adds the bucket if there is none.
func bucketFor(ctx context.Context, tx *docstore.Tx, name, id string) (Settings, error) {
	doc, err := buckets.First(ctx, tx, named(name))
	if apperr.IsNotFound(err) {
		b := Bucket{Name: name}
		if err := b.check(); err != nil {
			return Settings{}, err
		}
		_, err = addBucket(ctx, tx, id, b)
		return b.Settings, err
	}
	if err != nil {
		return Settings{}, err
	}
	b, err := doc.Value()
	if err != nil {
		return Settings{}, err
	}
	return b.Settings, b.usable()
}

// change replaces the value of a loaded object. It keeps the former state if the bucket has a history.
func change(ctx context.Context, tx *docstore.Tx, o *Object, d Draft, settings Settings) (_ Record, err error) {
	former := *o
	whole := former.Value
	if former.Size > inline {
		if whole, err = largeValue(ctx, tx, o.ID, o.Version); err != nil {
			return Record{}, err
		}
	}
	if err := o.set(d, tx.Now, settings); err != nil {
		return Record{}, err
	}
	if bytes.Equal(whole, o.Value) && former.ContentType == o.ContentType && former.TimeExpires == o.TimeExpires {
		*o = former
		doc, err := objects.Replace(ctx, tx, o)
		record, encoded := recordOf(&doc, ifLarge(whole))
		return record, errors.Join(err, encoded)
	}
	if o.Kept, err = keep(ctx, tx, &former, whole, settings.History); err != nil {
		return Record{}, err
	}
	value := o.takeLarge()
	doc, err := objects.Touch(ctx, tx, o)
	if err != nil {
		return Record{}, err
	}
	if former.Size > inline && value == nil {
		err = values.DeleteWhere(ctx, tx, docstore.ID(o.ID), nil)
	} else {
		err = storeLarge(ctx, tx, o.ID, o.Version, value)
	}
	if err != nil {
		return Record{}, err
	}
	if err := emitObject(ctx, tx, "updated", &doc); err != nil {
		return Record{}, err
	}
	return recordOf(&doc, value)
}

// ifLarge returns a value that is to be stored in values; nil for a smaller one.
func ifLarge(value jsontext.Value) jsontext.Value {
	if len(value) <= inline {
		return nil
	}
	return value
}

// takeLarge removes a large value from an object and returns it; nil if the value stays.
func (o *Object) takeLarge() jsontext.Value {
	value := ifLarge(o.Value)
	if value != nil {
		o.Value = nil
	}
	return value
}

// storeLarge stores the value of a version of an object in values, unless it is nil.
func storeLarge(ctx context.Context, tx *docstore.Tx, id string, of int64, v jsontext.Value) error {
	if v == nil {
		return nil
	}
	found, err := values.LoadMany(ctx, tx, []string{id})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		_, err = values.Insert(ctx, tx, &value{Meta: docstore.Meta{ID: id}, Of: of, Value: v})
		return err
	}
	found[0].Of, found[0].Value = of, v
	_, err = values.Replace(ctx, tx, found[0])
	return err
}

// Delete deletes an object. The error is apperr.NotFound or VersionMismatch.
func (s *KV) Delete(ctx context.Context, bucket, key string) (docstore.Deleted, error) {
	return docstore.Write(ctx, s.store, func(tx *docstore.Tx) (docstore.Deleted, error) {
		o, err := load(ctx, tx, bucket, key)
		if err != nil {
			return docstore.Deleted{}, err
		}
		if o == nil {
			return docstore.Deleted{}, apperr.Missing("object")
		}
		return docstore.Deleted{ID: o.ID}, remove(ctx, tx, o, "deleted")
	})
}

// remove deletes a loaded object with its value and former states. action is that of the event.
func remove(ctx context.Context, tx *docstore.Tx, o *Object, action string) error {
	if o.Size > inline {
		if err := values.DeleteWhere(ctx, tx, docstore.ID(o.ID), nil); err != nil {
			return err
		}
	}
	if o.Kept > 0 {
		if err := removeVersions(ctx, tx, versionsOf(o.ID)); err != nil {
			return err
		}
	}
	doc, err := objects.Delete(ctx, tx, o)
	if err != nil {
		return err
	}
	if err := remember(ctx, tx, o); err != nil {
		return err
	}
	return emitObject(ctx, tx, action, &doc)
}

// DueObjects lists objects that have expired.
func DueObjects(ctx context.Context, store *docstore.Store, limit int) ([]docstore.Ref, error) {
	return objects.Due(ctx, store, limit)
}

// Expire removes an object that has expired. The error is apperr.NotFound or VersionMismatch.
func (s *KV) Expire(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.store, func(tx *docstore.Tx) error {
		o, err := objects.Load(ctx, tx, id)
		if err != nil || !o.expired(tx.Now) {
			return err
		}
		return remove(ctx, tx, o, "expired")
	})
}
