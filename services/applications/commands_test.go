package applications_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// writes describe what the service writes; see testkit.Writes.
var writes = testkit.Writes{
	Service: "applications",
	Start: func(t testing.TB) (*testkit.Service, *testkit.Client) {
		s := start(t)
		return s, s.As("acme", auth.PlatformAdmin)
	},
	Commands: func(t testing.TB, s *testkit.Service, c *testkit.Client) []testkit.Commands {
		p := &prepared{t, s, c, testkit.Names()}
		rows := append(p.ofApplications(), p.ofSwitches()...)
		return append(append(rows, p.ofAccounts()...), p.ofTokens()...)
	},
	Changes:    changes,
	NotCounted: map[string]string{"introspect-token": "it asks"},
}

func TestCommands(t *testing.T)         { writes.TestCommands(t) }
func TestAtOnce(t *testing.T)           { writes.TestAtOnce(t) }
func BenchmarkConnections(b *testing.B) { writes.BenchmarkConnections(b) }

func changes(testing.TB, *testkit.Service, *testkit.Client) []testkit.Change {
	return []testkit.Change{
		{Name: "applications", Do: func(c *testkit.Client, _, n int) *testkit.Answer {
			return c.Post("/v1/applications", object{"name": fmt.Sprint("application ", n)})
		}},
	}
}

// prepared makes the records that operations change. Its own requests are not counted.
type prepared struct {
	t     testing.TB
	s     *testkit.Service
	c     *testkit.Client
	fresh func() string
}

// app makes an application and returns its path.
func (p *prepared) app() string { return path(addApp(p.t, p.c, p.fresh(), object{"category": "4"})) }

func (p *prepared) ofApplications() []testkit.Commands {
	app := testkit.Path(p.app)
	there := app()
	attached := testkit.Path(func() string {
		path := app()
		p.c.Post(path+"/idp", object{"config_id": "31"}).OK(nil)
		return path
	})
	var logo bytes.Buffer
	require.NoError(p.t, png.Encode(&logo, image.NewGray(image.Rect(0, 0, 64, 48))))
	return []testkit.Commands{
		testkit.Takes("get an application", http.MethodGet, there, nil),
		testkit.Takes("find applications by their ids", http.MethodGet, "/v1/applications?ids=1,2", nil),
		testkit.Takes("find applications by a keyword", http.MethodGet, "/v1/applications?keyword=li", nil),
		testkit.Takes("create an application", http.MethodPost, "/v1/applications",
			func() any { return object{"name": p.fresh()} }),
		testkit.Takes("create 100 applications", http.MethodPost, "/v1/batch/applications",
			func() any { return p.items(100, func() object { return object{"name": p.fresh()} }) }),
		testkit.Takes("change an application", http.MethodPatch, there,
			func() any { return object{"descr": p.fresh()} }),
		testkit.Takes("change an application's configuration", http.MethodPatch, there+"/configs",
			func() any { return object{"developer_id": p.fresh()} }),
		testkit.Takes("delete an application", http.MethodDelete, app, nil),
		testkit.Takes("refresh a secret", http.MethodPost, there+"/secrets", nil),
		testkit.Takes("attach a source", http.MethodPost, app.Below("/idp"), object{"config_id": "31"}),
		testkit.Takes("detach a source", http.MethodDelete, attached.Below("/idp/31"), nil),
		{Operation: "upload a logo", Do: func(c *testkit.Client) *testkit.Answer {
			return c.With("Content-Type", "image/png").Do(http.MethodPut, app()+"/logo", logo.Bytes())
		}},
	}
}

// items is the body of a batch.
func (p *prepared) items(n int, item func() object) object {
	items := make([]object, n)
	for i := range items {
		items[i] = item()
	}
	return object{"items": items}
}

