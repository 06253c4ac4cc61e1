// Package link is the domain of tree associations: links between nodes of different trees.
package link

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// Association is a link from a node to one of another tree, such as from a project to a department. It has the same
// JSON form in the API, in events and in the store. It never changes.
type Association struct {
	docstore.Meta
	Draft
}

// Draft is an association to create.
type Draft struct {
	SourceNodeID string `json:"source_node_id" required:"true" doc:"The node that it begins at" example:"1048700"`
	TargetNodeID string `json:"target_node_id" required:"true" doc:"Of another tree" example:"1048579"`
	Type         string `json:"type" doc:"What one is to the other, up to 64 characters" example:"owner"`
	Description  string `json:"description" doc:"Up to 2000 characters" example:""`
}

// Doc is an association as read or written.
type Doc = docstore.Doc[Association]

const (
	byEnds        = "ends"
	bySource      = "source_node_id"
	byTarget      = "target_node_id"
	byType        = "type"
	byTimeCreated = "time_created"
)

var links = outbox.Define("association", "/tree-associations", docstore.Schema[Association]{
	Name: "tree_associations", Noun: "tree association",
	Sortable: []string{byTimeCreated, byType},
	Indexes: []docstore.Index[Association]{
		docstore.Unique(docstore.ByText(byEnds, func(a *Association) string {
			return a.SourceNodeID + "/" + a.TargetNodeID + "/" + a.Type
		}), "target_node_id"),
		docstore.ByText(bySource, func(a *Association) string { return a.SourceNodeID }),
		docstore.ByText(byTarget, func(a *Association) string { return a.TargetNodeID }),
		docstore.ByText(byType, func(a *Association) string { return a.Type }),
		docstore.ByNumber(byTimeCreated, func(a *Association) docstore.Value { return docstore.Moment(a.TimeCreated) }),
	},
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{links.Def()} }

const (
	maxType        = 64
	maxDescription = 2000

	// MaxOfNode is how many associations a node can have: they end with it, in one transaction.
	MaxOfNode = 1000
)

// Deps are what Links need.
type Deps struct{ Store *docstore.Store }

// Links are the use cases.
type Links struct{ Deps }

// New makes the use cases.
func New(d Deps) *Links { return &Links{d} }

// Add links two nodes. The error is apperr.InvalidParameters (no such node, or nodes of one tree), AlreadyExists (the
// nodes have a link of this type) or InvalidState (MaxOfNode).
func (s *Links) Add(ctx context.Context, d Draft) (Doc, error) {
	var faults apperr.Faults
	faults.Check(d.SourceNodeID != "", "source_node_id", "must not be empty")
	faults.Check(d.TargetNodeID != "", "target_node_id", "must not be empty")
	faults.Text("type", d.Type, maxType)
	faults.Prose("description", d.Description, maxDescription)
	if err := faults.Err(); err != nil {
		return Doc{}, err
	}
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return Doc{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		if err := checkEnds(ctx, tx, d); err != nil {
			return Doc{}, err
		}
		return links.Insert(ctx, tx, &Association{docstore.Meta{ID: id}, d})
	})
}

func checkEnds(ctx context.Context, tx *docstore.Tx, d Draft) error {
	nodes, err := tree.Find(ctx, tx, d.SourceNodeID, d.TargetNodeID)
	if err != nil {
		return err
	}
	source, target := nodes[d.SourceNodeID], nodes[d.TargetNodeID]
	var faults apperr.Faults
	faults.Check(source != nil, "source_node_id", "is not a node")
	faults.Check(target != nil, "target_node_id", "is not a node")
	if source != nil && target != nil {
		faults.Check(source.Path[0] != target.Path[0], "target_node_id", "must be a node of another tree")
	}
	if err := faults.Err(); err != nil {
		return err
	}
	for _, n := range []*tree.Node{source, target} {
		if err := tree.Hold(ctx, tx, n.ObjectCode); err != nil {
			return err
		}
		if err := links.CheckLimit(ctx, tx, of(n.ID), MaxOfNode, "a node has at most %d associations"); err != nil {
			return err
		}
	}
	return nil
}

// of selects the associations that have a node at either end.
func of(nodeID string) docstore.Filter {
	return docstore.Or(docstore.Eq(bySource, docstore.Text(nodeID)), docstore.Eq(byTarget, docstore.Text(nodeID)))
}

// Get returns an association. The error is apperr.NotFound.
func (s *Links) Get(ctx context.Context, id string) (Doc, error) { return links.Find(ctx, s.Store, id) }

// Filter selects associations. The zero Filter selects all.
type Filter struct {
	Node   string `query:"node_id" maxLength:"64" doc:"Source or target"`
	Source string `query:"source_node_id" maxLength:"64"`
	Target string `query:"target_node_id" maxLength:"64"`
	Type   string `query:"type" maxLength:"64" doc:"The exact type" example:"owner"`
	docstore.Paging
}

func (f Filter) where() docstore.Filter {
	var all []docstore.Filter
	if f.Node != "" {
		all = append(all, of(f.Node))
	}
	for _, by := range []struct{ index, value string }{{bySource, f.Source}, {byTarget, f.Target}, {byType, f.Type}} {
		if by.value != "" {
			all = append(all, docstore.Eq(by.index, docstore.Text(by.value)))
		}
	}
	return docstore.And(all...)
}

// List returns a page of associations. The error is apperr.InvalidParameters (paging).
func (s *Links) List(ctx context.Context, f Filter) (docstore.Page[Association], error) {
	return links.List(ctx, s.Store, f.where(), f.Paging)
}

// Remove ends one association. The error is apperr.NotFound or VersionMismatch.
func (s *Links) Remove(ctx context.Context, id string) (docstore.Deleted, error) {
	return links.Remove(ctx, s.Store, id, nil)
}

// RemoveMany ends those of the associations that exist, all or nothing, and returns their number.
func (s *Links) RemoveMany(ctx context.Context, ids []string) (int, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (int, error) {
		found, err := links.FindMany(ctx, tx, ids)
		if err != nil {
			return 0, err
		}
		return len(found), links.DeleteWhere(ctx, tx, docstore.ID(ids...))
	})
}

// OnRemove ends the associations of a node in the transaction that deletes it.
func OnRemove(ctx context.Context, tx *docstore.Tx, n *tree.Node) error {
	return links.DeleteWhere(ctx, tx, of(n.ID))
}
