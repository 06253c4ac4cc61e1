package saml_test

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	crewjam "github.com/crewjam/saml"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
)

// key returns the key of a use case.
func (w *world) key(doc saml.KeyDoc, err error) *saml.Key {
	w.t.Helper()
	require.NoError(w.t, err)
	k, err := doc.Value()
	require.NoError(w.t, err)
	return k
}

// next makes the next key, of a pair that tests have.
func (w *world) next(of pair) *saml.Key {
	w.t.Helper()
	w.provider.UseKey(of.key)
	return w.key(w.provider.CreateKey(w.ctx))
}

// keys are the tenant's keys, by status.
func (w *world) keys() map[string]*saml.Key {
	w.t.Helper()
	page, err := w.provider.Keys(w.ctx, docstore.Paging{Size: 20})
	require.NoError(w.t, err)
	all := map[string]*saml.Key{}
	for i := range page.Docs {
		k, err := page.Docs[i].Value()
		require.NoError(w.t, err)
		require.NotContains(w.t, all, k.Status, "a tenant has one key of a status at most")
		all[k.Status] = k
	}
	return all
}

// published are the certificates of a replica's metadata, in PEM.
func (w *world) published(p *saml.Provider) (certs []string) {
	w.t.Helper()
	was := w.provider
	w.provider = p
	defer func() { w.provider = was }()
	for _, d := range w.metadata().IDPSSODescriptors[0].KeyDescriptors {
		require.Equal(w.t, "signing", d.Use)
		der, err := base64.StdEncoding.DecodeString(d.KeyInfo.X509Data.X509Certificates[0].Data)
		require.NoError(w.t, err)
		certs = append(certs, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	}
	return certs
}

// nameAt signs a person in to an application, and returns the name that the application gets.
func (w *world) nameAt(sp *crewjam.ServiceProvider) (string, error) {
	w.t.Helper()
	assertion, err := accept(sp, w.grant(w.sso(post(w.authn("", policy(persistent)))), nil))
	if err != nil {
		return "", err
	}
	return assertion.Subject.NameID.Value, nil
}

func idpInitiated(sp *crewjam.ServiceProvider) { sp.AllowIDPInitiated = true }

// An application that reads the metadata in time accepts what is signed before and after a change of the key, and knows
// the person by the same name. One with the old certificate in its settings accepts it again after the way back.
func TestApplicationsFollowTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.sp(idpInitiated)
	name, err := w.nameAt(old)
	require.NoError(t, err)
	next := w.next(otherPair())
	require.Equal(t, saml.Next, next.Status)
	require.True(t, next.TimeActivated.IsZero())
	certs := w.published(w.provider)
	require.Len(t, certs, 2)
	require.Equal(t, next.Certificate, certs[1], "the active one comes first")
	current := w.sp(idpInitiated)
	for _, sp := range []*crewjam.ServiceProvider{old, current} {
		same, err := w.nameAt(sp)
		require.NoError(t, err, "the next key does not sign yet")
		require.Equal(t, name, same)
	}

	w.clock.Advance(time.Second)
	active := w.key(w.provider.ActivateKey(w.ctx, next.ID))
	require.Equal(t, saml.Active, active.Status)
	require.Equal(t, w.clock.Now(), active.TimeActivated)
	require.Equal(t, []string{certs[1], certs[0]}, w.published(w.provider))
	same, err := w.nameAt(current)
	require.NoError(t, err)
	require.Equal(t, name, same)
	_, err = w.nameAt(old)
	require.Error(t, err)

	w.key(w.provider.ActivateKey(w.ctx, "signing"))
	same, err = w.nameAt(old)
	require.NoError(t, err)
	require.Equal(t, name, same)
	require.Equal(t, next.ID, w.keys()[saml.Previous].ID)

	// The salt outlives the first key.
	w.key(w.provider.ActivateKey(w.ctx, next.ID))
	_, err = w.provider.DeleteKey(w.ctx, "signing")
	require.Equal(t, apperr.InvalidState, apperr.KindOf(err), "replicas may sign with it for a minute")
	w.clock.Advance(time.Minute)
	_, err = w.provider.DeleteKey(w.ctx, "signing")
	require.NoError(t, err)
	require.Equal(t, []string{certs[1]}, w.published(w.provider))
	third := w.next(spPair())
	w.key(w.provider.ActivateKey(w.ctx, third.ID))
	same, err = w.nameAt(w.sp(idpInitiated))
	require.NoError(t, err)
	require.Equal(t, name, same)
}

