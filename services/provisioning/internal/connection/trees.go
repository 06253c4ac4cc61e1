package connection

import (
	"context"
	"errors"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// claim says that a connection that is being created takes a tree. Its id is the connection's. The transaction that
// stores the connection deletes it; what a crash leaves is undone.
type claim struct {
	docstore.Meta
	ObjectCode string     `json:"object_code"`
	TimeDue    clock.Time `json:"time_due"`
}

var claims = docstore.Define(docstore.Schema[claim]{
	Name: "tree_claims", Noun: "claim", NoIfMatch: true, Due: func(c *claim) clock.Time { return c.TimeDue },
})

const claimTakes = 10 * time.Second

// claimTree makes the tree of a new connection, or takes one that nobody owns, if the caller may change it. The error
// is apperr.AlreadyExists, Forbidden or Unavailable.
func (s *Connections) claimTree(ctx context.Context, c *Connection) (questions.Tree, error) {
	lacks := auth.NewScopes(auth.OrganizationWrite).Lacking(ctx)
	if lacks != "" { // look first: nobody is locked out of a tree that the caller may not take, even for a moment
		tree, err := s.askTree(docstore.WithDryRun(ctx), c)
		if err == nil && !tree.Made {
			err = errLacks(lacks)
		}
		if err != nil {
			return tree, err
		}
	}
	aside := docstore.WithoutCommitHook(ctx)
	if err := docstore.Do(aside, s.Store, func(tx *docstore.Tx) error {
		_, err := claims.Insert(ctx, tx, &claim{docstore.Meta{ID: c.ID}, c.ObjectCode, tx.Now.Add(claimTakes)})
		return err
	}); err != nil {
		return questions.Tree{}, err
	}
	tree, err := s.askTree(ctx, c)
	if err == nil && !tree.Made && lacks != "" { // another has just made it
		err = errors.Join(errLacks(lacks), s.EndClaim(ctx, c.ID))
	}
	return tree, err
}

// askTree makes the tree of a new connection, or takes it.
func (s *Connections) askTree(ctx context.Context, c *Connection) (questions.Tree, error) {
	tree, err := questions.MakeTree.Ask(ctx, s.Bus, s.newTree(ctx, c.ID, c))
	if k := apperr.KindOf(err); k == apperr.AlreadyExists || k == apperr.ManagedElsewhere {
		return tree, apperr.Taken("object_code")
	}
	return tree, err
}

func (s *Connections) newTree(ctx context.Context, changeID string, c *Connection) questions.NewTree {
	owner := c.treeOwner()
	if !c.OwnsTree() { // it only reads the tree, but the tree must be there
		owner.Members = []string{}
	}
	return questions.NewTree{
		ID: changeID, Code: c.ObjectCode, Name: c.Name, ManagedBy: owner, DryRun: docstore.IsDryRun(ctx),
	}
}

// ownTree gives the tree the owner that follows from what the connection owns.
func (s *Connections) ownTree(ctx context.Context, c *Connection) error {
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return err
	}
	tree := s.newTree(ctx, id, c)
	tree.RootNodeID = c.RootNodeID
	_, err = questions.MakeTree.Ask(ctx, s.Bus, tree)
	return err
}

// freeTree ends the ownership of a tree.
func (s *Connections) freeTree(ctx context.Context, connectionID, objectCode string) error {
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return err
	}
	_, err = questions.MakeTree.Ask(ctx, s.Bus, questions.NewTree{ID: id, Code: objectCode,
		ManagedBy: questions.ManagedBy{ConnectionID: connectionID, Members: []string{}}})
	return err
}

// DueClaims lists claims whose request has died.
func DueClaims(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return claims.Due(ctx, s, limit)
}

// EndClaim frees the tree of a connection that was not created.
func (s *Connections) EndClaim(ctx context.Context, id string) error {
	doc, err := claims.Find(ctx, s.Store, id)
	if err != nil {
		return err
	}
	c, err := doc.Value()
	if err != nil {
		return err
	}
	if err := s.freeTree(ctx, id, c.ObjectCode); err != nil {
		return err
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		return claims.DeleteWhere(ctx, tx, docstore.ID(id), nil)
	})
}
