package docstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/transaction"
)

// sealingKey records since when the first of the configured keys has been the first. There is one, in the platform's
// tenant. Since grows with every change of the first key, so all values under other keys have a smaller KeySince,
// including those that a replica with the former configuration still writes.
type sealingKey struct {
	Meta
	Key   string     `json:"key"` // its id
	Since clock.Time `json:"since"`
}

const firstKey = "first"

var sealingKeys = Define(Schema[sealingKey]{Name: "sealing_keys", Noun: "sealing key", NoIfMatch: true})

// SealWith sets the keys for sealed members, and records in the database if the first of them is a new one. Call it
// before the first write.
func (s *Store) SealWith(ctx context.Context, keys *secret.Keyring) error {
	s.keys = keys
	if !s.seals || keys == nil {
		return nil
	}
	ctx = request.System(ctx, request.Platform)
	var err error
	s.keySince, err = Write(ctx, s, func(tx *Tx) (clock.Time, error) {
		found, err := sealingKeys.LoadMany(ctx, tx, []string{firstKey})
		if err != nil {
			return clock.Time{}, err
		}
		if len(found) == 0 {
			first := &sealingKey{Meta: Meta{ID: firstKey}, Key: keys.Primary(), Since: tx.Now}
			_, err = sealingKeys.Insert(ctx, tx, first)
			return first.Since, err
		}
		first := found[0]
		if first.Key != keys.Primary() {
			first.Key, first.Since = keys.Primary(), latest(tx.Now, first.Since.Add(time.Millisecond))
		}
		_, err = sealingKeys.Replace(ctx, tx, first)
		return first.Since, err
	})
	if _, ok := errors.AsType[*DuplicateError](err); ok { // another replica has inserted the record at the same time
		return s.SealWith(ctx, keys)
	}
	if err != nil {
		return fmt.Errorf("docstore: record the sealing key: %w", err)
	}
	return nil
}

// UnderOlderKeys lists records of all tenants with a sealed member that is not sealed under the first of the configured
// keys, those with the oldest keys first.
func UnderOlderKeys(ctx context.Context, s *Store, limit int) ([]Ref, error) {
	if err := transaction.Refuse("docstore: UnderOlderKeys"); err != nil {
		return nil, err
	}
	if s.keys == nil || !s.seals {
		return nil, nil
	}
	return s.engine.Due(ctx, sealed.untyped.def, s.keySince.Millis()-1, limit)
}

// Reseal seals the secrets of one record, whose id UnderOlderKeys lists, under the first key. It does not overwrite a
// secret that is written at the same time. The error is apperr.NotFound if the record has no secrets any more, and
// secret.ErrOpen if the key of one is not configured.
func Reseal(ctx context.Context, s *Store, id string) error {
	return Do(ctx, s, func(tx *Tx) error {
		v, err := sealed.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		if !v.KeySince.Before(s.keySince) { // another replica was first
			return nil
		}
		if err := v.sealUnder(s); err != nil {
			return err
		}
		_, err = sealed.Replace(ctx, tx, v)
		return err
	})
}

// sealUnder seals all values under the first key. It changes nothing if one cannot be opened: secret.ErrOpen.
func (v *sealedValues) sealUnder(s *Store) error {
	collection, id, _ := strings.Cut(v.ID, ".")
	values := make(map[string]string, len(v.Values))
	for member, value := range v.Values {
		if s.keys.NeedsReseal(value) {
			data := boundTo(v.TenantID, collection, id, member)
			plain, err := s.keys.Open(value, data)
			if err != nil {
				return fmt.Errorf("docstore: the %s of %s %s was sealed under a key that is not configured: %w",
					member, collection, id, err)
			}
			value = s.keys.Seal(plain, data)
		}
		values[member] = value
	}
	v.Values, v.KeySince = values, s.keySince
	return nil
}
