package saml

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
)

// Key is a key pair of a tenant, with the certificate that applications are given. It has the same JSON form in the
// API, in events and in the store. A tenant has one active key, and one next and one previous key at most. The first
// one is made when it is needed. It stays until an administrator makes another one active, because applications have
// the certificate in their settings.
type Key struct {
	docstore.Meta
	Status        string     `json:"status" readOnly:"true" enum:"next,active,previous" doc:"The active key signs; the next one will, and the previous one did" example:"active"`
	Certificate   string     `json:"certificate" readOnly:"true" doc:"PEM" example:"-----BEGIN CERTIFICATE-----…"`
	Fingerprint   string     `json:"fingerprint" readOnly:"true" doc:"SHA-256 of the certificate, as OpenSSL writes it" example:"6F:1C:…"`
	TimeActivated clock.Time `json:"time_activated" readOnly:"true" nullable:"true" doc:"When it last became the active one; null for the next one"`
	TimeExpires   clock.Time `json:"time_expires" readOnly:"true" doc:"When the certificate ends"`
	// Applications know people by names that come from the salt. So all keys of a tenant have the same.
	PrivateKey secret.Text `json:"private_key" readOnly:"true" doc:"Never shown"` // PKCS #8, PEM
	Salt       secret.Text `json:"salt" readOnly:"true" doc:"Of the persistent names of people; never shown"`
}

// The values of Status.
const (
	Next     = "next"
	Active   = "active"
	Previous = "previous"
)

const (
	memberKey   = "private_key"
	memberSalt  = "salt"
	byCreated   = "time_created"
	maxOfTenant = 10 // more than a tenant can have
)

var keys = outbox.Define("saml_key", "/sign-in/saml-keys", docstore.Schema[Key]{
	Name: "saml_keys", Noun: "key", Sortable: []string{byCreated}, Revision: 1,
	Indexes: []docstore.Index[Key]{
		docstore.ByNumber(byCreated, func(k *Key) docstore.Value { return docstore.Moment(k.TimeCreated) }),
	},
	Sealed: func(k *Key) []docstore.Sealed {
		return []docstore.Sealed{
			docstore.Seal(memberKey, &k.PrivateKey, docstore.NotSent),
			docstore.Seal(memberSalt, &k.Salt, docstore.NotSent),
		}
	},
	Due: func(k *Key) clock.Time {
		if k.Status == "" {
			return k.TimeCreated
		}
		return clock.Time{}
	},
	ApplyDue: func(k *Key, _ clock.Time) { k.complete() },
})

// KeyDoc is a key as read or written.
type KeyDoc = docstore.Doc[Key]

// complete adds what follows from the certificate, and what keys lack from before a tenant could have several: the only
// one is active.
func (k *Key) complete() {
	if cert, err := k.x509(); err == nil {
		sum := sha256.Sum256(cert.Raw)
		k.Fingerprint = strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":")
		k.TimeExpires = clock.Of(cert.NotAfter)
	}
	if k.Status == "" && k.ID != "" {
		k.Status, k.TimeActivated = Active, k.TimeCreated
	}
}

func (k *Key) x509() (*x509.Certificate, error) { return certificateOf(k.Certificate) }

// inOrder sorts a tenant's keys as metadata tells them, and returns the active one. The error is apperr.NotFound if
// there are none.
func inOrder(all []*Key) (*Key, error) {
	if len(all) == 0 {
		return nil, apperr.Missing("key")
	}
	rank := []string{Active, Next, Previous}
	slices.SortFunc(all, func(a, b *Key) int {
		return cmp.Compare(slices.Index(rank, a.Status), slices.Index(rank, b.Status))
	})
	if all[0].Status != Active {
		return nil, fmt.Errorf("none of %d keys is active", len(all))
	}
	return all[0], nil
}

// loadAll loads the tenant's keys in the order of inOrder.
func loadAll(ctx context.Context, tx *docstore.Tx) (all []*Key, err error) {
	if all, err = keys.LoadWhere(ctx, tx, docstore.Filter{}, "", maxOfTenant); err != nil {
		return nil, err
	}
	for _, k := range all {
		k.complete()
	}
	_, err = inOrder(all)
	return all, err
}

// Keys returns a page of the tenant's keys.
func (p *Provider) Keys(ctx context.Context, asked docstore.Paging) (docstore.Page[Key], error) {
	return keys.List(ctx, p.Store, docstore.Filter{}, asked)
}

