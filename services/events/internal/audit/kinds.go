package audit

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// kind is what an entry tells of. The outcome follows from entity and action.
type kind struct {
	Entity  string `json:"entity"`
	Action  string `json:"action"`
	Outcome string `json:"outcome"`
}

func (k kind) name() string { return k.Entity + "." + k.Action }

func compareKinds(a, b kind) int {
	return cmp.Or(strings.Compare(a.Entity, b.Entity), strings.Compare(a.Action, b.Action))
}

// seenKinds are the kinds that a tenant's log has had, in order. They are few: the types of events, and the operations
// that can be denied. A filter by entity, action or outcome becomes one by some of them, for which there are indexes.
type seenKinds struct {
	docstore.Meta        // the id is work
	Kinds         []kind `json:"kinds"`
}

var kinds = docstore.Define(docstore.Schema[seenKinds]{
	Name: "audit_kinds", Noun: "kinds of the audit log", NoIfMatch: true,
})

// kindsOf returns the kinds of the context's tenant.
func kindsOf(ctx context.Context, r docstore.Reader) ([]kind, error) {
	doc, err := kinds.Find(ctx, r, work)
	if apperr.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	seen, err := doc.Value()
	if err != nil {
		return nil, err
	}
	return seen.Kinds, nil
}

// noteKinds adds the kinds of entries to those of the context's tenant.
func noteKinds(ctx context.Context, tx *docstore.Tx, list []*Entry) error {
	seen := &seenKinds{Meta: docstore.Meta{ID: work}}
	found, err := kinds.LoadMany(ctx, tx, []string{work})
	if err != nil {
		return err
	}
	if len(found) > 0 {
		seen = found[0]
	}
	fresh := false
	for _, entry := range list {
		at, known := slices.BinarySearchFunc(seen.Kinds, entry.kind(), compareKinds)
		if !known {
			seen.Kinds, fresh = slices.Insert(seen.Kinds, at, entry.kind()), true
		}
	}
	switch {
	case !fresh && len(found) > 0:
		return nil
	case len(found) > 0:
		_, err = kinds.Replace(ctx, tx, seen)
	default:
		_, err = kinds.Insert(ctx, tx, seen)
	}
	return err
}
