package connection

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/questions"
)

// Deps are what Connections need. All are required.
type Deps struct {
	Store *docstore.Store
	Bus   *bus.Bus

	// Ended forgets what this process keeps of tokens.
	Ended func()
}

// Connections are the use cases.
type Connections struct{ Deps }

// New makes the use cases.
func New(d Deps) *Connections { return &Connections{d} }

// List returns a page of connections. The error is apperr.InvalidParameters (paging).
func (s *Connections) List(ctx context.Context, p docstore.Paging) (docstore.Page[Connection], error) {
	return connections.List(ctx, s.Store, docstore.Filter{}, p)
}

// Get returns a connection. The error is apperr.NotFound.
func (s *Connections) Get(ctx context.Context, id string) (Doc, error) {
	return connections.Find(ctx, s.Store, id)
}

// OfClient returns the connection of an OAuth client. The error is apperr.NotFound.
func (s *Connections) OfClient(ctx context.Context, clientID string) (Doc, error) {
	if clientID == "" {
		return Doc{}, apperr.Missing("connection")
	}
	return connections.First(ctx, s.Store, docstore.Eq(byClientID, docstore.Text(clientID)))
}

// OfTree returns the connection of a tree. The error is apperr.NotFound.
func OfTree(ctx context.Context, r docstore.Reader, objectCode string) (*Connection, error) {
	if objectCode == "" {
		return nil, apperr.Missing("connection")
	}
	doc, err := connections.First(ctx, r, docstore.Eq(byObjectCode, docstore.Text(objectCode)))
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// Find returns the connection with an id. The error is apperr.NotFound.
func Find(ctx context.Context, r docstore.Reader, id string) (*Connection, error) {
	doc, err := connections.Find(ctx, r, id)
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// DueCopies lists connections whose tree is to be copied.
func DueCopies(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return connections.Due(ctx, s, limit)
}

// Create adds a connection, and makes its tree unless there is one. The error is apperr.InvalidParameters,
// Forbidden (see mayLet), AlreadyExists (client_id, object_code), or Unavailable.
func (s *Connections) Create(ctx context.Context, p Profile) (Doc, error) {
	c := Connection{Profile: p, Status: "1", State: Active}
	var faults apperr.Faults
	c.normalize()
	c.check(&faults)
	if err := faults.Err(); err != nil {
		return Doc{}, err
	}
	c.TreeMade = c.ObjectCode != "" // until it turns out that there is one
	if err := c.mayLet(ctx); err != nil {
		return Doc{}, err
	}
	var err error
	if c.ProviderCode, err = s.providerOf(ctx, c.LoginLink); err != nil {
		return Doc{}, err
	}
	if c.ID, err = s.Store.NewID(ctx); err != nil {
		return Doc{}, err
	}
	if c.ObjectCode != "" {
		if _, err := OfTree(ctx, s.Store, c.ObjectCode); err == nil {
			return Doc{}, apperr.Taken("object_code")
		} else if !apperr.IsNotFound(err) {
			return Doc{}, err
		}
		tree, err := s.claimTree(ctx, &c)
		if err != nil {
			return Doc{}, err
		}
		c.RootNodeID, c.Copying, c.TreeMade = tree.RootNodeID, !tree.Made, tree.Made
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		made := c
		doc, err := connections.Insert(ctx, tx, &made)
		if err != nil {
			return Doc{}, err
		}
		return doc, claims.DeleteWhere(ctx, tx, docstore.ID(c.ID), nil)
	})
}

// providerOf returns the provider of the connection at which users sign in; "" if there is none.
func (s *Connections) providerOf(ctx context.Context, l *LoginLink) (string, error) {
	if l == nil {
		return "", nil
	}
	id := strconv.FormatInt(l.IDPConfigID, 10)
	found, err := questions.ExistingConnections.Ask(ctx, s.Bus, questions.ConnectionIDs{IDs: []string{id}})
	if err != nil {
		return "", err
	}
	if len(found.Connections) == 0 {
		return "", apperr.Invalid("login_link.idp_config_id", "is not a connection")
	}
	return found.Connections[0].ProviderCode, nil
}

// Update applies edit to the profile. The tree cannot change. Where what the connection owns changes, its users follow
// in the background. The error is apperr.NotFound, InvalidParameters, Forbidden (see mayLet), AlreadyExists,
// VersionMismatch or Unavailable.
func (s *Connections) Update(ctx context.Context, id string, edit func(*Profile) error) (Doc, error) {
	before, err := Find(ctx, s.Store, id)
	if err != nil {
		return Doc{}, err
	}
	after, err := edited(*before, edit)
	if err != nil {
		return Doc{}, err
	}
	if err := after.mayLet(ctx); err != nil {
		return Doc{}, err
	}
	provider := before.ProviderCode
	if !sameLink(before.LoginLink, after.LoginLink) {
		if provider, err = s.providerOf(ctx, after.LoginLink); err != nil {
			return Doc{}, err
		}
	}
	if before.OwnsTree() == after.OwnsTree() || before.ObjectCode == "" {
		return s.store(ctx, id, edit, &after, provider)
	}
	if err := docstore.CheckExpected(ctx, id, before.Version); err != nil {
		return Doc{}, err
	}
	if err := s.ownTree(ctx, &after); err != nil {
		return Doc{}, err
	}
	doc, err := s.store(ctx, id, edit, &after, provider)
	if err != nil {
		err = errors.Join(err, s.ownTree(context.WithoutCancel(ctx), before))
	}
	return doc, err
}

// store stores the edit of a connection whose login link is that of after. The error is also VersionMismatch if another
// edit has changed the link meanwhile.
func (s *Connections) store(
	ctx context.Context, id string, edit func(*Profile) error, after *Connection, provider string,
) (Doc, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		c, err := connections.Load(ctx, tx, id)
		if err != nil {
			return Doc{}, err
		}
		now, err := edited(*c, edit)
		if err != nil {
			return Doc{}, err
		}
		if err := now.mayLet(ctx); err != nil {
			return Doc{}, err
		}
		if !sameLink(now.LoginLink, after.LoginLink) {
			return Doc{}, docstore.Mismatch(c.Version)
		}
		owns := c.Owns
		c.Profile, c.ProviderCode = now.Profile, provider
		doc, err := connections.Replace(ctx, tx, c)
		if err != nil || !doc.Changed() {
			return doc, err
		}
		if !slices.Equal(owns, c.Owns) {
			return doc, startSweep(ctx, tx, c, false)
		}
		return doc, nil
	})
}