// GetKey returns a key. The error is apperr.NotFound.
func (p *Provider) GetKey(ctx context.Context, id string) (KeyDoc, error) {
	return keys.Find(ctx, p.Store, id)
}

// CreateKey makes the key that can follow the active one. Applications learn it from the metadata. The error is
// apperr.InvalidState if there is one already, or if the tenant has no key at all.
func (p *Provider) CreateKey(ctx context.Context) (KeyDoc, error) {
	made, err := p.draw(ctx)
	if err != nil {
		return KeyDoc{}, err
	}
	if made.ID, err = p.Store.NewID(ctx); err != nil {
		return KeyDoc{}, err
	}
	made.Status = Next
	defer p.forget(ctx)
	return docstore.Write(ctx, p.Store, func(tx *docstore.Tx) (KeyDoc, error) {
		all, err := loadAll(ctx, tx)
		switch {
		case apperr.IsNotFound(err):
			return KeyDoc{}, apperr.New(apperr.InvalidState,
				"the tenant has no key yet; the first is made when the metadata is read, once it has an application")
		case err != nil:
			return KeyDoc{}, err
		case slices.ContainsFunc(all, func(k *Key) bool { return k.Status == Next }):
			return KeyDoc{}, apperr.New(apperr.InvalidState,
				"there is a next key already; activate it, or delete it before you make another one")
		}
		// The transaction depends on the active key: of two that make the next key at once, one has to look again.
		common, err := keys.Reveal(ctx, tx, all[0].ID, memberSalt)
		if err != nil {
			return KeyDoc{}, err
		}
		k := *made
		k.Salt = secret.NewText(common.Reveal())
		return keys.Insert(ctx, tx, &k)
	})
}

// ActivateKey makes a key the active one. The active one becomes the previous one, in place of an earlier one. The
// error is apperr.NotFound, VersionMismatch, or InvalidState for the active key, or if the earlier one may still sign.
func (p *Provider) ActivateKey(ctx context.Context, id string) (KeyDoc, error) {
	defer p.forget(ctx)
	return docstore.Write(ctx, p.Store, func(tx *docstore.Tx) (KeyDoc, error) {
		k, err := keys.Load(ctx, tx, id)
		if err != nil {
			return KeyDoc{}, err
		}
		if k.complete(); k.Status == Active {
			return KeyDoc{}, apperr.New(apperr.InvalidState, "the key is the active one already")
		}
		all, err := loadAll(ctx, tx)
		if err != nil {
			return KeyDoc{}, err
		}
		for _, other := range all {
			switch {
			case other.ID == id:
			case other.Status == Active:
				other.Status = Previous
				_, err = keys.Replace(ctx, tx, other)
			case other.Status == Previous:
				if err = unused(all[0], tx.Now); err == nil {
					_, err = keys.Delete(ctx, tx, other)
				}
			}
			if err != nil {
				return KeyDoc{}, err
			}
		}
		k.Status, k.TimeActivated = Active, tx.Now
		return keys.As("activated").Replace(ctx, tx, k)
	})
}

// DeleteKey deletes the next or the previous key. The error is apperr.NotFound, VersionMismatch, or InvalidState for
// the active key, and for the previous one as long as it may still sign.
func (p *Provider) DeleteKey(ctx context.Context, id string) (docstore.Deleted, error) {
	defer p.forget(ctx)
	return keys.Remove(ctx, p.Store, id, func(tx *docstore.Tx, k *Key) error {
		switch k.complete(); k.Status {
		case Active:
			return apperr.New(apperr.InvalidState, "the active key cannot be deleted; activate another one first")
		case Previous:
			all, err := loadAll(ctx, tx)
			if err != nil {
				return err
			}
			return unused(all[0], tx.Now)
		}
		return nil
	})
}

// unused refuses to delete the previous key as long as replicas may sign with it: they have not read the keys since
// another one became active.
func unused(active *Key, now clock.Time) error {
	if age := now.Sub(active.TimeActivated); age >= 0 && age < reread {
		return apperr.New(apperr.InvalidState,
			"the previous key may still sign; it can be deleted a minute after the active one was activated")
	}
	return nil
}

// forget makes this replica read the tenant's keys again.
func (p *Provider) forget(ctx context.Context) { p.tenants.Delete(request.Tenant(ctx)) }
