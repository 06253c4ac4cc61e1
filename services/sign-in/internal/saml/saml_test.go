package saml_test

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	crewjam "github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
)

func TestMain(m *testing.M) { basic.Main(m) }

const (
	issuer = "https://id.example.com/sign-in/acme"
	entity = "https://sp.example.com/metadata"
	acs    = "https://sp.example.com/acs"
	slo    = "https://sp.example.com/slo"

	persistent  = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
	transient   = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
	email       = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
	unspecified = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
)

// pair is a key with a certificate.
type pair struct {
	key  *rsa.PrivateKey
	cert *x509.Certificate
}

func (p pair) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw}))
}

func (p pair) keyPEM(t testing.TB) string {
	der, err := x509.MarshalPKCS8PrivateKey(p.key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func makePair() pair {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-48 * time.Hour),
		NotAfter:  time.Now().Add(-24 * time.Hour), // expired, which does not matter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return pair{key, cert}
}

// The keys of all tests: of the tenant, of the service provider, and of somebody else.
var (
	idpPair   = sync.OnceValue(makePair)
	spPair    = sync.OnceValue(makePair)
	otherPair = sync.OnceValue(makePair)
)

// world is a provider with one application of the tenant acme.
type world struct {
	t         testing.TB
	ctx       context.Context
	clock     *basic.Clock
	store     *docstore.Store
	provider  *saml.Provider
	recipient *secret.Recipient
	client    questions.Client
	ownKey    string // of the application, PEM
	away      bool   // the applications service does not answer
	noGroups  bool   // the organization service does not answer
	count     atomic.Int64
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, clock: basic.NewClock(), ctx: request.System(t.Context(), "acme"), client: questions.Client{
		AppID: "2001", Name: "Shop", Enabled: true,
		SAML: &questions.SAMLSettings{
			ACSURL: acs, SPEntity: entity, NameIDFormat: unspecified, LifetimeInSeconds: 1800,
		},
		SignIn: questions.SignInSettings{
			SLOURL: slo, ACSURLs: []string{"https://sp.example.com/acs2"}, IdPInitiated: true,
		},
	}}
	w.store = basic.Store(t, w.clock, saml.Collections()...)
	ring, err := secret.ParseKeyring(secret.NewKey())
	require.NoError(t, err)
	require.NoError(t, w.store.SealWith(t.Context(), ring))
	seed := make([]byte, 32)
	_, _ = rand.Read(seed)
	w.recipient, err = secret.NewRecipient(seed)
	require.NoError(t, err)
	w.provider = w.replica()
	return w
}

func (w *world) replica() *saml.Provider {
	p := saml.New(saml.Config{
		Store: w.store, Clients: w, Groups: w.groups, SigningKey: w.signingKey, Recipient: w.recipient,
	})
	p.UseKey(idpPair().key)
	return p
}

func (w *world) groups(_ context.Context, userID string) ([]string, error) {
	if w.noGroups {
		return nil, apperr.Away("the organization service", nil)
	}
	require.Equal(w.t, "1048577", userID)
	return []string{"company/rd", "company"}, nil
}

func (w *world) Of(ctx context.Context, name questions.ClientName) (questions.Client, error) {
	if w.away {
		return questions.Client{}, apperr.Away("the applications service", nil)
	}
	if request.Tenant(ctx) != "acme" || name.AppID != w.client.AppID && name.SPEntity != w.client.SAML.SPEntity {
		return questions.Client{}, apperr.Missing("application")
	}
	return w.client, nil
}

func (w *world) signingKey(
	_ context.Context, q questions.SigningKeyQuestion,
) (questions.SigningKey, error) {
	if w.away || w.ownKey == "" {
		return questions.SigningKey{}, apperr.Away("the applications service", nil)
	}
	sealed, err := q.To.Seal(w.ownKey, "applications.signing-key")
	return questions.SigningKey{Sealed: sealed}, err
}

func (w *world) person() protocol.Person {
	now := w.clock.Now()
	return protocol.Person{
		UserID: "1048577", SessionID: "session-1",
		AuthTime: now.Add(-time.Minute), SessionEnds: now.Add(24 * time.Hour),
		ACR: "urn:idplatform:aal:1", AMR: []string{"pwd"},
		User: json.RawMessage(`{"id":"1048577","username":"li.wei","display_name":"Li Wei","email":"Li@example.com",` +
			`"email_verified":true,"employee_number":"","free_ext_props":{"x":{"y":["a","b"]},"n":9007199254740993,` +
			`"d.e":"dotted"},"sys_ext_props":null}`),
	}
}

// metadata is the tenant's metadata, as a service provider reads it.
func (w *world) metadata() *crewjam.EntityDescriptor {
	w.t.Helper()
	body, err := w.provider.Metadata(w.ctx, issuer)
	require.NoError(w.t, err)
	var d crewjam.EntityDescriptor
	require.NoError(w.t, xml.Unmarshal(body, &d))
	return &d
}

