package gate

import (
	"context"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/questions"
)

// List returns a page of the held requests of a connection. The error is apperr.NotFound or InvalidParameters.
func (g *Gate) List(ctx context.Context, connectionID string, p docstore.Paging) (docstore.Page[Request], error) {
	if _, err := connection.Find(ctx, g.Store, connectionID); err != nil {
		return docstore.Page[Request]{}, err
	}
	return requests.List(ctx, g.Store, docstore.Eq(byConnection, docstore.Text(connectionID)), p)
}

// GateOutcome is the answer to an approval or a rejection.
type GateOutcome struct {
	Requests int              `json:"requests" doc:"How many were held" example:"12"`
	Done     int              `json:"done" doc:"How many were carried out" example:"11"`
	Skipped  []SkippedRequest `json:"skipped" doc:"Those that were not carried out; only of the ones that were tried already"`
	Left     int              `json:"left" doc:"How many are still being carried out" example:"0"`
}

// SkippedRequest is a request that was approved and not carried out.
type SkippedRequest struct {
	ID     string `json:"id" doc:"Of the held request"`
	Path   string `json:"path" doc:"Of the request" example:"/scim/v2/Users/1048577"`
	Reason string `json:"reason" doc:"Why" example:"it was revived since"`
}

const (
	atOnce      = 500              // requests that one transaction approves or drops
	approveTime = 20 * time.Second // for carrying out while the client waits
	leaveAlone  = 30 * time.Second // before another replica carries out what is left
)

// Approve carries out held requests: those with the ids, or with nil all. If nothing is held then, the count of
// removals begins again. Of a request whose resource has changed since, only the removal is carried out; one that the
// client has taken back is skipped. What takes too long is carried out in the background. The error is
// apperr.NotFound, InvalidParameters at ids, or Forbidden (see MayAct and mayGive).
func (g *Gate) Approve(ctx context.Context, connectionID string, ids []string) (GateOutcome, error) {
	out := GateOutcome{Skipped: []SkippedRequest{}}
	c, err := connection.Expect(ctx, g.Store, connectionID)
	if err == nil {
		err = c.MayAct(ctx)
	}
	if err == nil {
		err = g.known(ctx, connectionID, ids)
	}
	if err == nil {
		err = g.mayGive(ctx, connectionID, ids)
	}
	if err != nil {
		return out, err
	}
	if out.Requests, err = g.end(ctx, connectionID, "approved", ids, func(tx *docstore.Tx, r *Request) error {
		if err := r.mayGive(ctx); err != nil { // it came meanwhile
			return err
		}
		r.Approved, r.TimeDue = true, tx.Now.Add(leaveAlone)
		_, err := requests.Replace(ctx, tx, r)
		return err
	}); err != nil || docstore.IsDryRun(ctx) {
		return out, err
	}
	until := time.Now().Add(approveTime)
	theirs := docstore.Prefix(byResource, connectionID+"/")
	err = requests.Each(ctx, g.Store, theirs, func(d docstore.Doc[Request]) error {
		r, err := d.Value()
		if err != nil || !r.Approved {
			return err
		}
		if time.Now().After(until) {
			out.Left++
			return nil
		}
		switch reason, err := g.carryOut(ctx, r); {
		case err != nil:
			out.Left++
		case reason != "":
			out.Skipped = append(out.Skipped, SkippedRequest{r.ID, r.Path, reason})
		default:
			out.Done++
		}
		return nil
	})
	return out, err
}

// known refuses ids that are of no held request of a connection.
func (g *Gate) known(ctx context.Context, connectionID string, ids []string) error {
	docs, err := requests.FindMany(ctx, g.Store, ids)
	if err != nil {
		return err
	}
	held := map[string]bool{}
	for i := range docs {
		r, err := docs[i].Value()
		if err != nil {
			return err
		}
		held[r.ID] = r.ConnectionID == connectionID && !r.Approved
	}
	var faults apperr.Faults
	for i, id := range ids {
		faults.Check(held[id], apperr.Item("ids", i), "must be the id of a held request of the connection")
	}
	return faults.Err()
}

// mayGive refuses a caller who lacks a scope that a held request of a connection gives people; ids are as in Approve.
func (g *Gate) mayGive(ctx context.Context, connectionID string, ids []string) error {
	if auth.AllScopes.Lacking(ctx) == "" {
		return nil
	}
	return requests.Each(ctx, g.Store, giving(connectionID), func(d docstore.Doc[Request]) error {
		r, err := d.Value()
		if err != nil || ids != nil && !slices.Contains(ids, r.ID) {
			return err
		}
		return r.mayGive(ctx)
	})
}

