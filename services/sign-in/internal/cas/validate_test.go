package cas_test

import (
	"encoding/xml"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/sign-in/internal/cas"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fixed := func(p *protocol.Person) { p.AuthTime = clockTime(t, "2026-01-31T09:30:00.000Z") }
	for file, c := range map[string]struct {
		version cas.Version
		format  string
		kind    string
	}{
		"v1.txt":  {cas.V1, "", "text/plain; charset=utf-8"},
		"v2.xml":  {cas.V2, "", "application/xml; charset=utf-8"},
		"v3.xml":  {cas.V3, "XML", "application/xml; charset=utf-8"},
		"v2.json": {cas.V2, "JSON", "application/json; charset=utf-8"},
		"v3.json": {cas.V3, "json", "application/json; charset=utf-8"},
	} {
		v := pair(service, w.ticket(forService(service), fixed))
		if c.format != "" {
			v.Set("format", c.format)
		}
		a := w.server.Validate(w.ctx, c.version, v)
		require.NoError(t, a.Err)
		require.Equal(t, c.kind, a.ContentType)
		basic.Golden(t, "testdata/"+file, a.Body)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := "https://wiki.example.com/cas/other"
	fresh := func() string { return w.ticket(forService(service), nil) }
	with := func(v url.Values, name string, values ...string) url.Values {
		v[name] = values
		return v
	}
	for _, c := range []struct {
		name, code string
		v          func() url.Values
		before     func()
	}{
		{"nothing", "INVALID_REQUEST", func() url.Values { return nil }, nil},
		{"no ticket", "INVALID_REQUEST", func() url.Values { return url.Values{"service": {service}} }, nil},
		{"no service", "INVALID_REQUEST", func() url.Values { return url.Values{"ticket": {fresh()}} }, nil},
		{"empty ticket", "INVALID_REQUEST", func() url.Values { return pair(service, "") }, nil},
		{"two services", "INVALID_REQUEST", func() url.Values {
			return with(pair("", fresh()), "service", service, other)
		}, nil},
		{"two tickets", "INVALID_REQUEST", func() url.Values {
			return with(pair(service, ""), "ticket", fresh(), fresh())
		}, nil},
		{"unknown", "INVALID_TICKET", func() url.Values { return pair(service, "ST-AAAAAAAAAAAAAAAAAAAAAAAAAA") }, nil},
		{"of a proxy", "INVALID_TICKET", func() url.Values { return pair(service, "PT-1") }, nil},
		{"by its hash", "INVALID_TICKET", func() url.Values { return pair(service, strings.Repeat("0", 64)) }, nil},
		{"expired", "INVALID_TICKET", func() url.Values { return pair(service, fresh()) },
			func() { w.clock.Advance(60 * time.Second) }},
		{"of a session", "INVALID_TICKET", func() url.Values {
			return with(pair(service, fresh()), "renew", "true")
		}, nil},
		{"other service", "INVALID_SERVICE", func() url.Values { return pair(other, fresh()) }, nil},
		{"other query", "INVALID_SERVICE", func() url.Values { return pair(service+"&x=1", fresh()) }, nil},
		{"proxies", "UNAUTHORIZED_SERVICE_PROXY", func() url.Values {
			return with(pair(service, fresh()), "pgtUrl", "https://wiki.example.com/cas/pgt")
		}, nil},
	} {
		for _, version := range []cas.Version{cas.V1, cas.V2, cas.V3} {
			v := c.v()
			if c.before != nil {
				c.before()
			}
			if version == cas.V1 {
				if !v.Has("pgtUrl") {
					require.Equal(t, "no\n\n", w.validate(version, v), c.name)
				}
				continue
			}
			require.Contains(t, w.validate(version, v), `<cas:authenticationFailure code="`+c.code+`">`, c.name)
			if c.code != "UNAUTHORIZED_SERVICE_PROXY" && c.code != "INVALID_REQUEST" {
				require.Contains(t, w.validate(version, with(v, "service", service)), "INVALID_TICKET",
					"%s: it is used up", c.name)
			}
			v = c.v()
			if c.before != nil {
				c.before()
			}
			if v == nil {
				v = url.Values{}
			}
			require.Contains(t, w.validate(version, with(v, "format", "JSON")), `"code":"`+c.code+`"`, c.name)
		}
	}
}

func TestInternalError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := pair(service, w.ticket(forService(service), nil))
	w.ctx = t.Context() // without a tenant the store refuses
	a := w.server.Validate(w.ctx, cas.V2, v)
	require.Error(t, a.Err)
	require.Contains(t, string(a.Body), `code="INTERNAL_ERROR"`)
}

func TestRenewTakesTicketsOfANewSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{
		w.ticket(forService(service)+"&renew=true", nil),
		w.ticket(forService(service), func(p *protocol.Person) { p.New = true }),
	} {
		v := pair(service, name)
		v.Set("renew", "true")
		require.Equal(t, "yes\nli.wei\n", w.validate(cas.V1, v))
	}
}

func TestJavaSessionsAreNotPartOfAService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := w.ticket(forService("https://wiki.example.com/cas/x;jsessionid=AB.1?y=1"), nil)
	require.Equal(t, "yes\nli.wei\n", w.validate(cas.V1, pair("https://wiki.example.com/cas/x?y=1", name)))
}

func TestTheSameServiceInAnotherEncoding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.client.RedirectURLs = append(w.client.RedirectURLs, "https://root.example.com")
	for _, c := range []struct {
		first, second string
		same          bool
	}{
		{"https://root.example.com", "https://root.example.com/", true},
		{"https://root.example.com/?x=a%20b", "https://ROOT.example.com:443?x=a+b", true},
		{"https://root.example.com/ä?x=a*b~'", "https://root.example.com/%c3%a4?x=a%2Ab%7E%27", true},
		{"https://root.example.com/?x=%zz", "https://root.example.com/?x=%zz", true},
		{"https://root.example.com/?x=%zz", "https://root.example.com/?x=%25zz", false},
		{"https://root.example.com/?x=1&y=2", "https://root.example.com/?y=2&x=1", false},
		{"https://root.example.com/?x", "https://root.example.com/?x=", false},
		{"https://root.example.com/?x=a%26y=b", "https://root.example.com/?x=a&y=b", false},
		{"https://root.example.com/?x=1", "https://root.example.com/?x=1&x=1", false},
		{"https://root.example.com/a", "https://root.example.com/a/", false},
		{"https://root.example.com/a", "https://root.example.com/a#b", false},
		{"https://root.example.com/a", "https://wiki.example.com/a", false},
		{"https://root.example.com/a", "https://root.example.com/x/../a", false},
	} {
		body := w.validate(cas.V2, pair(c.second, w.ticket(forService(c.first), nil)))
		require.Equal(t, c.same, strings.Contains(body, "<cas:user>"), "%s %s", c.first, c.second)
	}
}

func TestATicketIsUsedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := w.ticket(forService(service), nil)
	var good atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if strings.HasPrefix(string(w.server.Validate(w.ctx, cas.V1, pair(service, name)).Body), "yes") {
				good.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, good.Load())
}

func TestAnotherTenantCannotValidate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := w.ticket(forService(service), nil)
	a := w.server.Validate(request.System(t.Context(), "globex"), cas.V1, pair(service, name))
	require.Equal(t, "no\n\n", string(a.Body))
	require.Equal(t, "yes\nli.wei\n", w.validate(cas.V1, pair(service, name)))
}

func TestTextsOfPeopleStayTexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := w.ticket(forService(service), func(p *protocol.Person) {
		p.User = []byte(`{"username":"a\nyes\nadmin\u0000]]>","display_name":"</cas:user><cas:user>admin</cas:user>"}`)
	})
	v := pair(service, name)
	var whole struct {
		Success struct {
			Users []string `xml:"user"`
		} `xml:"authenticationSuccess"`
	}
	require.NoError(t, xml.Unmarshal([]byte(w.validate(cas.V3, v)), &whole))
	require.Len(t, whole.Success.Users, 1)

	name = w.ticket(forService(service), func(p *protocol.Person) { p.User = []byte(`{"username":"a\nadmin"}`) })
	require.Equal(t, "yes\na admin\n", w.validate(cas.V1, pair(service, name)))
}

// take ends a session.
func (w *world) take(session string) []cas.Notice {
	w.t.Helper()
	all, err := docstore.Write(w.ctx, w.store, func(tx *docstore.Tx) ([]cas.Notice, error) {
		return w.server.Take(w.ctx, tx, session)
	})
	require.NoError(w.t, err)
	return all
}

