package cas_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/cas"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

func TestMain(m *testing.M) { basic.Main(m) }

const (
	issuer  = "https://id.example.com/sign-in/acme"
	service = "https://wiki.example.com/cas/home?page=1"
)

// world is a server with one application of the tenant acme.
type world struct {
	t      testing.TB
	clock  *basic.Clock
	store  *docstore.Store
	server *cas.Server
	client questions.Client
	away   bool // the applications service does not answer
	ctx    context.Context
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, clock: basic.NewClock(), ctx: request.System(t.Context(), "acme"), client: questions.Client{
		AppID: "2001", Name: "Wiki", Enabled: true, CAS: &questions.CASSettings{},
		RedirectURLs: []string{"https://wiki.example.com/cas"}, LogoutURL: "https://wiki.example.com/bye",
		SignIn: questions.SignInSettings{PostLogoutURLs: []string{"https://example.com/"}},
	}}
	w.store = basic.Store(t, w.clock, cas.Collections()...)
	w.server = cas.New(w.store, w, w.groups)
	return w
}

func (w *world) groups(_ context.Context, userID string) ([]string, error) {
	if w.away {
		return nil, apperr.Away("the organization service", nil)
	}
	require.Equal(w.t, "1048577", userID)
	return []string{"company/rd", "company"}, nil
}

func (w *world) Of(ctx context.Context, name questions.ClientName) (questions.Client, error) {
	if w.away {
		return questions.Client{}, apperr.Away("the applications service", nil)
	}
	if request.Tenant(ctx) != "acme" || name.AppID != w.client.AppID && name.Service == "" {
		return questions.Client{}, apperr.Missing("application")
	}
	return w.client, nil
}

func (w *world) login(query string) (protocol.Request, error) {
	w.t.Helper()
	v, err := url.ParseQuery(query)
	require.NoError(w.t, err)
	return w.server.Login(w.ctx, v)
}

func (w *world) person() protocol.Person {
	now := w.clock.Now()
	return protocol.Person{
		UserID: "1048577", SessionID: "s1", AuthTime: now, SessionEnds: now.Add(24 * time.Hour),
		User: json.RawMessage(`{"id":"1048577","username":"li.wei","display_name":"Li <Wei>",` +
			`"email":"li@example.com","employee_number":"7","mobile":"+8613800000000"}`),
	}
}

// ticket signs a person in for a service.
func (w *world) ticket(query string, edit func(*protocol.Person)) string {
	w.t.Helper()
	r, err := w.login(query)
	require.NoError(w.t, err)
	p := w.person()
	if edit != nil {
		edit(&p)
	}
	a, err := w.server.Grant(w.ctx, issuer, r, p)
	require.NoError(w.t, err)
	if a.Post != nil {
		return a.Post.Get("ticket")
	}
	u, err := url.Parse(a.URL)
	require.NoError(w.t, err)
	return u.Query().Get("ticket")
}

func (w *world) validate(version cas.Version, v url.Values) string {
	w.t.Helper()
	a := w.server.Validate(w.ctx, version, v)
	require.NoError(w.t, a.Err)
	return string(a.Body)
}

func pair(service, ticket string) url.Values {
	return url.Values{"service": {service}, "ticket": {ticket}}
}

func forService(s string) string { return "service=" + url.QueryEscape(s) }

func TestLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type flags struct{ Fresh, Passive bool }
	for query, want := range map[string]flags{
		"":                          {},
		"&renew=true":               {Fresh: true},
		"&renew":                    {Fresh: true},
		"&renew=false":              {},
		"&gateway=true":             {Passive: true},
		"&renew=true&gateway=true":  {Fresh: true},
		"&renew=false&gateway=true": {Passive: true},
		"&method=POST&warn=true":    {},
	} {
		r, err := w.login(forService(service) + query)
		require.NoError(t, err, query)
		require.Equal(t, want, flags{r.Fresh, r.Passive}, query)
		require.Equal(t, []string{protocol.CAS, "2001"}, []string{r.Protocol, r.AppID}, query)
	}
	r, err := w.login(forService(service) + "&method=post")
	require.NoError(t, err)
	basic.Golden(t, "testdata/message.json", r.Message)
}

func TestLoginErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, query := range []string{"", "renew=true", "service=", "service=&gateway=true"} {
		_, err := w.login(query)
		require.ErrorIs(t, err, cas.ErrNoService, query)
	}
	_, err := w.login(forService(service) + "&" + forService("https://evil.example"))
	_, isPage := err.(*protocol.PageError) //nolint:errorlint // it is returned as it is
	require.True(t, isPage)

	ctx := w.ctx
	w.ctx = request.System(t.Context(), "globex")
	_, err = w.login(forService(service))
	require.ErrorIs(t, err, protocol.ErrUnknown, "another tenant's application")
	w.ctx = ctx

	r, err := w.login(forService(service))
	require.NoError(t, err)
	w.away = true
	_, err = w.login(forService(service))
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
	_, err = w.server.Grant(w.ctx, issuer, r, w.person())
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
	w.away = false

	for name, edit := range map[string]func(){
		"disabled":    func() { w.client.Enabled = false },
		"without CAS": func() { w.client.CAS = nil },
	} {
		before := w.client
		edit()
		_, err = w.login(forService(service))
		require.ErrorIs(t, err, protocol.ErrUnknown, name)
		w.client = before
	}
}

func TestServicesLieBelowARedirectURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client.RedirectURLs = []string{
		"https://wiki.example.com/cas", "https://root.example.com", "https://slash.example.com/a/",
		"http://localhost:8080/app", "https://q.example.com/i?m=x",
	}
	for service, good := range map[string]bool{
		"https://wiki.example.com/cas":                      true,
		"https://wiki.example.com/cas/":                     true,
		"https://wiki.example.com/cas/x/y?z=https://a.b#/c": true,
		"https://WIKI.example.com:443/cas":                  true,
		"https://wiki.example.com/cas;jsessionid=A1?x=1":    true,
		"https://wiki.example.com/cas;JSESSIONID=A1/x":      true,
		"https://root.example.com":                          true,
		"https://root.example.com/":                         true,
		"https://root.example.com/any":                      true,
		"https://slash.example.com/a":                       true,
		"https://slash.example.com/a/b":                     true,
		"http://localhost:8080/app/x":                       true,
		"https://q.example.com/i?m=x":                       true,
		"https://q.example.com/i?m=x&n=1":                   true,

		"https://q.example.com/i":                                   false,
		"https://q.example.com/i?m=xy":                              false,
		"http://wiki.example.com/cas":                               false,
		"https://wiki.example.com/casino":                           false,
		"https://wiki.example.com/cas;x":                            false,
		"https://wiki.example.com/":                                 false,
		"https://wiki.example.com:444/cas":                          false,
		"https://wiki.example.com.evil.example/cas":                 false,
		"https://evil.example/cas":                                  false,
		"https://wiki.example.com@evil.example/cas":                 false,
		"https://user@wiki.example.com/cas":                         false,
		"https://evil.example\\@wiki.example.com/cas":               false,
		"https://evil.example#@wiki.example.com/cas":                false,
		"https://wiki.example.com/cas/../admin":                     false,
		"https://wiki.example.com/cas/%2e%2e/admin":                 false,
		"https://wiki.example.com/cas/..;x=1/admin":                 false,
		"https://wiki.example.com/cas/..;jsessionid=1/admin":        false,
		"https://wiki.example.com/cas/%2E./admin":                   false,
		"https://wiki.example.com/cas/..%2fadmin":                   false,
		"https://wiki.example.com/cas/..%5cadmin":                   false,
		"https://wiki.example.com/cas\\..\\admin":                   false,
		"https://wiki.example.com/cas\n":                            false,
		" https://wiki.example.com/cas":                             false,
		"//wiki.example.com/cas":                                    false,
		"/cas":                                                      false,
		"javascript:alert(1)//wiki.example.com/cas":                 false,
		"https:wiki.example.com/cas":                                false,
		"https:///cas":                                              false,
		"http://localhost/app":                                      false,
		"https://wiki.example.com/cas?" + strings.Repeat("x", 2048): false,
	} {
		_, err := w.login(forService(service))
		if good {
			require.NoError(t, err, service)
		} else {
			require.ErrorIs(t, err, protocol.ErrUnknown, service)
		}
	}
}

func TestGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	grant := func(query string) protocol.Answer {
		r, err := w.login(query)
		require.NoError(t, err)
		a, err := w.server.Grant(w.ctx, issuer, r, w.person())
		require.NoError(t, err)
		return a
	}
	for _, c := range []struct{ service, start, end string }{
		{service, service + "&ticket=ST-", ""},
		{"https://wiki.example.com/cas", "https://wiki.example.com/cas?ticket=ST-", ""},
		{"https://wiki.example.com/cas?a=%2F&b=c+d#/x", "https://wiki.example.com/cas?a=%2F&b=c+d&ticket=ST-", "#/x"},
	} {
		a := grant(forService(c.service))
		require.Nil(t, a.Post)
		require.True(t, strings.HasPrefix(a.URL, c.start) && strings.HasSuffix(a.URL, c.end), a.URL)
	}
	a := grant(forService(service) + "&method=POST")
	require.Equal(t, service, a.URL)
	require.Regexp(t, `^ST-[A-Z2-7]{26}$`, a.Post.Get("ticket"))

	r, err := w.login(forService(service))
	require.NoError(t, err)
	w.client.RedirectURLs = []string{"https://elsewhere.example.com"} // while the person signs in
	_, err = w.server.Grant(w.ctx, issuer, r, w.person())
	require.ErrorIs(t, err, protocol.ErrUnknown)
	_, err = w.server.Refuse(w.ctx, issuer, r, protocol.LoginRequired)
	require.ErrorIs(t, err, protocol.ErrUnknown)
}

func TestRefuseLeadsBackWithoutATicket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := w.login(forService(service) + "&gateway=true")
	require.NoError(t, err)
	a, err := w.server.Refuse(w.ctx, issuer, r, protocol.LoginRequired)
	require.NoError(t, err)
	require.Equal(t, protocol.Answer{URL: service}, a)
}

func TestTheStoreHasNoTicketThatCouldBeUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := w.ticket(forService(service), nil)
	w.clock.Advance(2 * time.Minute)
	refs, err := cas.Due(w.ctx, w.store, 10)
	require.NoError(t, err)
	require.Len(t, refs, 1)
	require.NotContains(t, refs[0].ID, name)
	require.NoError(t, w.server.Expire(w.ctx, refs[0].ID))
	require.True(t, apperr.IsNotFound(w.server.Expire(w.ctx, refs[0].ID)))
	require.Contains(t, w.validate(cas.V3, pair(service, name)), `code="INVALID_TICKET"`)
}

func TestUserIsTheSubAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := w.ticket(forService(service), func(p *protocol.Person) {
		p.SubAccount = &protocol.SubAccount{Account: "wiki-li", DisplayName: "Li"}
	})
	require.Equal(t, "yes\nwiki-li\n", w.validate(cas.V1, pair(service, name)))
}

// TestStoredTickets: during an upgrade, replicas of two versions read each other's tickets.
func TestStoredTickets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if os.Getenv("IDP_TEST_MONGO_URI") != "" {
		t.Skip("looks at documents as SQLite has them")
	}
	stored := func(file, name string) {
		type anything struct{ docstore.Meta }
		tickets := docstore.Define(docstore.Schema[anything]{Name: "cas_tickets"})
		doc, err := tickets.First(w.ctx, w.store, docstore.Filter{})
		require.NoError(t, err)
		body, err := doc.JSON()
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, json.Indent(&text, basic.Since(t, w.clock.Now(), body), "", "  "))
		masked := strings.NewReplacer(doc.ID, "<id>", name, "<ticket>").Replace(text.String())
		basic.Golden(t, "testdata/"+file, []byte(masked+"\n"))
	}
	name := w.ticket(forService(service), nil)
	stored("ticket.json.golden", name)
	w.validate(cas.V1, pair(service, name))
	stored("ticket_used.json.golden", name)
}

func clockTime(t testing.TB, text string) clock.Time {
	t.Helper()
	moment, err := clock.Parse(text)
	require.NoError(t, err)
	return moment
}
