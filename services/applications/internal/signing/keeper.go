package signing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// Config is what a Keeper needs.
type Config struct {
	Store  *docstore.Store
	Issuer string        // iss of the tokens
	Every  time.Duration // how long a key signs before the next one does
	Log    *slog.Logger

	// OnEnd is called in the transaction that removes a key whose tokens have not expired, with the key's id.
	OnEnd func(ctx context.Context, tx *docstore.Tx, keyID string) error
}

// Keeper holds the ring's keys in memory, for one replica.
type Keeper struct {
	Config
	signer *auth.Signer

	mu     sync.Mutex
	loaded *ring     // as last read; nil at first
	keys   auth.Keys // its key pairs
}

// Open reads the ring of keys and creates it at the first start. Of several replicas that start at once, one creates
// it.
func Open(ctx context.Context, c Config) (*Keeper, error) {
	k := &Keeper{Config: c}
	ctx = request.System(ctx, request.Platform)
	doc, err := rings.Find(ctx, c.Store, ringID)
	if apperr.IsNotFound(err) {
		if err := k.begin(ctx); err != nil {
			return nil, err
		}
		doc, err = rings.Find(ctx, c.Store, ringID)
	}
	if err == nil {
		err = k.load(ctx, doc)
	}
	if err == nil && !k.loaded.issuesUnder(c.Issuer) {
		err = k.issueUnder(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the signing keys: %w", err)
	}
	now, err := k.loaded.at(c.Store.Now(), k.keys)
	if err != nil {
		return nil, err
	}
	k.signer, err = auth.NewSigner(c.Issuer, now, c.Store)
	return k, err
}

// begin stores a ring unless one is stored.
func (k *Keeper) begin(ctx context.Context) error {
	first, err := auth.GenerateKey()
	if err != nil {
		return err
	}
	err = docstore.Do(ctx, k.Store, func(tx *docstore.Tx) error {
		if _, err := rings.Find(ctx, tx, ringID); !apperr.IsNotFound(err) {
			return err
		}
		r, err := newRing(first, tx.Now)
		if err != nil {
			return err
		}
		_, err = rings.Insert(ctx, tx, r)
		return err
	})
	if _, ok := errors.AsType[*docstore.DuplicateError](err); ok { // another replica was faster
		return k.begin(ctx)
	}
	return err
}

// issueUnder stores that tokens are issued under another URL from now on.
func (k *Keeper) issueUnder(ctx context.Context) error {
	doc, err := docstore.Write(ctx, k.Store, func(tx *docstore.Tx) (docstore.Doc[ring], error) {
		r, err := rings.Load(ctx, tx, ringID)
		if err != nil {
			return docstore.Doc[ring]{}, err
		}
		if !r.issuesUnder(k.Issuer) {
			r.issueUnder(k.Issuer, tx.Now)
		}
		return rings.Replace(ctx, tx, r)
	})
	if err != nil {
		return err
	}
	return k.load(ctx, doc)
}

// EarlierIssuers are the former issuer URLs of tokens that may still be valid.
func (k *Keeper) EarlierIssuers() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var urls []string
	for _, i := range k.loaded.Issuers[:len(k.loaded.Issuers)-1] {
		urls = append(urls, i.URL)
	}
	return urls
}

// load decrypts a ring's key pairs, unless this version of the ring is loaded already.
func (k *Keeper) load(ctx context.Context, doc docstore.Doc[ring]) error {
	if k.loaded != nil && k.loaded.Version == doc.Version {
		return nil
	}
	r, err := doc.Value()
	if err != nil {
		return err
	}
	keys, err := pairs(ctx, k.Store)
	if err != nil {
		return err
	}
	for _, key := range r.Keys {
		if !slices.Contains(keys.IDs(), key.ID) { // the ring has changed between the two reads
			return apperr.Away("the ring of signing keys", fmt.Errorf("no pair for the key %s", key.ID))
		}
	}
	k.loaded, k.keys = r, keys
	return nil
}

// Signer returns the signer of this replica. It always uses the key that is active.
func (k *Keeper) Signer() *auth.Signer { return k.signer }

