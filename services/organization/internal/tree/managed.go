package tree

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// MakeTree makes a core object with its root node, unless there is one of this code, and sets its owner. The error is
// one of CreateObject's, or apperr.ManagedElsewhere if another connection owns it.
func (s *Trees) MakeTree(ctx context.Context, q questions.NewTree) (questions.Tree, error) {
	if q.DryRun {
		ctx = docstore.WithDryRun(ctx)
	}
	if _, err := ObjectByCode(ctx, s.Store, q.Code); apperr.IsNotFound(err) {
		if q.Name == "" || q.RootNodeID != "" {
			return questions.Tree{}, nil // there is nothing to free or to own
		}
		draft := Object{Code: q.Code, ObjectProfile: ObjectProfile{Name: q.Name}}
		if !q.ManagedBy.Frees() {
			draft.ManagedBy = &q.ManagedBy
		}
		doc, err := s.CreateObject(ctx, draft, Draft{})
		switch {
		case err == nil:
			return treeOf(doc, true)
		case apperr.KindOf(err) != apperr.AlreadyExists: // another has just made it
			return questions.Tree{}, err
		}
	} else if err != nil {
		return questions.Tree{}, err
	}
	doc, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (ObjectDoc, error) {
		found, err := ObjectByCode(ctx, tx, q.Code)
		if err != nil {
			return ObjectDoc{}, err
		}
		o, err := objects.Load(ctx, tx, found.ID)
		if err != nil {
			return ObjectDoc{}, err
		}
		if q.RootNodeID != "" && q.RootNodeID != o.RootNodeID {
			return ObjectDoc{}, apperr.Managed("object_code")
		}
		owner := o.ManagedBy
		other := owner != nil && owner.ConnectionID != q.ManagedBy.ConnectionID
		switch {
		case q.ManagedBy.Frees() && other: // it is free of the connection already
		case q.ManagedBy.Frees():
			o.ManagedBy = nil
		case other:
			return ObjectDoc{}, apperr.Managed("object_code")
		default:
			o.ManagedBy = &q.ManagedBy
		}
		return objects.Replace(ctx, tx, o)
	})
	if err != nil {
		return questions.Tree{}, err
	}
	return treeOf(doc, false)
}

func treeOf(doc ObjectDoc, made bool) (questions.Tree, error) {
	o, err := doc.Value()
	if err != nil {
		return questions.Tree{}, err
	}
	return questions.Tree{ID: o.ID, Code: o.Code, RootNodeID: o.RootNodeID, Made: made,
		Sequence: docstore.FirstSequence(doc.Revision()+1) - 1}, nil
}

// CheckOwned returns apperr.ManagedElsewhere, at location, if a connection owns a member of a tree's nodes.
func CheckOwned(ctx context.Context, r docstore.Reader, objectCode, member, location string) error {
	o, err := ObjectByCode(ctx, r, objectCode)
	if apperr.IsNotFound(err) {
		return nil // its own check says so
	}
	if err != nil {
		return err
	}
	if o.ManagedBy != nil && slices.Contains(o.ManagedBy.Members, member) && !owner(ctx) {
		return apperr.Managed(location)
	}
	return nil
}

type ownerKey struct{}

// AsOwner is a context for a change that the owner of the tree has asked for.
func AsOwner(ctx context.Context) context.Context { return context.WithValue(ctx, ownerKey{}, true) }

func owner(ctx context.Context) bool { return ctx.Value(ownerKey{}) != nil }

// State is a node's record, and the greatest sequence of an event about it so far; nil if there is none.
func State(ctx context.Context, r docstore.Reader, id string) (json.RawMessage, int64, error) {
	doc, err := nodes.Find(ctx, r, id)
	if apperr.IsNotFound(err) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return stateOf(doc)
}

func stateOf(doc Doc) (json.RawMessage, int64, error) {
	body, err := doc.JSON()
	return body, docstore.FirstSequence(doc.Revision()+1) - 1, err
}
