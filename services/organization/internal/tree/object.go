package tree

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/questions"
)

// Object is a core object: an organization relation, which is one tree. It has the same JSON form in the API, in events
// and in the store.
//
// A transaction that changes the tree's structure loads the object and stores it again, so that no two such changes of
// one tree run at the same time.
type Object struct {
	docstore.Meta
	ObjectProfile
	Code       string               `json:"code" required:"true" doc:"1…128 letters of any script, digits or . _ -; unique; cannot change" example:"company"`
	RootNodeID string               `json:"root_node_id" readOnly:"true" doc:"The node above all others" example:"1048578"`
	NodeCount  int64                `json:"node_count" readOnly:"true" doc:"Including the root" example:"1"`
	ManagedBy  *questions.ManagedBy `json:"managed_by" readOnly:"true" doc:"The provisioning connection that owns the names and members of the tree's nodes, which change only through SCIM; null: none"`
}

// ObjectProfile holds the members that create and update may set.
type ObjectProfile struct {
	Name         string          `json:"name" required:"true" doc:"1…256 characters" example:"Acme"`
	Description  string          `json:"description" doc:"Up to 2000 characters" example:""`
	Status       string          `json:"status" enum:"1,0" doc:"1: in use" example:"1"`
	Seq          int64           `json:"seq" doc:"Orders core objects" example:"0"`
	SysExtProps  json.RawMessage `json:"sys_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	FreeExtProps json.RawMessage `json:"free_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
}

// ObjectDoc is a core object as read or written.
type ObjectDoc = docstore.Doc[Object]

var objects = outbox.Define("core_object", "/core-objects", docstore.Schema[Object]{
	Name: "core_objects", Noun: "core object",
	Counts: func(o *Object) []*int64 { return []*int64{&o.NodeCount} },
	Indexes: slices.Concat([]docstore.Index[Object]{
		docstore.Unique(docstore.ByText(byCode, func(o *Object) string { return o.Code }), "code"),
		docstore.ByNumber(bySeq, func(o *Object) docstore.Value { return docstore.Number(o.Seq) }),
	}, textindex.KeywordIndexes(func(o *Object) []string { return []string{o.Name, o.Code} })),
})

// MaxObjects is how many core objects a tenant can have: they are listed in one array.
const MaxObjects = 1000

// objectCode matches codes without a slash or colon, which end the code in references to nodes and in ARNs. The length
// is checked separately: {0,127} would compile to 127 copies of the character classes, 2.5 MiB.
var objectCode = regexp.MustCompile(`^[\pL\pN][\pL\pM\pN._-]*$`)

func isObjectCode(s string) bool {
	return utf8.RuneCountInString(s) <= 128 && objectCode.MatchString(s)
}

func (p *ObjectProfile) check(faults *apperr.Faults) {
	faults.Name("name", p.Name, maxName)
	faults.Prose("description", p.Description, maxDescription)
	faults.Switch("status", &p.Status, "1")
	checkSeq(faults, p.Seq)
	faults.Props("sys_ext_props", &p.SysExtProps)
	faults.Props("free_ext_props", &p.FreeExtProps)
}