// An earlier previous key goes when the next one is activated, and stays when the previous one is.
func TestWhichKeysStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.metadata()
	second := w.next(otherPair())
	w.key(w.provider.ActivateKey(w.ctx, second.ID))
	third := w.next(spPair())
	require.Len(t, w.published(w.provider), 3)
	ids := func() (ids [3]string) {
		all := w.keys()
		for i, status := range []string{saml.Active, saml.Next, saml.Previous} {
			if k := all[status]; k != nil {
				ids[i] = k.ID
			}
		}
		return ids
	}
	require.Equal(t, [3]string{second.ID, third.ID, "signing"}, ids())
	w.key(w.provider.ActivateKey(w.ctx, "signing"))
	require.Equal(t, [3]string{"signing", third.ID, second.ID}, ids())
	_, err := w.provider.ActivateKey(w.ctx, third.ID)
	require.Equal(t, apperr.InvalidState, apperr.KindOf(err), "replicas may sign with the previous one for a minute")
	w.clock.Advance(time.Minute)
	w.key(w.provider.ActivateKey(w.ctx, third.ID))
	require.Equal(t, [3]string{third.ID, "", "signing"}, ids())
	require.Equal(t, "globex", func() string { // other tenants have keys of their own
		ctx := request.System(t.Context(), "globex")
		_, err := w.provider.Metadata(ctx, issuer)
		require.NoError(t, err)
		doc, err := w.provider.GetKey(ctx, "signing")
		require.Equal(t, saml.Active, w.key(doc, err).Status)
		return w.key(doc, err).TenantID
	}())
}

// lasting gives a pair a certificate that products accept at this time.
func lasting(t testing.TB, p pair) pair {
	t.Helper()
	template := *p.cert
	template.NotAfter = time.Now().Add(24 * time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, p.key.Public(), p.key)
	require.NoError(t, err)
	p.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return p
}

// An application with a key of its own does not notice.
func TestAnOwnKeyStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := lasting(t, spPair())
	w.client.SAML.SigningCert, w.ownKey = own.pem(), own.keyPEM(t)
	sp := w.sp(func(sp *crewjam.ServiceProvider) {
		idpInitiated(sp)
		data := &sp.IDPMetadata.IDPSSODescriptors[0].KeyDescriptors[0].KeyInfo.X509Data.X509Certificates[0].Data
		*data = base64.StdEncoding.EncodeToString(own.cert.Raw)
	})
	_, err := w.nameAt(sp)
	require.NoError(t, err)
	w.key(w.provider.ActivateKey(w.ctx, w.next(otherPair()).ID))
	_, err = w.nameAt(sp)
	require.NoError(t, err)
}

// Another replica signs with the new key after a minute at the latest, and tells all keys.
func TestReplicasNoticeAnotherKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	replica := w.replica()
	first := w.published(replica)
	require.Equal(t, first, w.published(w.provider))
	w.key(w.provider.ActivateKey(w.ctx, w.next(otherPair()).ID))
	changed := w.published(w.provider)
	require.Len(t, changed, 2)
	w.clock.Advance(59 * time.Second)
	require.Equal(t, first, w.published(replica), "it reads the keys once in a minute")
	w.clock.Advance(time.Second)
	require.Equal(t, changed, w.published(replica))
	w.provider = replica
	_, err := w.nameAt(w.sp(idpInitiated))
	require.NoError(t, err)
}

