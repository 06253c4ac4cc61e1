package signin_test

import (
	"crypto/x509"
	"encoding/base64"
	"html"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	signin "github.com/idplatform/idplatform/services/sign-in"
)

const samlKeys = "/v1/sign-in/saml-keys"

var (
	publishedCert = regexp.MustCompile(`<X509Certificate>([^<]*)</X509Certificate>`)
	samlResponse  = regexp.MustCompile(`name="SAMLResponse" value="([^"]*)"`)
)

// certificates are those of a replica's metadata.
func certificates(t testing.TB, s *testkit.Service) (certs []*x509.Certificate) {
	t.Helper()
	text := s.Stranger().Get(ofPages + "/saml/metadata")
	require.Equal(t, http.StatusOK, text.Status, "%s", text.Body)
	for _, found := range publishedCert.FindAllSubmatch(text.Body, -1) {
		der, err := base64.StdEncoding.DecodeString(string(found[1]))
		require.NoError(t, err)
		cert, err := x509.ParseCertificate(der)
		require.NoError(t, err)
		certs = append(certs, cert)
	}
	return certs
}

// signedBy fails the test unless the browser brings a response that a certificate verifies.
func (b *browser) signedBy(cert *x509.Certificate) {
	b.w.t.Helper()
	found := samlResponse.FindStringSubmatch(b.shows(200, "SAMLResponse").body)
	require.NotNil(b.w.t, found, "%s", b.body)
	text, err := base64.StdEncoding.DecodeString(html.UnescapeString(found[1]))
	b.w.must(err)
	document := etree.NewDocument()
	b.w.must(document.ReadFromBytes(text))
	verify := dsig.NewDefaultValidationContext(&dsig.MemoryX509CertificateStore{Roots: []*x509.Certificate{cert}})
	_, err = verify.Validate(document.Root())
	b.w.must(err)
}

// The way that the README describes, and each step that is refused.
func TestSAMLKeysRollOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.admin()
	require.Empty(t, c.Get(samlKeys).Object()["items"])
	c.Post(samlKeys, nil).Problem(http.StatusConflict, "invalid_state") // there is nothing to follow
	b, _ := w.shop()
	b.signedBy(certificates(t, w.Service)[0])

	first := first(c.Get(samlKeys))
	require.Equal(t, "active", first["status"])
	require.Equal(t, object{"private_key": "******", "salt": "******"},
		object{"private_key": first["private_key"], "salt": first["salt"]})
	next := c.Post(samlKeys, nil).Object()
	require.Equal(t, []any{"next", nil, 1.0}, []any{next["status"], next["time_activated"], next["version"]})
	require.Equal(t, c.Get(samlKeys + "?page_sort=time_created[asc]").Object()["total"], 2.0)
	certs := certificates(t, w.Service)
	require.Len(t, certs, 2)
	b.get("/saml/start/7").signedBy(certs[0])

	one, other := samlKeys+"/"+first["id"].(string), samlKeys+"/"+next["id"].(string)
	writer, reader := w.As("acme", auth.SignInWrite), w.As("acme", auth.SignInRead)
	stale := writer.With("If-Match", `"7"`)
	for name, refused := range map[string]struct {
		answer *testkit.Answer
		status int
		code   string
	}{
		"a second next key":       {writer.Post(samlKeys, nil), 409, "invalid_state"},
		"the active key again":    {writer.Post(one+"/activate", nil), 409, "invalid_state"},
		"without an active key":   {writer.Delete(one, nil), 409, "invalid_state"},
		"another version":         {stale.Post(other+"/activate", nil), 412, "version_mismatch"},
		"deletes another version": {stale.Delete(other, nil), 412, "version_mismatch"},
		"no such key":             {writer.Post(samlKeys+"/4711/activate", nil), 404, "not_found"},
		"no such key to delete":   {writer.Delete(samlKeys+"/4711", nil), 404, "not_found"},
		"of another tenant":       {w.As("globex", auth.SignInWrite).Post(other+"/activate", nil), 404, "not_found"},
		"a tenant without keys":   {w.As("globex", auth.SignInWrite).Post(samlKeys, nil), 409, "invalid_state"},
		"only read":               {reader.Post(other+"/activate", nil), 403, "forbidden"},
		"only write":              {writer.Get(samlKeys), 403, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) { refused.answer.Problem(refused.status, refused.code) })
	}
	writer.Post(other+"/activate?dry_run=true", nil).OK(nil)
	b.get("/saml/start/7").signedBy(certs[0])

	writer.With("If-Match", `"1"`).Post(other+"/activate", nil).OK(nil)
	b.get("/saml/start/7").signedBy(certs[1])
	require.Equal(t, certs[1].Raw, certificates(t, w.Service)[0].Raw)
	require.Equal(t, "previous", c.Get(one).Object()["status"])
	writer.Post(one+"/activate", nil).OK(nil)
	b.get("/saml/start/7").signedBy(certs[0])
	writer.Post(other+"/activate", nil).OK(nil)
	writer.Delete(one, nil).Problem(http.StatusConflict, "invalid_state")
	w.Clock.Advance(time.Minute)
	writer.Delete(one, nil).OK(nil)
	require.Len(t, certificates(t, w.Service), 1)
	b.get("/saml/start/7").signedBy(certs[1])
}

// Another replica follows within a minute.
func TestReplicasFollowTheSAMLKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	replica := w.Replica(signin.Spec(signin.DefaultConfig()))
	replica.Ready()
	before := certificates(t, replica)
	require.Equal(t, before[0].Raw, certificates(t, w.Service)[0].Raw)
	id := w.admin().Post(samlKeys, nil).ID()
	w.admin().Post(samlKeys+"/"+id+"/activate", nil).OK(nil)
	w.Clock.Advance(time.Minute)
	after := certificates(t, replica)
	require.Len(t, after, 2)
	require.Equal(t, before[0].Raw, after[1].Raw)
	b, _ := w.shop()
	b.signedBy(after[0])
}