// CreateObject creates a core object with its root node. If root has no code or name, it gets that of the object. The
// error is apperr.InvalidParameters, AlreadyExists (code) or InvalidState (MaxObjects).
func (s *Trees) CreateObject(ctx context.Context, draft Object, root Draft) (ObjectDoc, error) {
	var faults apperr.Faults
	draft.check(&faults)
	faults.Check(isObjectCode(draft.Code), "code",
		"must have 1…128 letters, digits or . _ -, and begin with a letter or digit")
	faults.Check(root.ParentID == "", "root.parent_id", "must not be given: a root has no parent")
	name := cmp.Or(root.Name, draft.Name)
	root.Name = cmp.Or(root.Name, "-") // the faults of the object's name are noted already
	root.check(faults.Within("root"))
	if err := faults.Err(); err != nil {
		return ObjectDoc{}, err
	}
	root.Name, root.Code = name, cmp.Or(root.Code, draft.Code)
	cost := Estimate(root.Condition)
	ids, err := s.Store.NewIDs(ctx, 2)
	if err != nil {
		return ObjectDoc{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (ObjectDoc, error) {
		err := objects.CheckLimit(ctx, tx, docstore.Filter{}, MaxObjects, "a tenant has at most %d core objects")
		if err != nil {
			return ObjectDoc{}, err
		}
		doc, err := objects.Insert(ctx, tx, &Object{
			Meta: docstore.Meta{ID: ids[0]}, Code: draft.Code, ObjectProfile: draft.ObjectProfile, RootNodeID: ids[1],
			NodeCount: 1, ManagedBy: draft.ManagedBy,
		})
		if err != nil {
			return ObjectDoc{}, err
		}
		node := root.node(ctx, ids[1], draft.Code)
		node.place(nil)
		if err := checkPointer(ctx, tx, node, "root"); err != nil {
			return ObjectDoc{}, err
		}
		rootDoc, err := nodes.Insert(ctx, tx, node)
		if err != nil {
			return ObjectDoc{}, err
		}
		if err := s.emitCreated(ctx, tx, node, &rootDoc); err != nil {
			return ObjectDoc{}, err
		}
		return doc, chargeNew(ctx, tx, []*Node{node}, []int64{cost}, func(int) string { return "root" })
	})
}

// ObjectByCode returns the core object with a code. The error is apperr.NotFound.
func ObjectByCode(ctx context.Context, r docstore.Reader, code string) (*Object, error) {
	doc, err := objects.First(ctx, r, docstore.Eq(byCode, docstore.Text(code)))
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// Objects returns the core objects with a part of their name or code, by seq; an empty keyword selects all.
func (s *Trees) Objects(ctx context.Context, keyword string) ([]ObjectDoc, error) {
	// concurrent requests may have created a few more than MaxObjects
	page, err := objects.Page(ctx, s.Store, docstore.Query{Filter: textindex.HavingPart(keyword),
		Sort: []docstore.Order{{Index: bySeq}}, Limit: 2 * MaxObjects})
	return page.Docs, err
}

// UpdateObject applies edit to the profile. The code cannot change, because it is part of every node's ARN. The error
// is apperr.NotFound, InvalidParameters or VersionMismatch.
func (s *Trees) UpdateObject(ctx context.Context, id string, edit func(*Object) error) (ObjectDoc, error) {
	return objects.Edit(ctx, s.Store, id, func(_ *docstore.Tx, o *Object) error {
		proposal := *o
		if err := edit(&proposal); err != nil {
			return err
		}
		var faults apperr.Faults
		faults.Check(proposal.Code == o.Code, "code", "cannot change: it is part of every node's arn")
		proposal.check(&faults)
		o.ObjectProfile = proposal.ObjectProfile
		return faults.Err()
	})
}

// DeleteObject deletes a core object and its root node, with the members of the root. The error is apperr.NotFound,
// HasChildren (nodes below the root), InUse (pointers, or grants if refuse is set), Unavailable or VersionMismatch.
func (s *Trees) DeleteObject(ctx context.Context, id string, refuse bool) (docstore.Deleted, error) {
	if refuse {
		doc, err := objects.Find(ctx, s.Store, id)
		if err != nil {
			return docstore.Deleted{}, err
		}
		o, err := doc.Value()
		if err != nil {
			return docstore.Deleted{}, err
		}
		if err := s.checkGrants(ctx, questions.GrantedNode{ObjectCode: o.Code, NodeID: o.RootNodeID}); err != nil {
			return docstore.Deleted{}, err
		}
	}
	return objects.Remove(ctx, s.Store, id, func(tx *docstore.Tx, o *Object) error {
		if o.NodeCount > 1 {
			return apperr.New(apperr.HasChildren, "the core object has nodes below its root: %d", o.NodeCount-1)
		}
		root, err := nodes.Load(ctx, tx, o.RootNodeID)
		if err != nil {
			return err
		}
		return s.remove(ctx, tx, root)
	})
}

// ObjectIf returns the core object that has both id and code, or none.
func (s *Trees) ObjectIf(ctx context.Context, id, code string) ([]ObjectDoc, error) {
	page, err := objects.Page(ctx, s.Store, docstore.Query{Filter: docstore.And(docstore.ID(id),
		docstore.Eq(byCode, docstore.Text(code))), Limit: 1})
	return page.Docs, err
}
