package saml_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
)

func TestReplicasMakeOneKeyOfATenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all sync.WaitGroup
	answers := make([][]byte, 6)
	for i := range answers {
		all.Go(func() {
			p := w.replica()
			if i%2 == 1 {
				p.UseKey(otherPair().key)
			}
			var err error
			answers[i], err = p.Metadata(w.ctx, issuer)
			require.NoError(t, err)
		})
	}
	all.Wait()
	for _, answer := range answers {
		require.Equal(t, string(answers[0]), string(answer))
	}
	other, err := w.provider.Metadata(request.System(t.Context(), "globex"), issuer)
	require.NoError(t, err)
	require.NotEqual(t, string(answers[0]), string(other), "another tenant has a certificate of its own")
}

// Strangers ask for the metadata of tenants that do not exist.
func TestATenantWithoutApplicationsHasNoKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	has := false
	w.provider.HasApplications = func(context.Context) (bool, error) { return has, nil }
	_, err := w.provider.Metadata(w.ctx, issuer)
	require.Equal(t, apperr.NotFound, apperr.KindOf(err))
	has = true
	w.metadata()
	has = false
	w.metadata()
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.metadata()
	require.Equal(t, issuer+"/saml/metadata", d.EntityID)
	require.True(t, d.ValidUntil.IsZero())
	idp := d.IDPSSODescriptors[0]
	require.Equal(t, "urn:oasis:names:tc:SAML:2.0:protocol", idp.ProtocolSupportEnumeration)
	require.Equal(t, issuer+"/saml/sso", idp.SingleSignOnServices[1].Location)
	require.Equal(t, issuer+"/saml/slo", idp.SingleLogoutServices[0].Location)
	require.Len(t, idp.NameIDFormats, 4)
	require.Equal(t, "signing", idp.KeyDescriptors[0].Use)
	body, err := w.provider.Metadata(w.ctx, issuer)
	require.NoError(t, err)
	require.NotContains(t, string(body), "validUntil")
}

// Neither the key nor the salt is in the database as it is.
func TestSecretsAreSealedAtRest(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "saml.db")
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: file, Log: basic.Log(t)})
	require.NoError(t, err)
	store, err := docstore.Open(t.Context(), engine, basic.NewClock(), saml.Collections()...)
	require.NoError(t, err)
	ring, err := secret.ParseKeyring(secret.NewKey())
	require.NoError(t, err)
	require.NoError(t, store.SealWith(t.Context(), ring))
	p := saml.New(saml.Config{Store: store})
	p.UseKey(idpPair().key)
	_, err = p.Metadata(request.System(t.Context(), "acme"), issuer)
	require.NoError(t, err)
	require.NoError(t, store.Close())
	files, err := filepath.Glob(file + "*")
	require.NoError(t, err)
	found := false
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotContains(t, string(data), "PRIVATE KEY")
		require.False(t, bytes.Contains(data, idpPair().key.D.Bytes()))
		found = found || bytes.Contains(data, []byte("BEGIN CERTIFICATE"))
	}
	require.True(t, found)
}
