// Package link knows which links and connections to other providers have ended, until the sign-ins that rest on them
// are complete. Between the sign-in at a provider and the session lie further steps, perhaps an hour: a link that is
// deleted meanwhile, or a connection that is disabled, must not begin a session.
//
//	ends                        a sign-in
//	 │ End                       │ begins the session
//	 │ ends the sessions there   │ Counts? if not, ends it again
//	 ▼ are, and the tokens       ▼ the browser gets its cookie
//
// Whichever of the two comes first, the other one sees it.
package link

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// state says when a link or a connection has ended last. Its id is the credential or the channel of the proofs that
// rest on it.
type state struct {
	docstore.Meta
	TimeEnded clock.Time `json:"time_ended"` // proofs of before count no more
}

// kept is how long it is known: longer than any flow lasts.
const kept = 48 * time.Hour

var states = docstore.Define(docstore.Schema[state]{
	Name: "link_states", Noun: "link", Due: func(s *state) clock.Time { return s.TimeEnded.Add(kept) },
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{states.Def()} }

// Due lists the states to forget.
var Due = states.Due

// Forget deletes a state, unless the link or the connection has ended again meanwhile.
func Forget(ctx context.Context, s *docstore.Store, id string) error {
	return docstore.Do(ctx, s, func(tx *docstore.Tx) error {
		found, err := states.LoadMany(ctx, tx, []string{id})
		if err != nil || len(found) == 0 || tx.Now.Before(found[0].TimeEnded.Add(kept)) {
			return err
		}
		_, err = states.Delete(ctx, tx, found[0])
		return err
	})
}

// End notes that what rests on a link or a connection counts no more, by the credential or the channel of its proofs.
// By LoggedOut of one it notes that it begins no session any more.
func End(ctx context.Context, s *docstore.Store, id string) error {
	return docstore.Do(ctx, s, func(tx *docstore.Tx) error {
		found, err := states.LoadMany(ctx, tx, []string{id})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			_, err = states.Insert(ctx, tx, &state{Meta: docstore.Meta{ID: id}, TimeEnded: tx.Now})
			return err
		}
		found[0].TimeEnded = tx.Now
		_, err = states.Replace(ctx, tx, found[0])
		return err
	})
}

// LoggedOut is for End: the person has signed out at the other provider, of a session there or of all that rests on a
// credential. Tokens that outlive sessions stay.
func LoggedOut(sessionOrCredential string) string { return "logout:" + sessionOrCredential }

// Counts reports whether all links and connections that some proofs rest on count still.
func Counts(ctx context.Context, r docstore.Reader, proofs []proof.Proof) (bool, error) {
	return allCount(ctx, r, proofs, func(p proof.Proof) []string { return []string{p.Credential, p.Channel} })
}

// Begins reports whether they do, and nobody has signed out at the other provider since.
func Begins(ctx context.Context, r docstore.Reader, proofs []proof.Proof) (bool, error) {
	return allCount(ctx, r, proofs, func(p proof.Proof) []string {
		return []string{p.Credential, p.Channel, LoggedOut(p.Credential), LoggedOut(p.UpstreamSession)}
	})
}

func allCount(ctx context.Context, r docstore.Reader, proofs []proof.Proof, ids func(proof.Proof) []string) (bool,
	error,
) {
	for _, p := range proofs {
		if _, ok := proof.ConnectionOf(p.Channel); !ok {
			continue
		}
		docs, err := states.FindMany(ctx, r, ids(p))
		if err != nil {
			return false, err
		}
		for _, doc := range docs {
			if one, err := doc.Value(); err != nil || !p.Time.After(one.TimeEnded) {
				return false, err
			}
		}
	}
	return true, nil
}