// ofSwitches are what an application has on or off, and its protocols.
func (p *prepared) ofSwitches() (rows []testkit.Commands) {
	app := testkit.Path(p.app)
	for _, of := range []struct{ path, name string }{
		{"", "an application"}, {"/sso", "single sign-on"}, {"/mfa", "the second factor"},
		{"/multi-accounts", "several sub-accounts"},
	} {
		on, off := of.path+"/enable", of.path+"/disable"
		rows = append(rows,
			testkit.Takes("enable "+of.name, http.MethodPost, app.After(p.c, off).Below(on), nil),
			testkit.Takes("disable "+of.name, http.MethodPost, app.After(p.c, on).Below(off), nil))
	}
	settings := func() any {
		return object{"protocol_prop": object{"acs_url": "https://a.test/" + p.fresh(), "sp_entity": "sp"}}
	}
	saml := testkit.Path(func() string {
		path := app() + "/protocols/saml"
		p.c.Do(http.MethodPut, path, settings()).OK(nil)
		return path
	})
	return append(rows,
		testkit.Takes("set up a protocol", http.MethodPut, app.Below("/protocols/saml"), settings),
		testkit.Takes("set up a protocol again", http.MethodPut, saml, settings),
		testkit.Takes("enable a protocol", http.MethodPost, saml.After(p.c, "/disable").Below("/enable"), nil),
		testkit.Takes("disable a protocol", http.MethodPost, saml.After(p.c, "/enable").Below("/disable"), nil),
		testkit.Takes("reset a protocol's secret", http.MethodPost, saml.Below("/secret"), nil))
}

func (p *prepared) ofAccounts() []testkit.Commands {
	there := p.app()
	batch := "/v1/batch" + there[len("/v1"):] + "/accounts"
	user := 0
	item := func() object { user++; return object{"user_id": fmt.Sprint(user), "account": p.fresh()} }
	body := func() any { return item() }
	account := testkit.Path(func() string { return there + "/accounts/" + p.c.Post(there+"/accounts", body()).ID() })
	switching := func(to string, first ...string) func() string { // whose query names the sub-account, too
		return func() string {
			path := account()
			query := "?id=" + path[strings.LastIndex(path, "/")+1:]
			for _, before := range first {
				p.c.Post(path+before+query, nil).OK(nil)
			}
			return path + to + query
		}
	}
	return []testkit.Commands{
		testkit.Takes("create a sub-account", http.MethodPost, there+"/accounts", body),
		testkit.Takes("create 100 sub-accounts", http.MethodPost, batch, func() any { return p.items(100, item) }),
		{Operation: "replace a sub-account", Do: func(c *testkit.Client) *testkit.Answer {
			path := account()
			return c.Do(http.MethodPut, path, object{"user_id": fmt.Sprint(user), "account": p.fresh()})
		}},
		testkit.Takes("enable a sub-account", http.MethodPost, switching("/enable", "/disable"), nil),
		testkit.Takes("disable a sub-account", http.MethodPost, switching("/disable"), nil),
		testkit.Takes("delete a sub-account", http.MethodDelete, account, nil),
	}
}

func (p *prepared) ofTokens() []testkit.Commands {
	m := newMachine(p.t, p.s)
	send := func(c *testkit.Client, path string, more url.Values) *testkit.Answer {
		form := url.Values{"client_id": {m.ClientID}, "client_secret": {m.ClientSecret}}
		for name, values := range more {
			form[name] = values
		}
		return c.With("Authorization", "").With("Content-Type", rest.FormType).Post("/v1/oauth2/"+path, form.Encode())
	}
	return []testkit.Commands{
		{Operation: "get an access token", Do: func(c *testkit.Client) *testkit.Answer {
			return send(c, "token", url.Values{"grant_type": {"client_credentials"}})
		}},
		{Operation: "revoke an access token", Do: func(c *testkit.Client) *testkit.Answer {
			return send(c, "revoke", url.Values{"token": {m.token()}})
		}},
		testkit.Takes("rotate the signing keys", http.MethodPost, "/v1/oauth2/keys/rotate", nil),
	}
}