func (r *Request) mayGive(ctx context.Context) error {
	if scope := (questions.Scopes{Scopes: r.Scopes}).Set().Lacking(ctx); scope != "" {
		return apperr.New(apperr.Forbidden, "a held request gives people the scope %s, which the caller lacks", scope)
	}
	return nil
}

// Reject drops held requests: those with the ids, or with nil all. What was removed before still counts.
func (g *Gate) Reject(ctx context.Context, connectionID string, ids []string) (GateOutcome, error) {
	out := GateOutcome{Skipped: []SkippedRequest{}}
	_, err := connection.Expect(ctx, g.Store, connectionID)
	if err == nil {
		err = g.known(ctx, connectionID, ids)
	}
	if err != nil {
		return out, err
	}
	out.Requests, err = g.end(ctx, connectionID, "rejected", ids, func(tx *docstore.Tx, r *Request) error {
		_, err := requests.Delete(ctx, tx, r)
		return err
	})
	return out, err
}

// end calls do with held requests: those with the ids, or with nil all. After do they must not be held any more. It
// ends the state held of the connection if there are no others.
func (g *Gate) end(
	ctx context.Context, connectionID, action string, ids []string, do func(*docstore.Tx, *Request) error,
) (n int, err error) {
	held := docstore.Eq(byConnection, docstore.Text(connectionID))
	for left := ids; ; {
		part := left[:min(len(left), atOnce)]
		left = left[len(part):]
		some, err := docstore.Write(docstore.WithoutCommitHook(ctx), g.Store, func(tx *docstore.Tx) (int, error) {
			those := held
			if ids != nil {
				those = docstore.And(held, docstore.ID(part...))
			}
			found, err := requests.LoadWhere(ctx, tx, those, "", atOnce)
			if err != nil {
				return 0, err
			}
			for _, r := range found {
				if err := do(tx, r); err != nil {
					return 0, err
				}
			}
			return len(found), nil
		})
		if err != nil {
			return n, err
		}
		n += some
		if ids != nil && len(left) == 0 || ids == nil && some < atOnce || docstore.IsDryRun(ctx) {
			break
		}
	}
	return n, docstore.Do(docstore.WithoutCommitHook(ctx), g.Store, func(tx *docstore.Tx) error {
		others, err := requests.CountTo(ctx, tx, held, 1)
		if err != nil {
			return err
		}
		if action == "approved" && others.N == 0 {
			if err := counts.DeleteWhere(ctx, tx, countsOf(connectionID), nil); err != nil {
				return err
			}
		}
		return connection.Decide(ctx, tx, connectionID, action, others.N > 0)
	})
}

// carryOut carries out one approved request. It returns why it was skipped, or an error if it should be tried again.
func (g *Gate) carryOut(ctx context.Context, r *Request) (reason string, err error) {
	c, err := connection.Find(ctx, g.Store, r.ConnectionID)
	switch {
	case err != nil:
	case r.Revived:
		reason = "it was revived since"
	default:
		if err = apperr.New(apperr.VersionMismatch, "it has changed"); len(r.Stays) == 0 {
			err = g.Do(Approved(ctx), c, r)
		}
		if apperr.KindOf(err) == apperr.VersionMismatch && r.removes() {
			err = g.Remove(Approved(ctx), c, r)
		}
	}
	switch apperr.KindOf(err) {
	case "":
	case apperr.VersionMismatch, apperr.NotFound:
		reason = "the resource has changed since"
	case apperr.Unavailable, apperr.Internal, apperr.OutcomeUnknown:
		return "", err
	default:
		reason = "it was refused"
	}
	return reason, docstore.Do(docstore.WithoutCommitHook(ctx), g.Store, func(tx *docstore.Tx) error {
		return requests.DeleteWhere(ctx, tx, docstore.ID(r.ID), nil)
	})
}

// Due lists approved requests that were not carried out yet.
func Due(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return requests.Due(ctx, s, limit)
}

// CarryOut carries out an approved request that the approval has left.
func (g *Gate) CarryOut(ctx context.Context, id string) error {
	doc, err := requests.Find(ctx, g.Store, id)
	if err != nil {
		return err
	}
	r, err := doc.Value()
	if err != nil {
		return err
	}
	_, err = g.carryOut(ctx, r)
	return err
}

// Forget forgets what is held of a deleted connection.
func Forget(ctx context.Context, s *docstore.Store, connectionID string) error {
	return docstore.Do(ctx, s, func(tx *docstore.Tx) error {
		if err := counts.DeleteWhere(ctx, tx, countsOf(connectionID), nil); err != nil {
			return err
		}
		return requests.DeleteWhere(ctx, tx, docstore.Prefix(byResource, connectionID+"/"), nil)
	})
}
