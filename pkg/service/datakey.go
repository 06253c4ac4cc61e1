package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// dataKey is a key that stays the same as long as the data, sealed under the configured keys. Its id is its purpose.
type dataKey struct {
	docstore.Meta
	Sealed string `json:"sealed"`
}

var dataKeys = docstore.Define(docstore.Schema[dataKey]{Name: "data_keys", Noun: "data key"})

// DataKey returns 32 bytes for a purpose that never change, whatever keys are configured. They are for values that
// cannot be made again under another key, such as keyed hashes that are compared with stored ones. DataKey makes them
// on the first call. Call it when a service starts, not for requests.
func (d Deps) DataKey(ctx context.Context, purpose string) ([]byte, error) {
	ctx = request.System(ctx, request.Platform)
	key, err := docstore.Write(ctx, d.Store, func(tx *docstore.Tx) ([]byte, error) {
		k, err := dataKeys.Load(ctx, tx, purpose)
		if apperr.IsNotFound(err) {
			made := make([]byte, 32)
			_, _ = rand.Read(made) // never fails (crypto/rand)
			_, err := dataKeys.Insert(ctx, tx, &dataKey{Meta: docstore.Meta{ID: purpose},
				Sealed: d.Keys.Seal(made, []byte(purpose))})
			return made, err
		}
		if err != nil {
			return nil, err
		}
		return d.open(k)
	})
	if _, ok := errors.AsType[*docstore.DuplicateError](err); ok { // another replica made it meanwhile
		return d.DataKey(ctx, purpose)
	}
	return key, err
}

func (d Deps) open(k *dataKey) ([]byte, error) {
	plain, err := d.Keys.Open(k.Sealed, []byte(k.ID))
	if err != nil {
		return nil, fmt.Errorf("the key for %s was sealed under a key that is not configured: %w", k.ID, err)
	}
	return plain, nil
}

// resealDataKeys seals data keys under older keys again under the first one.
func (d Deps) resealDataKeys(ctx context.Context) error {
	ctx = request.System(ctx, request.Platform)
	return dataKeys.Each(ctx, d.Store, docstore.Filter{}, func(doc docstore.Doc[dataKey]) error {
		k, err := doc.Value()
		if err != nil || !d.Keys.NeedsReseal(k.Sealed) {
			return err
		}
		return docstore.Do(ctx, d.Store, func(tx *docstore.Tx) error {
			k, err := dataKeys.Load(ctx, tx, doc.ID)
			if err != nil {
				return err
			}
			plain, err := d.open(k)
			if err != nil {
				return err
			}
			k.Sealed = d.Keys.Seal(plain, []byte(k.ID))
			_, err = dataKeys.Replace(ctx, tx, k)
			return err
		})
	})
}
