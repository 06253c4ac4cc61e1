package connection

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Sweep is work on all users and groups of a connection that follows a change of it: telling their owner, or freeing
// them. Its id is the connection's.
type Sweep struct {
	docstore.Meta
	Frees      bool       `json:"frees"` // the connection is deleted
	ObjectCode string     `json:"object_code"`
	After      string     `json:"after"` // the last user that was worked on
	TimeDue    clock.Time `json:"time_due"`
	Last       bool       `json:"last,omitempty"` // the second one of a deletion: see requestsTake
}

// requestsTake is longer than any request takes. A request that began before its connection was deleted can make links
// until then, so a deletion has a second sweep.
const requestsTake = 5 * time.Minute

var sweeps = docstore.Define(docstore.Schema[Sweep]{
	Name: "sweeps", Noun: "sweep", NoIfMatch: true, Due: func(s *Sweep) clock.Time { return s.TimeDue },
})

func startSweep(ctx context.Context, tx *docstore.Tx, c *Connection, frees bool) error {
	if err := sweeps.DeleteWhere(ctx, tx, docstore.ID(c.ID), nil); err != nil {
		return err
	}
	_, err := sweeps.Insert(ctx, tx, &Sweep{
		Meta: docstore.Meta{ID: c.ID}, Frees: frees, ObjectCode: c.ObjectCode, TimeDue: tx.Now,
	})
	return err
}

// DueSweeps lists sweeps that have work left.
func DueSweeps(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return sweeps.Due(ctx, s, limit)
}

// Sweep works on users in the order of their ids, until there are none, and then ends. users works on those after an id
// and returns the last; "" if there are no more. forget forgets what is left of a deleted connection.
func (s *Connections) Sweep(
	ctx context.Context, id string,
	users func(ctx context.Context, c *Connection, after string) (string, error),
	forget func(ctx context.Context, connectionID string) error,
) error {
	doc, err := sweeps.Find(ctx, s.Store, id)
	if err != nil {
		return err
	}
	sweep, err := doc.Value()
	if err != nil {
		return err
	}
	c := &Connection{Meta: docstore.Meta{ID: id}, Profile: Profile{Owns: []string{}}}
	if !sweep.Frees {
		if c, err = Find(ctx, s.Store, id); err != nil {
			return err
		}
	}
	for after := sweep.After; ; {
		if after, err = users(ctx, c, after); err != nil {
			return err
		}
		if after == "" {
			break
		}
		if err := s.note(ctx, sweep, after); err != nil {
			return err
		}
	}
	if sweep.Frees {
		if sweep.ObjectCode != "" {
			if err := s.freeTree(ctx, id, sweep.ObjectCode); err != nil {
				return err
			}
		}
		if err := forget(ctx, id); err != nil {
			return err
		}
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		now, err := sweeps.Load(ctx, tx, id)
		if err != nil || !sweep.is(now) {
			return err
		}
		if now.Frees && !now.Last {
			// The tree is free. By then, another may have it, or it may be deleted.
			now.Last, now.After, now.ObjectCode, now.TimeDue = true, "", "", now.TimeCreated.Add(requestsTake)
			_, err = sweeps.Replace(ctx, tx, now)
			return err
		}
		_, err = sweeps.Delete(ctx, tx, now)
		return err
	})
}

// FreeLate frees the users of a deleted connection once more, after a change that was left open has made another link.
func FreeLate(ctx context.Context, s *docstore.Store, id string) error {
	if _, err := connections.Find(ctx, s, id); !apperr.IsNotFound(err) {
		return err
	}
	return docstore.Do(ctx, s, func(tx *docstore.Tx) error {
		found, err := sweeps.LoadMany(ctx, tx, []string{id})
		if err != nil || len(found) > 0 && !found[0].Last {
			return err // the second one comes
		}
		return startSweep(ctx, tx, &Connection{Meta: docstore.Meta{ID: id}}, true)
	})
}

// note keeps how far a sweep has come. The error is apperr.NotFound or VersionMismatch if another has taken its place.
func (s *Connections) note(ctx context.Context, sweep *Sweep, after string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		now, err := sweeps.Load(ctx, tx, sweep.ID)
		if err != nil {
			return err
		}
		if !sweep.is(now) {
			return apperr.New(apperr.VersionMismatch, "another sweep has begun")
		}
		now.After = after
		_, err = sweeps.Replace(ctx, tx, now)
		return err
	})
}

// is reports whether it is the same sweep, and not one that a later change has begun in its place.
func (s *Sweep) is(now *Sweep) bool { return now.Frees == s.Frees && now.TimeCreated == s.TimeCreated }
