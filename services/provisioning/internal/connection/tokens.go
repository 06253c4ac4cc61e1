package connection

import (
	"context"
	"crypto/rand"
	"encoding/base64"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// TokenPrefix begins every token, so that scanners and people know what it is.
const TokenPrefix = "scim_"

// MaxTokens is how many tokens of a connection are alive at a time.
const MaxTokens = 5

// token is a stored token. Only its SHA-256 is kept: it has 256 random bits.
type token struct {
	docstore.Meta
	ConnectionID string     `json:"connection_id"`
	Name         string     `json:"name"`
	SHA256       string     `json:"sha256"`
	TimeExpires  clock.Time `json:"time_expires"` // null: never
	TimeLastUsed clock.Time `json:"time_last_used"`
}

var tokens = docstore.Define(docstore.Schema[token]{
	Name: "tokens", Noun: "token", NoIfMatch: true,
	Due: func(t *token) clock.Time { return t.TimeExpires },
	Indexes: []docstore.Index[token]{
		docstore.Global(docstore.ByText(byHash, func(t *token) string { return t.SHA256 }), "token"),
		docstore.ByText(byConnection, func(t *token) string { return t.ConnectionID }),
	},
})

// ScimToken is a token as clients see it.
type ScimToken struct {
	ID           string     `json:"id" doc:"Of the token, to end it" example:"7"`
	Name         string     `json:"name" doc:"What it is called" example:"Okta"`
	TimeExpires  clock.Time `json:"time_expires" nullable:"true" doc:"When it ends by itself; null: never"`
	TimeLastUsed clock.Time `json:"time_last_used" nullable:"true" doc:"To the minute; null: never"`
	TimeCreated  clock.Time `json:"time_created" doc:"When it was made"`
}

// NewScimToken is a token in the answer that makes it.
type NewScimToken struct {
	ScimToken
	Secret string `json:"token" format:"password" doc:"The bearer token; shown once" example:"scim_…"`
}

// AddToken makes a token. The error is apperr.NotFound, InvalidParameters, Forbidden (see mayLet), or InvalidState if
// there are MaxTokens.
func (s *Connections) AddToken(ctx context.Context, connectionID, name string, expires clock.Time) (NewScimToken,
	error) {
	var faults apperr.Faults
	faults.Name("name", name, maxName)
	faults.Check(expires.IsZero() || expires.After(s.Store.Now()), "time_expires", "must be in the future")
	if err := faults.Err(); err != nil {
		return NewScimToken{}, err
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	text := TokenPrefix + base64.RawURLEncoding.EncodeToString(secret)
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return NewScimToken{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (NewScimToken, error) {
		c, err := connections.Load(ctx, tx, connectionID)
		if err != nil {
			return NewScimToken{}, err
		}
		if err := c.mayLet(ctx); err != nil {
			return NewScimToken{}, err
		}
		has, err := tokens.LoadWhere(ctx, tx, docstore.Eq(byConnection, docstore.Text(connectionID)), "", 10*MaxTokens)
		if err != nil {
			return NewScimToken{}, err
		}
		alive := 0
		for _, t := range has {
			if t.TimeExpires.IsZero() || t.TimeExpires.After(tx.Now) {
				alive++
			}
		}
		if alive >= MaxTokens {
			return NewScimToken{}, apperr.New(apperr.InvalidState, "a connection has at most %d tokens; end one first",
				MaxTokens)
		}
		if _, err := connections.Collection.Revise(ctx, tx, c); err != nil { // of two that count five, one fails
			return NewScimToken{}, err
		}
		t := &token{Meta: docstore.Meta{ID: id}, ConnectionID: connectionID, Name: name,
			SHA256: auth.HashOpaque(text), TimeExpires: expires}
		if _, err := tokens.Insert(ctx, tx, t); err != nil {
			return NewScimToken{}, err
		}
		return NewScimToken{t.shown(), text}, nil
	})
}

func (t *token) shown() ScimToken {
	return ScimToken{ID: t.ID, Name: t.Name, TimeExpires: t.TimeExpires, TimeLastUsed: t.TimeLastUsed,
		TimeCreated: t.TimeCreated}
}

// Tokens lists the tokens of a connection, the oldest first. The error is apperr.NotFound.
func (s *Connections) Tokens(ctx context.Context, connectionID string) ([]ScimToken, error) {
	if _, err := s.Get(ctx, connectionID); err != nil {
		return nil, err
	}
	all := []ScimToken{}
	err := tokens.Each(ctx, s.Store, docstore.Eq(byConnection, docstore.Text(connectionID)),
		func(doc docstore.Doc[token]) error {
			t, err := doc.Value()
			if err == nil {
				all = append(all, t.shown())
			}
			return err
		})
	return all, err
}

// EndToken ends a token: within the time of auth.Opaque everywhere. The error is apperr.NotFound.
func (s *Connections) EndToken(ctx context.Context, connectionID, id string) (docstore.Deleted, error) {
	defer s.Ended()
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (docstore.Deleted, error) {
		if _, err := connections.Load(ctx, tx, connectionID); err != nil {
			return docstore.Deleted{}, err
		}
		t, err := tokens.Load(ctx, tx, id)
		if err != nil {
			return docstore.Deleted{}, err
		}
		if t.ConnectionID != connectionID {
			return docstore.Deleted{}, apperr.Missing("token")
		}
		_, err = tokens.Delete(ctx, tx, t)
		return docstore.Deleted{ID: id}, err
	})
}

// DueTokens lists tokens that have expired.
func DueTokens(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return tokens.Due(ctx, s, limit)
}

// ForgetToken deletes a token that has expired.
func (s *Connections) ForgetToken(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		return tokens.DeleteWhere(ctx, tx, docstore.ID(id), nil)
	})
}

// Actor names a connection as the actor of what its client does.
func Actor(connectionID string) string { return "scim:" + connectionID }

// Holder returns whom a token with a hash stands for. The error is apperr.NotFound.
func (s *Connections) Holder(ctx context.Context, hash string) (*auth.Principal, error) {
	doc, err := tokens.FindGlobal(ctx, s.Store, byHash, hash)
	if err != nil {
		return nil, err
	}
	t, err := doc.Value()
	if err != nil {
		return nil, err
	}
	s.used(request.System(ctx, t.TenantID), t)
	return auth.Holder(t.TenantID, Actor(t.ConnectionID), auth.NewScopes(auth.SCIM), t.TimeExpires), nil
}

const usedEvery = 60_000 // milliseconds

// used notes that a token is in use: at most once a minute, and as well as it goes.
func (s *Connections) used(ctx context.Context, t *token) {
	now := s.Store.Now()
	if !t.TimeLastUsed.IsZero() && now.Millis()-t.TimeLastUsed.Millis() < usedEvery {
		return
	}
	_ = docstore.Do(docstore.WithoutCommitHook(ctx), s.Store, func(tx *docstore.Tx) error {
		found, err := tokens.LoadMany(ctx, tx, []string{t.ID})
		if err != nil || len(found) == 0 {
			return err
		}
		found[0].TimeLastUsed = tx.Now
		_, err = tokens.Replace(ctx, tx, found[0])
		return err
	})
}
