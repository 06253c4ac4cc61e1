package application

import (
	"context"
	"fmt"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/questions"
)

// maxSources is how many authentication sources an application can have.
const maxSources = 100

// Attach adds connections to an application's authentication sources. Those that are attached already are ignored. at
// returns the location of a connection in the request. It asks the identity-sources service. The error is
// apperr.NotFound, InvalidParameters (no such connection), InvalidState (too many), VersionMismatch or Unavailable.
func (s *Applications) Attach(ctx context.Context, id string, connections []string, at func(int) string) error {
	if _, err := s.Get(ctx, id); err != nil {
		return err
	}
	answer, err := questions.ExistingConnections.Ask(ctx, s.Bus, questions.ConnectionIDs{IDs: unique(connections)})
	if err != nil {
		return err
	}
	providers := map[string]string{}
	for _, connection := range answer.Connections {
		providers[connection.ID] = connection.ProviderCode
	}
	var faults apperr.Faults
	for i, connection := range connections {
		_, exists := providers[connection]
		faults.Check(exists, at(i), "is not a connection")
	}
	if err := faults.Err(); err != nil {
		return err
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		a, err := load(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := stillThere(ctx, tx, connections, at); err != nil {
			return err
		}
		a.IDPs = slices.Clone(a.IDPs)
		for _, connection := range connections {
			if !slices.Contains(a.connections(), connection) {
				a.IDPs = append(a.IDPs, Source{ConfigID: connection, ProviderCode: providers[connection]})
			}
		}
		if len(a.IDPs) > maxSources {
			return apperr.New(apperr.InvalidState, "an application has at most %d authentication sources", maxSources)
		}
		_, err = applications.As("idp_attached").Replace(ctx, tx, a)
		return err
	})
}

// Detach removes a connection from an application's authentication sources. The error is apperr.NotFound, also if it
// was not attached.
func (s *Applications) Detach(ctx context.Context, id, connection string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		a, err := load(ctx, tx, id)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(a.IDPs), func(source Source) bool {
			return source.ConfigID == connection
		})
		if len(left) == len(a.IDPs) {
			return apperr.Missing("authentication source")
		}
		a.IDPs = left
		_, err = applications.As("idp_detached").Replace(ctx, tx, a)
		return err
	})
}

// goneConnection records that a connection was deleted: it may be attached after the identity-sources service has said
// that it exists. Its id is the connection's.
type goneConnection struct{ docstore.Meta }

var goneConnections = docstore.Define(docstore.Schema[goneConnection]{
	Name: "deleted_connections", Noun: "deleted connection", NoIfMatch: true,
})

// stillThere reports a fault at each connection that was deleted. The transaction depends on the answer: either it, or
// the handling of the deletion, comes first and is seen by the other.
func stillThere(ctx context.Context, tx *docstore.Tx, connections []string, at func(int) string) error {
	gone, err := goneConnections.LoadMany(ctx, tx, connections)
	if err != nil || len(gone) == 0 {
		return err
	}
	var faults apperr.Faults
	for i, id := range connections {
		faults.Check(!slices.ContainsFunc(gone, func(g *goneConnection) bool { return g.ID == id }), at(i),
			"is not a connection")
	}
	return faults.Err()
}

// OnConnection handles the deletion of a connection. It may have been attached after this service had answered that
// nothing uses it.
func (s *Applications) OnConnection(ctx context.Context, e stream.Event) error {
	if err := docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		known, err := goneConnections.LoadMany(ctx, tx, []string{e.Subject})
		if err == nil && len(known) == 0 {
			_, err = goneConnections.Insert(ctx, tx, &goneConnection{docstore.Meta{ID: e.Subject}})
		}
		return err
	}); err != nil {
		return fmt.Errorf("note the deletion of connection %s: %w", e.Subject, err)
	}
	users := docstore.Eq(byConnection, docstore.Text(e.Subject))
	return applications.Each(ctx, s.Store, users, func(doc Doc) error {
		err := apperr.Ignore(s.Detach(ctx, doc.ID, e.Subject), apperr.NotFound)
		if err != nil {
			return fmt.Errorf("detach connection %s from %s: %w", e.Subject, doc.ID, err)
		}
		return nil
	})
}