// sp is crewjam's service provider, as it comes.
func (w *world) sp(edit func(*crewjam.ServiceProvider)) *crewjam.ServiceProvider {
	w.t.Helper()
	parse := func(text string) url.URL {
		u, err := url.Parse(text)
		require.NoError(w.t, err)
		return *u
	}
	sp := &crewjam.ServiceProvider{
		EntityID: entity, Key: spPair().key, Certificate: spPair().cert, AcsURL: parse(acs), SloURL: parse(slo),
		MetadataURL: parse(entity), IDPMetadata: w.metadata(), AuthnNameIDFormat: crewjam.UnspecifiedNameIDFormat,
	}
	if edit != nil {
		edit(sp)
	}
	return sp
}

func signing(sp *crewjam.ServiceProvider) { sp.SignatureMethod = dsig.RSASHA256SignatureMethod }

// redirect makes an AuthnRequest of the service provider, and its id.
func (w *world) redirect(sp *crewjam.ServiceProvider, relay string) (saml.Inbound, string) {
	w.t.Helper()
	r, err := sp.MakeAuthenticationRequest(
		sp.GetSSOBindingLocation(crewjam.HTTPRedirectBinding), crewjam.HTTPRedirectBinding, crewjam.HTTPPostBinding)
	require.NoError(w.t, err)
	u, err := r.Redirect(url.QueryEscape(relay), sp) // it does not escape by itself
	require.NoError(w.t, err)
	return saml.Inbound{Query: u.RawQuery}, r.ID
}

var fields = regexp.MustCompile(`name="(SAML\w+|RelayState)" value="([^"]*)"`)

// form reads a page that posts itself.
func form(t testing.TB, html []byte) saml.Inbound {
	t.Helper()
	f := url.Values{}
	for _, m := range fields.FindAllSubmatch(html, -1) {
		value := regexp.MustCompile(`&#43;`).ReplaceAllString(string(m[2]), "+")
		f.Set(string(m[1]), value)
	}
	require.NotEmpty(t, f)
	return saml.Inbound{Form: f}
}

func (w *world) sso(in saml.Inbound) protocol.Request {
	w.t.Helper()
	r, err := w.provider.SSO(w.ctx, issuer, in)
	require.NoError(w.t, err)
	return r
}

func (w *world) grant(r protocol.Request, edit func(*protocol.Person)) protocol.Answer {
	w.t.Helper()
	p := w.person()
	if edit != nil {
		edit(&p)
	}
	a, err := w.provider.Grant(w.ctx, issuer, r, p)
	require.NoError(w.t, err)
	return a
}

// accept hands an answer to the service provider.
func accept(sp *crewjam.ServiceProvider, a protocol.Answer, ids ...string) (*crewjam.Assertion, error) {
	u, err := url.Parse(a.URL)
	if err != nil {
		return nil, err
	}
	assertion, err := sp.ParseResponse(&http.Request{URL: u, PostForm: a.Post}, ids)
	if invalid, ok := errors.AsType[*crewjam.InvalidResponseError](err); ok {
		err = invalid.PrivateErr
	}
	return assertion, err
}

// response is the response of an answer.
func response(t testing.TB, a protocol.Answer) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(a.Post.Get("SAMLResponse"))
	require.NoError(t, err)
	return string(text)
}

func requirePage(t testing.TB, err error, about ...any) {
	t.Helper()
	_, is := errors.AsType[*protocol.PageError](err)
	require.True(t, is, "%v %v", err, about)
}

// requireAnswer requires that the application is told a fault of its request.
func requireAnswer(t testing.TB, err error, first, second string) {
	t.Helper()
	fault, is := errors.AsType[*protocol.AnswerError](err)
	require.True(t, is, "%v", err)
	require.Equal(t, acs, fault.Answer.URL)
	requireStatus(t, fault.Answer, first, second)
}

func (w *world) counter() int64 { return w.count.Add(1) }

// messageIn is the SAML message of an answer in either binding.
func messageIn(t testing.TB, a protocol.Answer) []byte {
	t.Helper()
	values, packed := a.Post, false
	if values == nil {
		u, err := url.Parse(a.URL)
		require.NoError(t, err)
		values, packed = u.Query(), true
	}
	text, err := base64.StdEncoding.DecodeString(values.Get("SAMLRequest") + values.Get("SAMLResponse"))
	require.NoError(t, err)
	if packed {
		text, err = io.ReadAll(flate.NewReader(bytes.NewReader(text)))
		require.NoError(t, err)
	}
	return text
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	body, err := json.Marshal(v)
	require.NoError(t, err)
	return body
}
