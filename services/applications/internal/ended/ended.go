// Package ended stores which tokens of the platform have ended before they expire, until they expire. Each entry is
// emitted as an event token.ended, which all replicas of all services follow. Services that start ask for all entries:
// see service.EndedTokens.
package ended

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
)

// entry is the stored document.
type entry struct {
	docstore.Meta
	service.EndedToken
}

var entries = docstore.Define(docstore.Schema[entry]{
	Name: "ended_tokens", Noun: "ended token",
	Due: func(e *entry) clock.Time { return e.Until.Add(auth.Leeway) },
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{entries.Def()} }

// Due lists the entries whose tokens have expired.
var Due = entries.Due

// Token ends one token, which expires at the given time. The context's tenant is the token's.
func Token(ctx context.Context, tx *docstore.Tx, id string, expires clock.Time) error {
	return add(ctx, tx, id, service.EndedToken{TokenID: id, Until: expires})
}

// Client ends the tokens that a client got while its record had an earlier version than this one. It must be called in
// the transaction that writes this version; for a deleted record that is the next version. The context's tenant is the
// client's.
func Client(ctx context.Context, tx *docstore.Tx, clientID string, version int64) error {
	return add(ctx, tx, clientID+"."+strconv.FormatInt(version, 10), service.EndedToken{
		ClientID: clientID, ClientVersion: version, Until: tx.Now.Add(auth.MaxTokenTTL),
	})
}

// Key ends the tokens that a key has signed.
func Key(ctx context.Context, tx *docstore.Tx, keyID string) error {
	return add(ctx, tx, "key."+keyID, service.EndedToken{KeyID: keyID, Until: tx.Now.Add(auth.MaxTokenTTL)})
}

func add(ctx context.Context, tx *docstore.Tx, id string, what service.EndedToken) error {
	e := &entry{docstore.Meta{ID: id}, what}
	doc, err := entries.Insert(inPlatform(ctx), tx, e)
	if err != nil {
		return err
	}
	record, err := json.Marshal(struct {
		ID string `json:"id"`
		service.EndedToken
	}{id, what})
	if err != nil {
		return err
	}
	return outbox.Append(ctx, tx, outbox.Event{
		Entity: "token", Action: "ended", Source: "/oauth2/ended", Subject: id, Revision: doc.Revision(),
		Record: record,
	})
}

// inPlatform returns a context for the tenant of all entries, which are read together.
func inPlatform(ctx context.Context) context.Context {
	info := request.From(ctx)
	info.Tenant = request.Platform
	return request.With(ctx, info)
}

// Known reports whether an error of Token means that the token had ended already.
func Known(err error) bool {
	duplicate, ok := errors.AsType[*docstore.DuplicateError](err)
	return ok && duplicate.Collection == entries.Def().Name
}

// Follower keeps this service's own verifier up to date: from its store at first, then by the events. keyEnded is
// called when either has an ended key, so that this replica stops signing with it.
func Follower(v *auth.Verifier, store *docstore.Store, keyEnded func(context.Context) error) stream.FollowerConfig {
	follower := service.EndedTokens(v, func(ctx context.Context, fn func(service.EndedToken) error) error {
		hasKey := false
		err := entries.Each(inPlatform(ctx), store, docstore.Filter{}, func(doc docstore.Doc[entry]) error {
			e, err := doc.Value()
			if err != nil {
				return err
			}
			hasKey = hasKey || e.KeyID != ""
			return fn(e.EndedToken)
		})
		if err != nil || !hasKey {
			return err
		}
		return keyEnded(ctx)
	})
	follower.Meanwhile = follower.Snapshot // other replicas end tokens in the same store
	end := follower.Handle
	follower.Handle = func(ctx context.Context, e stream.Event) error {
		var data struct{ Record service.EndedToken }
		if err := errors.Join(end(ctx, e), e.Read(&data)); err != nil || data.Record.KeyID == "" {
			return err
		}
		return keyEnded(ctx)
	}
	return follower
}

// perPage is the number of entries in an answer to another service. Each has about 100 bytes.
const perPage = 1000

// Answer answers other services' question for all entries.
func Answer(b *bus.Bus, store *docstore.Store) error {
	return service.EndedQuestion.Answer(b, func(ctx context.Context, q service.EndedPage) (service.EndedList, error) {
		page, err := entries.Page(inPlatform(ctx), store, docstore.Query{Limit: perPage, After: q.After})
		if err != nil {
			return service.EndedList{}, err
		}
		list := service.EndedList{Ended: make([]service.EndedToken, len(page.Docs)), Next: page.Next}
		for i := range page.Docs {
			e, err := page.Docs[i].Value()
			if err != nil {
				return service.EndedList{}, err
			}
			list.Ended[i] = e.EndedToken
		}
		return list, nil
	})
}

// Forget removes an entry whose tokens have expired.
func Forget(ctx context.Context, store *docstore.Store, id string) error {
	return docstore.Do(ctx, store, func(tx *docstore.Tx) error {
		e, err := entries.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		_, err = entries.Delete(ctx, tx, e)
		return err
	})
}