// A tenant has exactly one active key at any moment, whatever administrators do at once.
func TestKeysAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.metadata()
	replicas := []*saml.Provider{w.replica(), w.replica(), w.replica()}
	rounds := 5
	if os.Getenv("IDP_TEST_ROUNDS") == "many" {
		rounds = 100
	}
	for range rounds {
		var all sync.WaitGroup
		var made atomic.Int64
		for _, p := range replicas {
			all.Go(func() {
				_, err := p.CreateKey(w.ctx)
				if err == nil {
					made.Add(1)
					return
				}
				require.Equal(t, apperr.InvalidState, apperr.KindOf(err), "%v", err)
			})
		}
		all.Wait()
		require.EqualValues(t, 1, made.Load(), "one wins")

		w.clock.Advance(time.Minute) // the previous key can go
		ids := []string{w.keys()[saml.Next].ID}
		var activated atomic.Int64
		for _, p := range replicas {
			all.Go(func() {
				_, err := p.ActivateKey(w.ctx, ids[0])
				if err == nil {
					activated.Add(1)
					return
				}
				require.Equal(t, apperr.InvalidState, apperr.KindOf(err), "%v", err)
			})
		}
		all.Wait()
		require.EqualValues(t, 1, activated.Load(), "one wins")
		now := w.keys()
		require.Equal(t, ids[0], now[saml.Active].ID)

		// One goes on to the next key while others go back, or delete what is not active.
		_, err := replicas[0].CreateKey(w.ctx)
		require.NoError(t, err)
		next := w.keys()[saml.Next].ID
		w.clock.Advance(time.Minute)
		for i, do := range []func(*saml.Provider) error{
			func(p *saml.Provider) error { _, err := p.ActivateKey(w.ctx, next); return err },
			func(p *saml.Provider) error { _, err := p.ActivateKey(w.ctx, now[saml.Previous].ID); return err },
			func(p *saml.Provider) error { _, err := p.DeleteKey(w.ctx, now[saml.Previous].ID); return err },
		} {
			all.Go(func() {
				if err := do(replicas[i]); err != nil {
					kinds := []apperr.Kind{apperr.InvalidState, apperr.NotFound}
					require.Contains(t, kinds, apperr.KindOf(err), "%v", err)
				}
			})
		}
		all.Wait()
		after := w.keys()
		require.NotNil(t, after[saml.Active])
		w.published(w.replica())
		if after[saml.Next] != nil {
			_, err := replicas[0].DeleteKey(w.ctx, after[saml.Next].ID)
			require.NoError(t, err)
		}
	}
}

// former is a key as earlier versions store it: the only one of the tenant.
type former struct {
	docstore.Meta
	Certificate string      `json:"certificate"`
	PrivateKey  secret.Text `json:"private_key"`
	Salt        secret.Text `json:"salt"`
}

// A key that an earlier version has made is the active one, with the names that it gives people, and can be replaced.
func TestAKeyOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "saml.db")
	ring, err := secret.ParseKeyring(secret.NewKey())
	require.NoError(t, err)
	w := newWorld(t)
	open := func(defs ...*docstore.Def) *docstore.Store {
		engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: file, Log: basic.Log(t)})
		require.NoError(t, err)
		store, err := docstore.Open(t.Context(), engine, w.clock, defs...)
		require.NoError(t, err)
		require.NoError(t, store.SealWith(t.Context(), ring))
		return store
	}
	formers := docstore.Define(docstore.Schema[former]{Name: "saml_keys", Noun: "key",
		Sealed: func(k *former) []docstore.Sealed {
			return []docstore.Sealed{
				docstore.Seal("private_key", &k.PrivateKey, docstore.NotSent),
				docstore.Seal("salt", &k.Salt, docstore.NotSent),
			}
		}})
	made, before := lasting(t, idpPair()), open(formers.Def())
	began := w.clock.Now()
	require.NoError(t, docstore.Do(w.ctx, before, func(tx *docstore.Tx) error {
		_, err := formers.Insert(w.ctx, tx, &former{
			Meta: docstore.Meta{ID: "signing"}, Certificate: made.pem(),
			PrivateKey: secret.NewText(made.keyPEM(t)), Salt: secret.NewText("c2FsdA=="),
		})
		return err
	}))
	require.NoError(t, before.Close())

	w.store = open(saml.Collections()...)
	t.Cleanup(func() { require.NoError(t, w.store.Close()) })
	w.provider = w.replica()
	w.clock.Advance(time.Second)
	old := w.sp(idpInitiated)
	name, err := w.nameAt(old)
	require.NoError(t, err)
	require.Equal(t, []string{made.pem()}, w.published(w.provider))
	k := w.keys()[saml.Active]
	require.Equal(t, began, k.TimeActivated)
	require.WithinDuration(t, made.cert.NotAfter, k.TimeExpires.Std(), time.Second)
	require.Regexp(t, `^([0-9A-F]{2}:){31}[0-9A-F]{2}$`, k.Fingerprint)
	_, err = w.provider.DeleteKey(w.ctx, k.ID)
	require.Equal(t, apperr.InvalidState, apperr.KindOf(err))
	_, err = w.provider.ActivateKey(w.ctx, k.ID)
	require.Equal(t, apperr.InvalidState, apperr.KindOf(err))

	w.key(w.provider.ActivateKey(w.ctx, w.next(otherPair()).ID))
	same, err := w.nameAt(w.sp(idpInitiated))
	require.NoError(t, err)
	require.Equal(t, name, same)
	_, err = w.nameAt(old)
	require.Error(t, err)
	previous := w.keys()[saml.Previous]
	require.Equal(t, k.Fingerprint, previous.Fingerprint)
	require.Equal(t, began, previous.TimeActivated)
}
