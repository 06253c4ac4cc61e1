// Package link knows which links and connections to other providers have ended, until the sign-ins that rest on them
// are complete. Between the sign-in at a provider and the session lie further steps, perhaps an hour: a link that is
// deleted meanwhile, or a connection that is disabled, must not begin a session.
package link

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// state is that of a link or of a connection. Its id is the credential or the channel of the proofs that rest on it.
type state struct {
	docstore.Meta
	TimeEnded clock.Time `json:"time_ended,omitzero"` // proofs of before count no more
	TimeUsed  clock.Time `json:"time_used"`
}

// kept is how long it is known: longer than any flow lasts.
const kept = 48 * time.Hour

var states = docstore.Define(docstore.Schema[state]{
	Name: "link_states", Noun: "link", Due: func(s *state) clock.Time { return s.TimeUsed.Add(kept) },
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{states.Def()} }

// Due lists the states to forget.
var Due = states.Due

// Forget deletes a state, unless it was used meanwhile.
func Forget(ctx context.Context, s *docstore.Store, id string) error {
	return docstore.Do(ctx, s, func(tx *docstore.Tx) error {
		found, err := states.LoadMany(ctx, tx, []string{id})
		if err != nil || len(found) == 0 || tx.Now.Before(found[0].TimeUsed.Add(kept)) {
			return err
		}
		_, err = states.Delete(ctx, tx, found[0])
		return err
	})
}

// End notes that what rests on a link or a connection counts no more, by the credential or the channel of its proofs.
func End(ctx context.Context, s *docstore.Store, id string) error {
	return docstore.Do(ctx, s, func(tx *docstore.Tx) error {
		_, err := use(ctx, tx, id, tx.Now)
		return err
	})
}

// use stores that a link or a connection is used, or ends if ended is not zero. It returns what is known of it.
func use(ctx context.Context, tx *docstore.Tx, id string, ended clock.Time) (*state, error) {
	found, err := states.LoadMany(ctx, tx, []string{id})
	if err != nil {
		return nil, err
	}
	one := &state{Meta: docstore.Meta{ID: id}}
	if len(found) > 0 {
		one = found[0]
	}
	one.TimeUsed = tx.Now
	if !ended.IsZero() {
		one.TimeEnded = ended
	}
	if len(found) == 0 {
		_, err = states.Insert(ctx, tx, one)
	} else {
		_, err = states.Replace(ctx, tx, one)
	}
	return one, err
}

// Hold reports whether all links and connections that some proofs rest on count still, for the transaction that begins
// a session: an event about a link that comes at the same time waits, and ends the session.
func Hold(ctx context.Context, tx *docstore.Tx, proofs []proof.Proof) (bool, error) {
	for _, p := range proofs {
		if _, ok := proof.ConnectionOf(p.Channel); !ok {
			continue
		}
		if one, err := use(ctx, tx, p.Credential, clock.Time{}); err != nil || one.ended(p) {
			return false, err
		}
	}
	// Everybody signs in through the connection: it is only read, so that they do not wait for each other.
	return Count(ctx, tx, proofs)
}

// ended reports whether a proof counts no more.
func (s *state) ended(p proof.Proof) bool { return !s.TimeEnded.IsZero() && !p.Time.After(s.TimeEnded) }

// Count reports whether all links that some proofs rest on count still.
func Count(ctx context.Context, r docstore.Reader, proofs []proof.Proof) (bool, error) {
	for _, p := range proofs {
		if _, ok := proof.ConnectionOf(p.Channel); !ok {
			continue
		}
		docs, err := states.FindMany(ctx, r, []string{p.Credential, p.Channel})
		if err != nil {
			return false, err
		}
		for _, doc := range docs {
			if one, err := doc.Value(); err != nil || one.ended(p) {
				return false, err
			}
		}
	}
	return true, nil
}