func edited(c Connection, edit func(*Profile) error) (Connection, error) {
	proposal := c
	proposal.Owns, proposal.Extensions = slices.Clone(c.Owns), slices.Clone(c.Extensions)
	proposal.Scopes = slices.Clone(c.Scopes)
	if err := edit(&proposal.Profile); err != nil {
		return c, err
	}
	var faults apperr.Faults
	proposal.normalize()
	proposal.check(&faults)
	faults.Check(proposal.ObjectCode == c.ObjectCode, "object_code", "cannot change")
	c.Profile = proposal.Profile
	return c, faults.Err()
}

func sameLink(a, b *LoginLink) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// Enable enables a connection. The error is apperr.NotFound, Forbidden (see mayLet) or VersionMismatch.
func (s *Connections) Enable(ctx context.Context, id string) (Doc, error) {
	return connections.Edit(ctx, s.Store, id, func(_ *docstore.Tx, c *Connection) error {
		c.Status = "1"
		return c.mayLet(ctx)
	})
}

// Disable disables a connection. The error is apperr.NotFound or VersionMismatch.
func (s *Connections) Disable(ctx context.Context, id string) (Doc, error) {
	return connections.Edit(ctx, s.Store, id, func(_ *docstore.Tx, c *Connection) error {
		c.Status = "0"
		return nil
	})
}

// Delete deletes a connection with its tokens. Its users and its tree stay; they become free in the background. The
// error is apperr.NotFound or VersionMismatch.
func (s *Connections) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	defer s.Ended()
	return connections.Remove(ctx, s.Store, id, func(tx *docstore.Tx, c *Connection) error {
		if err := tokens.DeleteWhere(ctx, tx, docstore.Eq(byConnection, docstore.Text(id)), nil); err != nil {
			return err
		}
		return startSweep(ctx, tx, c, true)
	})
}

// Expect returns a connection. The error is apperr.NotFound, or VersionMismatch if the request's If-Match asks for
// another version.
func Expect(ctx context.Context, s *docstore.Store, id string) (*Connection, error) {
	return docstore.Write(docstore.WithoutCommitHook(ctx), s, func(tx *docstore.Tx) (*Connection, error) {
		return connections.Load(ctx, tx, id)
	})
}

// Edit changes a connection on the service's own account, without an event if action is "".
func Edit(ctx context.Context, tx *docstore.Tx, id, action string, edit func(*Connection)) (*Connection, error) {
	found, err := connections.LoadMany(ctx, tx, []string{id}) // If-Match is not about it
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, apperr.Missing("connection")
	}
	c := found[0]
	edit(c)
	replace := connections.As(action).Replace
	if action == "" {
		replace = connections.Collection.Replace
	}
	_, err = replace(ctx, tx, c)
	return c, err
}

// Decide tells that a person has decided about held requests of a connection. others reports that more are held.
func Decide(ctx context.Context, tx *docstore.Tx, id, action string, others bool) error {
	found, err := connections.LoadMany(ctx, tx, []string{id}) // If-Match is not about it
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return apperr.Missing("connection")
	}
	found[0].State = Active
	if others {
		found[0].State = Held
	}
	_, err = connections.As(action).Revise(ctx, tx, found[0])
	return err
}

// Count adds to the counters of a connection.
func Count(ctx context.Context, tx *docstore.Tx, id string, add func(*Connection)) error {
	found, err := connections.LoadMany(ctx, tx, []string{id})
	if err != nil || len(found) == 0 {
		return err
	}
	add(found[0])
	_, err = connections.Recount(ctx, tx, found[0])
	return err
}

// OnLoginConnectionDeleted handles connection.deleted of the identity-sources service: nobody signs in there any more.
func (s *Connections) OnLoginConnectionDeleted(ctx context.Context, e stream.Event) error {
	number, err := strconv.ParseInt(e.Subject, 10, 64)
	if err != nil {
		return nil //nolint:nilerr // no connection has such an id
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		of, err := connections.LoadWhere(ctx, tx, docstore.Eq(byIDPConfig, docstore.Number(number)), "", maxLinked)
		if err != nil {
			return err
		}
		for _, c := range of {
			c.LoginLink, c.ProviderCode = nil, ""
			if _, err := connections.Replace(ctx, tx, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxLinked is how many connections of one event are changed in one transaction.
const maxLinked = 1000