// Refresh reads the ring again, because another replica may have changed it, starts a rotation when one is due, and
// lets the signer use the keys that are active now. It is for a service.Task and should run every few seconds.
func (k *Keeper) Refresh(ctx context.Context) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ctx = request.System(ctx, request.Platform)
	doc, err := rings.Find(ctx, k.Store, ringID)
	if err != nil {
		return 0, err
	}
	if err := k.load(ctx, doc); err != nil {
		return 0, err
	}
	if k.rotationDue() {
		if _, err := k.rotate(ctx, false, true); err != nil {
			return 0, err
		}
	}
	return 0, k.use()
}

// rotationDue reports whether the newest key has signed for so long that the next key should be published.
func (k *Keeper) rotationDue() bool {
	return !k.Store.Now().Before(k.loaded.newest().TimeActive.Add(k.Every - publishedBefore))
}

// use gives the signer the keys that are valid now, unless it has them already.
func (k *Keeper) use() error {
	now, err := k.loaded.at(k.Store.Now(), k.keys)
	if err != nil || slices.Equal(now.IDs(), k.signer.Keys().IDs()) {
		return err
	}
	k.Log.Info("signing keys", "signs", now.IDs()[0], "published", len(now.IDs()))
	return k.signer.Use(now)
}

// Rotate publishes a new key, which starts to sign ten minutes later. While a published key has not yet started to
// sign, Rotate changes nothing. With atOnce, for keys that others may know, the new key signs now, and all older keys
// end with their tokens, in every replica of every service within seconds: see Config.OnEnd. A token that another
// replica issues at that moment may have ended already.
func (k *Keeper) Rotate(ctx context.Context, atOnce bool) ([]Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	doc, err := k.rotate(docstore.WithoutCommitHook(ctx), atOnce, false)
	if err != nil {
		return nil, err
	}
	r, err := doc.Value()
	if err != nil {
		return nil, err
	}
	k.Log.InfoContext(ctx, "the signing keys are rotated", "by", request.From(ctx).Actor, "at_once", atOnce, "dry_run",
		docstore.IsDryRun(ctx))
	return r.Keys, k.use()
}

// rotate changes the stored ring and loads it. With ifDue it changes nothing if another replica has rotated since
// the ring was loaded.
func (k *Keeper) rotate(caller context.Context, atOnce, ifDue bool) (docstore.Doc[ring], error) {
	ctx := request.System(caller, request.Platform) // the ring belongs to no tenant; events are the caller's
	made, err := auth.GenerateKey()
	if err != nil {
		return docstore.Doc[ring]{}, err
	}
	held := k.loaded.Version
	doc, err := docstore.Write(ctx, k.Store, func(tx *docstore.Tx) (docstore.Doc[ring], error) {
		r, err := rings.Load(ctx, tx, ringID)
		if err != nil {
			return docstore.Doc[ring]{}, err
		}
		active := tx.Now.Add(publishedBefore)
		stay := func(key Key) bool { return key.TimeEnd.IsZero() || key.TimeEnd.After(tx.Now) }
		switch {
		case atOnce:
			active, stay = tx.Now, func(key Key) bool { return key.ID == made.ID }
			if err := k.end(caller, tx, r); err != nil {
				return docstore.Doc[ring]{}, err
			}
		case ifDue && r.Version != held, r.newest().TimeActive.After(tx.Now):
			return rings.Replace(ctx, tx, r) // unchanged
		case r.staying(stay) >= maxKeys:
			return docstore.Doc[ring]{}, apperr.New(apperr.InvalidState, "%d keys are published already", maxKeys)
		}
		keys, err := pairs(ctx, tx)
		if err != nil {
			return docstore.Doc[ring]{}, err
		}
		if err := r.add(keys, made, active, tx.Now, stay); err != nil {
			return docstore.Doc[ring]{}, err
		}
		return rings.Replace(ctx, tx, r)
	})
	if err != nil || docstore.IsDryRun(ctx) {
		return doc, err
	}
	return doc, k.load(ctx, doc)
}

// end reports that all keys of the ring end now.
func (k *Keeper) end(ctx context.Context, tx *docstore.Tx, r *ring) error {
	for _, key := range r.Keys {
		if err := k.OnEnd(ctx, tx, key.ID); err != nil {
			return err
		}
	}
	return nil
}

// Keys lists the ring's keys in the order in which they sign.
func (k *Keeper) Keys(ctx context.Context) ([]Key, error) {
	doc, err := rings.Find(request.System(ctx, request.Platform), k.Store, ringID)
	if err != nil {
		return nil, err
	}
	r, err := doc.Value()
	if err != nil {
		return nil, err
	}
	return r.Keys, nil
}