func TestLogoutTellsEverySession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	used, second := w.ticket(forService(service), nil), w.ticket(forService(service), nil)
	unused := w.ticket(forService(service), nil)
	others := w.ticket(forService(service), func(p *protocol.Person) { p.SessionID = "s2" })
	for _, name := range []string{used, second, others} {
		require.Equal(t, "yes\nli.wei\n", w.validate(cas.V1, pair(service, name)))
	}
	w.clock.Advance(time.Hour) // the tickets are known for as long as the session lives
	notices := w.take("s1")
	require.ElementsMatch(t, []cas.Notice{
		{AppID: "2001", Service: service, Ticket: used, User: "li.wei"},
		{AppID: "2001", Service: service, Ticket: second, User: "li.wei"},
	}, notices)
	require.Empty(t, w.take("s1"))
	require.Equal(t, "no\n\n", w.validate(cas.V1, pair(service, unused)))

	w.client.Enabled = false
	a, err := w.server.LogoutPost(w.ctx, notices[0])
	require.NoError(t, err)
	require.Equal(t, service, a.URL)
	var told struct {
		XMLName xml.Name `xml:"urn:oasis:names:tc:SAML:2.0:protocol LogoutRequest"`
		Version string   `xml:"Version,attr"`
		User    string   `xml:"urn:oasis:names:tc:SAML:2.0:assertion NameID"`
		Ticket  string   `xml:"urn:oasis:names:tc:SAML:2.0:protocol SessionIndex"`
	}
	require.NoError(t, xml.Unmarshal([]byte(a.Post.Get("logoutRequest")), &told))
	require.Equal(t, []string{"2.0", "li.wei", notices[0].Ticket}, []string{told.Version, told.User, told.Ticket})
	require.Contains(t, a.Post.Get("logoutRequest"), "<samlp:SessionIndex>ST-") // what clients search for in the text

	w.client.SignIn.SLOURL = "https://wiki.example.com/slo"
	a, err = w.server.LogoutPost(w.ctx, notices[0])
	require.NoError(t, err)
	require.Equal(t, "https://wiki.example.com/slo", a.URL)
	_, err = w.server.LogoutPost(w.ctx, cas.Notice{AppID: "9"})
	require.ErrorIs(t, err, protocol.ErrUnknown)
}

func TestReturn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for target, good := range map[string]bool{
		service: true, "https://wiki.example.com/bye": true, "https://example.com/": true,
		"": false, "https://example.com/x": false, "https://evil.example/": false, "javascript:alert(1)": false,
	} {
		got, err := w.server.Return(w.ctx, url.Values{"service": {target}, "url": {"https://evil.example"}})
		require.NoError(t, err)
		if !good {
			target = ""
		}
		require.Equal(t, target, got)
	}
	w.client.Enabled = false
	got, err := w.server.Return(w.ctx, url.Values{"service": {service}})
	require.NoError(t, err)
	require.Empty(t, got)
	w.away = true
	got, err = w.server.Return(w.ctx, url.Values{"service": {service}})
	require.NoError(t, err, "the session ends all the same")
	require.Empty(t, got)
}

func FuzzService(f *testing.F) {
	for _, s := range []string{
		service, "https://wiki.example.com/cas/../x", "https://a@wiki.example.com/cas;jsessionid=/..",
	} {
		f.Add(s)
	}
	w := newWorld(f)
	f.Fuzz(func(t *testing.T, s string) {
		r, err := w.server.Login(w.ctx, url.Values{"service": {s}})
		if err != nil {
			return
		}
		a, err := w.server.Refuse(w.ctx, issuer, r, protocol.LoginRequired)
		require.NoError(t, err)
		u, err := url.Parse(a.URL)
		require.NoError(t, err)
		require.True(t, strings.EqualFold("wiki.example.com", u.Hostname()), a.URL)
		require.Equal(t, "https", u.Scheme)
	})
}

func BenchmarkTicket(b *testing.B) {
	w := newWorld(b)
	r, err := w.login(forService(service))
	require.NoError(b, err)
	p := w.person()
	for b.Loop() {
		a, err := w.server.Grant(w.ctx, issuer, r, p)
		if err != nil {
			b.Fatal(err)
		}
		name := a.URL[strings.LastIndex(a.URL, "=")+1:]
		body := string(w.server.Validate(w.ctx, cas.V3, pair(service, name)).Body)
		if !strings.Contains(body, "Success") {
			b.Fatal(body)
		}
	}
}
