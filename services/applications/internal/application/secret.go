package application

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
)

// Secret is the public description of a client secret.
type Secret struct {
	ID          string     `json:"id" doc:"Of the secret" example:"1048580"`
	Hint        string     `json:"hint" doc:"The last characters" example:"…a3f9"`
	TimeCreated clock.Time `json:"time_created" doc:"When it was made"`
	TimeExpires clock.Time `json:"time_expires" nullable:"true" doc:"null: it does not expire"`
}

// Limits of secrets.
const (
	secretBytes = 32 // 256 bits
	maxSecrets  = 5  // valid at the same time
	MaxGrace    = 90 * 24 * time.Hour
)

// hashes are the hashes of an application's client secrets, by the secrets' ids. The document has the application's id.
// It is separate, so that no answer or event can contain the hashes.
type hashes struct {
	docstore.Meta
	SHA256 map[string]string `json:"sha256"` // in hexadecimal
}

var secretHashes = docstore.Define(docstore.Schema[hashes]{Name: "secret_hashes", Noun: "secret", NoIfMatch: true})

// keepsSecrets reports whether an application runs on a server of its own. Single-page applications and programs on
// people's devices are public clients (RFC 6749 §2.1): no endpoint takes a secret of them.
func (p *Profile) keepsSecrets() bool {
	return p.Category == StandardWeb || p.Category == BackendService
}

// newSecret makes a client secret and its public description.
func newSecret(id string) (value string, shown Secret) {
	value = secret.Token(secretBytes)
	return value, Secret{ID: id, Hint: hint(value)}
}

// hint is the end of a secret, by which people can tell secrets apart.
func hint(value string) string { return "…" + value[len(value)-4:] }

// HashSecret returns the stored form of client secrets: SHA-256 in hexadecimal. Only secrets that can be guessed need a
// slow hash; 256 random bits cannot be guessed (decision 26).
func HashSecret(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

// Refreshed is the answer to a refresh of the client secrets.
type Refreshed struct {
	ClientID       string     `json:"client_id" doc:"Whose it is" example:"4mrhvkqtwz5c2d7ba3gxyun6ep"`
	ClientSecret   string     `json:"client_secret" format:"password" doc:"The new secret; shown once" example:"…"`
	TimeExpiresOld clock.Time `json:"time_expires_old" doc:"When the former secrets expire"`
}

// RefreshSecrets adds a new client secret. Earlier ones expire after grace, or sooner if they already had an earlier
// end. Tokens end at once. The error is apperr.NotFound, VersionMismatch, Forbidden (the application has scopes that
// the caller lacks) or InvalidState (too many valid secrets, or an application that cannot keep one).
func (s *Applications) RefreshSecrets(ctx context.Context, id string, grace time.Duration) (Refreshed, error) {
	secretID, err := s.Store.NewID(ctx)
	if err != nil {
		return Refreshed{}, err
	}
	value, shown := newSecret(secretID)
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Refreshed, error) {
		a, err := load(ctx, tx, id)
		if err != nil {
			return Refreshed{}, err
		}
		if !a.keepsSecrets() {
			return Refreshed{}, apperr.New(apperr.InvalidState,
				"applications of category %s run where a secret cannot be kept: they have none", a.Category)
		}
		ends := tx.Now.Add(grace)
		for i := range a.Secrets {
			if old := &a.Secrets[i]; old.TimeExpires.IsZero() || old.TimeExpires.After(ends) {
				old.TimeExpires = ends
			}
		}
		shown := shown
		shown.TimeCreated = tx.Now
		a.Secrets = append(a.Secrets, shown)
		a.removeExpiredSecrets(tx.Now)
		if len(a.Secrets) > maxSecrets {
			return Refreshed{}, apperr.New(apperr.InvalidState,
				"the application has %d secrets that are still valid; with grace_seconds=0 they expire at once",
				maxSecrets)
		}
		if err := keepHashes(ctx, tx, a, map[string]string{secretID: HashSecret(value)}); err != nil {
			return Refreshed{}, err
		}
		if _, err := applications.As("secret_refreshed").Replace(ctx, tx, a); err != nil {
			return Refreshed{}, err
		}
		if err := s.OnEnd(ctx, tx, a); err != nil {
			return Refreshed{}, err
		}
		return Refreshed{ClientID: a.ClientID, ClientSecret: value, TimeExpiresOld: ends}, nil
	})
}

// keepHashes stores the hashes of an application's secrets: known and new ones.
func keepHashes(ctx context.Context, tx *docstore.Tx, a *Application, fresh map[string]string) error {
	kept, err := secretHashes.LoadMany(ctx, tx, []string{a.ID})
	if err != nil {
		return err
	}
	h := &hashes{Meta: docstore.Meta{ID: a.ID}}
	if len(kept) > 0 {
		h = kept[0]
	}
	is := map[string]string{}
	for _, shown := range a.Secrets {
		if hash, ok := fresh[shown.ID]; ok {
			is[shown.ID] = hash
		} else if hash, ok := h.SHA256[shown.ID]; ok {
			is[shown.ID] = hash
		}
	}
	h.SHA256 = is
	if len(kept) == 0 {
		_, err = secretHashes.Insert(ctx, tx, h)
	} else {
		_, err = secretHashes.Replace(ctx, tx, h)
	}
	return err
}

// due is the time at which the next of the secrets expires.
func (a *Application) due() clock.Time {
	var due clock.Time
	for _, shown := range a.Secrets {
		if !shown.TimeExpires.IsZero() && (due.IsZero() || shown.TimeExpires.Before(due)) {
			due = shown.TimeExpires
		}
	}
	return due
}

// removeExpiredSecrets removes expired secrets, and reports whether there were any.
func (a *Application) removeExpiredSecrets(now clock.Time) bool {
	before := len(a.Secrets)
	a.Secrets = slices.DeleteFunc(slices.Clone(a.Secrets), func(shown Secret) bool {
		return !shown.TimeExpires.IsZero() && !shown.TimeExpires.After(now)
	})
	return len(a.Secrets) < before
}

// Due lists applications with expired secrets.
func Due(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return applications.Due(ctx, s, limit)
}

// DeleteExpiredSecrets deletes the expired secrets of an application.
func (s *Applications) DeleteExpiredSecrets(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		a, err := applications.Load(ctx, tx, id)
		if err != nil || !a.removeExpiredSecrets(tx.Now) {
			return err
		}
		if err := keepHashes(ctx, tx, a, nil); err != nil {
			return err
		}
		_, err = applications.Replace(ctx, tx, a)
		return err
	})
}
