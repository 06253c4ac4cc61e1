package kv

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// version is a former state of an object. A large value is stored in values, as an object's is.
type version struct {
	docstore.Meta                // with versionID as id
	ObjectID      string         `json:"object_id"`
	Of            int64          `json:"of"` // the object's version
	Since         clock.Time     `json:"since"`
	ContentType   string         `json:"content_type"`
	Size          int64          `json:"size"`
	Value         jsontext.Value `json:"value,omitempty"`
}

// Version is a former state of an object, as the API shows it.
type Version struct {
	Version      int64          `json:"version" doc:"Of the object then" example:"1"`
	TimeModified clock.Time     `json:"time_modified" doc:"When it became the value" example:"2026-01-31T09:30:00.000Z"`
	ContentType  string         `json:"content_type" doc:"Of the value" example:"application/json"`
	Size         int64          `json:"size" doc:"Of the value as compact JSON, in bytes" example:"14"`
	Value        jsontext.Value `json:"value" doc:"As it was" example:"{\"dark\":false}"`
}

const byVersion = "version"

var versions = docstore.Define(docstore.Schema[version]{
	Name: "kv_versions", Noun: "version", NoIfMatch: true,
	Indexes: []docstore.Index[version]{
		docstore.ByText(byVersion, func(v *version) string { return versionID(v.ObjectID, v.Of) }),
	},
})

// versionID is the id of a version, which sorts an object's versions by their numbers.
func versionID(object string, version int64) string { return fmt.Sprintf("%s/%016d", object, version) }

// versionsOf selects the kept versions of an object.
func versionsOf(object string) docstore.Filter { return docstore.Prefix(byVersion, object+"/") }

// keep stores the state that an object had before a change, and removes the oldest states if there are more than
// history. whole is the former value. It returns how many states are kept now.
func keep(ctx context.Context, tx *docstore.Tx, former *Object, whole jsontext.Value, history int64) (int64, error) {
	if history == 0 && former.Kept == 0 {
		return 0, nil
	}
	if history > 0 {
		v := &version{
			Meta: docstore.Meta{ID: versionID(former.ID, former.Version)}, ObjectID: former.ID, Of: former.Version,
			Since: former.TimeModified, ContentType: former.ContentType, Size: former.Size, Value: former.Value,
		}
		if _, err := versions.Insert(ctx, tx, v); err != nil {
			return 0, err
		}
		if v.Size > inline {
			if err := storeLarge(ctx, tx, v.ID, v.Of, whole); err != nil {
				return 0, err
			}
		}
	}
	if former.Kept < history {
		return former.Kept + 1, nil
	}
	first := former.Version + 1 - history // the oldest to be kept; each change of the object has made a version
	outdated := docstore.Range(byVersion, docstore.Text(former.ID+"/"), docstore.Text(versionID(former.ID, first)))
	return history, removeVersions(ctx, tx, outdated)
}

// removeVersions deletes former states and their large values.
func removeVersions(ctx context.Context, tx *docstore.Tx, f docstore.Filter) error {
	var large []string
	err := versions.DeleteWhere(ctx, tx, f, func(doc docstore.Doc[version]) error {
		v, err := doc.Value()
		if err == nil && v.Size > inline {
			large = append(large, v.ID)
		}
		return err
	})
	if err != nil || len(large) == 0 {
		return err
	}
	return values.DeleteWhere(ctx, tx, docstore.ID(large...), nil)
}

// History returns a page of an object's former states, latest first. The error is apperr.NotFound or
// InvalidParameters.
func (s *KV) History(ctx context.Context, bucket, key string, p docstore.Paging) (Page, error) {
	doc, err := s.find(ctx, bucket, key)
	if err != nil {
		return Page{}, err
	}
	o, err := doc.Value()
	if err != nil {
		return Page{}, err
	}
	if o.expired(s.store.Now()) {
		return Page{}, apperr.Missing("object")
	}
	if p.Sort == "" {
		p.Sort = byVersion + "[desc]"
	}
	q, err := p.Query(versionsOf(o.ID), byVersion)
	if err != nil {
		return Page{}, err
	}
	read := func(q docstore.Query) (docstore.Page[version], error) { return versions.Page(ctx, s.store, q) }
	return pageOf(q, read, func(doc *docstore.Doc[version]) ([]byte, error) {
		v, err := doc.Value()
		if err != nil {
			return nil, err
		}
		shown := Version{v.Of, v.Since, v.ContentType, v.Size, v.Value}
		if v.Size > inline {
			if shown.Value, err = largeValue(ctx, s.store, v.ID, v.Of); err != nil {
				return nil, err
			}
		}
		return encode(shown)
	})
}
