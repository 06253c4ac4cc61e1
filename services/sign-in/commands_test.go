package signin_test

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/mailtest"
)

// TestCommands counts what people and applications do all day; see testkit.Writes. Questions to other services are no
// commands.
func TestCommands(t *testing.T) {
	var w *world
	testkit.Writes{
		Service: "sign-in",
		Start: func(t testing.TB) (*testkit.Service, *testkit.Client) {
			w = newWorld(t)
			return w.Service, w.As("acme", auth.SignInRead, auth.SignInWrite, auth.UsersRead, auth.UsersSecrets)
		},
		Commands: func(testing.TB, *testkit.Service, *testkit.Client) []testkit.Commands {
			return slices.Concat(w.rowsOfPages(), w.rowsOfTokens(), w.rowsOfRecords(), w.rowsOfInvitations(),
				w.rowsOfFactors(), w.rowsOfFederation())
		},
		NotCounted: map[string]string{
			"post-userinfo":    "it is get-userinfo",
			"sign-out-by-form": "it is sign-out", "sign-in-by-saml-by-form": "SAML has no rows yet",
			"sign-out-by-saml-by-form": "SAML has no rows yet", "confirm-saml-sign-out": "SAML has no rows yet",
			"authorize-device": "seldom", "enter-device-code": "seldom", "push-authorization-request": "seldom",
			"change-own-password": "seldom", "withdraw-own-consent": "seldom", "end-own-session": "seldom",
			"end-own-grant": "seldom", "test-message": "seldom", "accept-invitation": "seldom",
			"log-out-from-cas": "as log-out-from-provider", "verify-own-email": "seldom", "change-own-factors": "seldom", "change-own-links": "seldom",
		},
	}.TestCommands(t)
}

const ofPages = "/sign-in/acme"

// as is a client that sends what the browser would.
func (b *browser) as(c *testkit.Client) *testkit.Client {
	u, err := url.Parse(base)
	b.w.must(err)
	var cookies []string
	for _, cookie := range b.client.Jar.Cookies(u) {
		cookies = append(cookies, cookie.Name+"="+cookie.Value)
	}
	return c.With("Authorization", "").With("Cookie", strings.Join(cookies, "; ")).
		With("Content-Type", "application/x-www-form-urlencoded").With("Sec-Fetch-Site", "same-origin").
		With("User-Agent", b.header.Get("User-Agent")).With("X-Forwarded-For", b.header.Get("X-Forwarded-For"))
}

// exempt makes the requests come from the machine itself, which may fail and ask without end.
func (b *browser) exempt() *browser {
	b.header.Set("X-Forwarded-For", "127.0.0.1")
	return b
}

// form is where the form of the page goes, and what it says.
func (b *browser) form(fields url.Values) (path, body string) {
	if sealed := sealedRequest.FindStringSubmatch(b.body); sealed != nil {
		fields.Set("request", html.UnescapeString(sealed[1]))
	}
	to := action.FindStringSubmatch(b.body)
	require.NotNil(b.w.t, to, "%s", b.body)
	return html.UnescapeString(to[1]), fields.Encode()
}

// onward is a redirect that counts as a success.
func onward(a *testkit.Answer) *testkit.Answer {
	if a.Status == http.StatusSeeOther || a.Status == http.StatusFound {
		a.Status = http.StatusOK
	}
	return a
}

func (w *world) rowsOfPages() []testkit.Commands {
	fields := func() url.Values {
		return url.Values{"action": {"sign-in"}, "login_name": {"ann"}, "password": {password}}
	}
	known := w.signedIn()
	mails := mailtest.Start(w.t, mailtest.STARTTLS)
	w.change(func() { w.mails = mails })
	asking := func() *browser {
		b := w.browser().exempt().get(w.authorize("portal"))
		return b.send(url.Values{"action": {"forgot"}, "login_name": {"ann"}})
	}
	return []testkit.Commands{
		{Operation: "show the sign-in page", Do: func(c *testkit.Client) *testkit.Answer {
			return w.browser().as(c).Get(ofPages + w.authorize("portal"))
		}},
		{Operation: "take a request by a form of another site", Do: func(c *testkit.Client) *testkit.Answer {
			_, form, _ := strings.Cut(w.authorize("portal"), "?")
			elsewhere := w.browser().as(c).With("Sec-Fetch-Site", "cross-site")
			return elsewhere.Do(http.MethodPost, ofPages+"/authorize", form)
		}},
		{Operation: "sign in by a password", Do: func(c *testkit.Client) *testkit.Answer {
			b := w.browser().get(w.authorize("portal"))
			path, body := b.form(fields())
			return onward(b.as(c).Do(http.MethodPost, path, body))
		}},
		{Operation: "sign in by a password after a wrong one", Do: func(c *testkit.Client) *testkit.Answer {
			b := w.browser().exempt().get(w.authorize("portal")).signIn("ann", "wrong")
			path, body := b.form(fields())
			return onward(b.as(c).Do(http.MethodPost, path, body))
		}},
		{Operation: "ask for a code by mail", Do: func(c *testkit.Client) *testkit.Answer {
			b := asking()
			path, body := b.form(url.Values{"action": {"send-code"}, "login_name": {"ann"}})
			return onward(b.as(c).Do(http.MethodPost, path, body))
		}},
		{Operation: "enter a code that is wrong", Do: func(c *testkit.Client) *testkit.Answer {
			b := asking().send(url.Values{"action": {"send-code"}, "login_name": {"nobody"}})
			path, body := b.form(url.Values{"action": {"code"}, "code": {"BCDF-GHJK"}})
			return onward(b.as(c).Do(http.MethodPost, path, body))
		}},
		{Operation: "enter an application for the first time", Do: func(c *testkit.Client) *testkit.Answer {
			return onward(w.signedIn().as(c).Get(ofPages + w.authorize("wiki")))
		}},
		{Operation: "enter an application again", Do: func(c *testkit.Client) *testkit.Answer {
			return onward(known.as(c).Get(ofPages + w.authorize("portal")))
		}},
		{Operation: "enter an application by SAML again", Do: func(c *testkit.Client) *testkit.Answer {
			b, _ := w.shop()
			return b.as(c).Get(ofPages + "/saml/start/7")
		}},
		{Operation: "enter an application by SAML again after a minute", Do: func(c *testkit.Client) *testkit.Answer {
			b, _ := w.shop()
			w.Clock.Advance(time.Minute)
			return b.as(c).Get(ofPages + "/saml/start/7")
		}},
		{Operation: "show the own page", Do: func(c *testkit.Client) *testkit.Answer {
			return known.as(c).Get(ofPages)
		}},
		{Operation: "sign out", Do: func(c *testkit.Client) *testkit.Answer {
			b := w.signedIn().get("/logout")
			path, body := b.form(url.Values{"confirm": {"yes"}})
			return onward(b.as(c).Do(http.MethodPost, path, body))
		}},
	}
}

func (w *world) rowsOfFederation() []testkit.Commands {
	f := (&world{Service: w.Service, t: w.t, connections: w.connections, clients: w.clients}).federate(`{}`)
	w.change(func() {
		w.templates = map[string]questions.LoginTemplate{"sso": f.template}
		c := w.clients["portal"]
		c.AppID, c.ClientID, c.LoginTemplate = "10", "intranet", "sso"
		w.clients["intranet"] = c
		w.links[questions.ForeignIdentity{ConnectionID: corp, ProviderCode: "oidc", Subject: "ann-at-corp"}] =
			&linked{"500", "20", "1"}
	})
	begin := func() *browser { return w.browser().get(w.authorize("intranet")) }
	return []testkit.Commands{
		{Operation: "go to another provider", Do: func(c *testkit.Client) *testkit.Answer {
			b := begin()
			path, body := b.form(url.Values{"action": {"leave"}, "connection": {corp}})
			return b.as(c).Do(http.MethodPost, path, body)
		}},
		{Operation: "sign in at another provider", Do: func(c *testkit.Client) *testkit.Answer {
			b := begin()
			back := f.SignIn(b.leaves(), object{"sub": "ann-at-corp"})
			return onward(b.as(c).Get(ofPages + strings.TrimPrefix(back, base)))
		}},
		{Operation: "log-out-from-provider", Do: func(c *testkit.Client) *testkit.Answer {
			f.goesThrough(begin(), object{"sub": "ann-at-corp", "sid": "one"})
			token := url.Values{"logout_token": {f.LogoutToken(object{"sid": "one"})}}
			return c.With("Content-Type", "application/x-www-form-urlencoded").Do(http.MethodPost,
				ofPages+"/backchannel/"+corp, token.Encode())
		}},
	}
}

// tokens are those of a new session.
func (w *world) tokens() (access, refresh string) {
	w.t.Helper()
	answer := w.byCode(w.As("acme"), w.signedIn())
	var found struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	require.NoError(w.t, json.Unmarshal(answer.Body, &found), "%s", answer.Body)
	return found.Access, found.Refresh
}

func (w *world) byCode(c *testkit.Client, b *browser) *testkit.Answer {
	code := b.answered(callback).Get("code")
	return asPortal(c).Do(http.MethodPost, ofPages+"/token",
		url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}}.Encode())
}

// asPortal is a client with the secret of an application.
func asPortal(c *testkit.Client) *testkit.Client {
	pair := base64.StdEncoding.EncodeToString([]byte("portal:" + clientSecret))
	return c.With("Authorization", "Basic "+pair).With("Content-Type", "application/x-www-form-urlencoded")
}

func (w *world) rowsOfTokens() []testkit.Commands {
	about := func(path string) func(c *testkit.Client) *testkit.Answer {
		return func(c *testkit.Client) *testkit.Answer {
			access, _ := w.tokens()
			return asPortal(c).Do(http.MethodPost, ofPages+path, url.Values{"token": {access}}.Encode())
		}
	}
	return []testkit.Commands{
		{Operation: "get tokens by a code", Do: func(c *testkit.Client) *testkit.Answer {
			return w.byCode(c, w.signedIn())
		}},
		{Operation: "refresh tokens", Do: func(c *testkit.Client) *testkit.Answer {
			_, refresh := w.tokens()
			return asPortal(c).Do(http.MethodPost, ofPages+"/token",
				url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}.Encode())
		}},
		{Operation: "get a person's claims", Do: func(c *testkit.Client) *testkit.Answer {
			access, _ := w.tokens()
			return c.With("Authorization", "Bearer "+access).Get(ofPages + "/userinfo")
		}},
		{Operation: "introspect a token", Do: about("/introspect")},
		{Operation: "revoke a token", Do: about("/revoke")},
	}
}

func (w *world) rowsOfRecords() []testkit.Commands {
	session := testkit.Path(func() string {
		w.admin().Post("/v1/sessions/end", object{"user_ids": []string{"20"}}).OK(nil)
		w.signedIn()
		return "/v1/sessions/" + w.sessions()[0].(object)["id"].(string)
	})
	consent := testkit.Path(func() string {
		b := w.browser().get(w.authorize("portal", "prompt", "consent")).signIn("ann", password)
		b.press("agree").answered(callback)
		return "/v1/consents/" + first(w.admin().Get("/v1/consents"))["id"].(string)
	})
	grant := testkit.Path(func() string {
		w.offline(w.relyingParty("portal"), w.signedIn())
		return "/v1/grants/" + first(w.admin().Get("/v1/grants?page_sort=time_created[desc]"))["id"].(string)
	})
	samlKey := func(status string) testkit.Path {
		return func() string {
			w.admin().Post(samlKeys, nil)
			for _, k := range w.admin().Get(samlKeys).Object()["items"].([]any) {
				if k.(object)["status"] == status {
					return samlKeys + "/" + k.(object)["id"].(string)
				}
			}
			return ""
		}
	}
	return []testkit.Commands{
		testkit.Takes("end a session", http.MethodDelete, session, nil),
		testkit.Takes("end the sessions of a user", http.MethodPost, "/v1/sessions/end", func() any {
			session()
			return object{"user_ids": []string{"20"}}
		}),
		testkit.Takes("withdraw a consent", http.MethodDelete, consent, nil),
		testkit.Takes("end a grant", http.MethodDelete, grant, nil),
		testkit.Takes("create the next SAML key", http.MethodPost, samlKeys, func() any {
			for _, k := range w.admin().Get(samlKeys).Object()["items"].([]any) {
				if id := k.(object)["id"].(string); k.(object)["status"] == "next" {
					w.admin().Delete(samlKeys+"/"+id, nil).OK(nil)
				}
			}
			return nil
		}),
		testkit.Takes("activate a SAML key", http.MethodPost, samlKey("next").Below("/activate"), nil),
		testkit.Takes("delete a SAML key", http.MethodDelete, samlKey("next"), nil),
		testkit.Takes("change the settings", http.MethodPatch, "/v1/sign-in/settings", object{"name": "Acme"}),
		testkit.Takes("replace the settings", http.MethodPut, "/v1/sign-in/settings", object{"name": "Acme"}),
	}
}

func (w *world) rowsOfInvitations() []testkit.Commands {
	mails := mailtest.Start(w.t, mailtest.STARTTLS)
	mails.Answer(func(string) error { return mailtest.Refused(550) }) // nothing waits
	ids := 1000
	newcomers := func(n int) (all []string) {
		w.admin().Patch("/v1/sign-in/settings", object{"messages": object{"per_hour": 100_000}}).OK(nil)
		w.change(func() {
			w.mails = mails
			for range n {
				ids++
				id := strconv.Itoa(ids)
				w.users["new."+id] = newcomer(id, "new."+id)
				all = append(all, id)
			}
		})
		return all
	}
	user := testkit.Path(func() string { return "/v1/users/" + newcomers(1)[0] })
	invited := testkit.Path(func() string {
		id := newcomers(1)[0]
		w.invite(id)
		return "/v1/invitations/" + id
	})
	many := func(n int) func() any { return func() any { return object{"ids": newcomers(n)} } }
	return []testkit.Commands{
		testkit.Takes("invite a user", http.MethodPost, user.Below("/invite"), nil),
		testkit.Takes("invite 10 users", http.MethodPost, "/v1/batch/users/invite", many(10)),
		testkit.Takes("invite 100 users", http.MethodPost, "/v1/batch/users/invite", many(100)),
		testkit.Takes("send an invitation again", http.MethodPost, invited.Below("/resend"), nil),
		testkit.Takes("revoke an invitation", http.MethodDelete, invited, nil),
	}
}

func (w *world) rowsOfFactors() []testkit.Commands {
	users := 2000
	person := func() string {
		users++
		id := strconv.Itoa(users)
		w.change(func() {
			u := ann(w.Clock.Now())
			u.record["id"], u.record["username"] = id, "user."+id
			w.users["user."+id] = u
		})
		return id
	}
	setsUp := func() (b *browser, id string) {
		id = person()
		b = w.browser().get(base).signIn("user."+id, password)
		return b.factor("add", "").chooses("otp"), id
	}
	sendsCode := func(b *browser, p *phone, act string) (path, body string) {
		return b.form(url.Values{"action": {act}, "code": {p.code()}})
	}
	enrolled := func() (p *phone, codes []string, id string) {
		b, id := setsUp()
		p = b.phone()
		b.send(url.Values{"action": {"add-factor"}, "code": {p.code()}})
		codes = b.codes()
		b.press("kept")
		w.Clock.Advance(30 * time.Second) // to the next code
		return p, codes, id
	}
	factor := testkit.Path(func() string {
		_, _, id := enrolled()
		return "/v1/factors/" + first(w.admin().Get("/v1/factors?type=otp&user_id=" + id))["id"].(string)
	})
	codesOf := testkit.Path(func() string {
		_, _, id := enrolled()
		return "/v1/users/" + id + "/recovery-codes"
	})
	return []testkit.Commands{
		{Operation: "sign in by a password before an app", Do: func(c *testkit.Client) *testkit.Answer {
			_, _, id := enrolled()
			b := w.browser().get(w.authorize("portal"))
			fields := url.Values{"action": {"sign-in"}, "login_name": {"user." + id}, "password": {password}}
			path, body := b.form(fields)
			return onward(b.as(c).Do(http.MethodPost, path, body))
		}},
		{Operation: "sign in by an app after a password", Do: func(c *testkit.Client) *testkit.Answer {
			p, _, id := enrolled()
			b := w.browser().get(w.authorize("portal")).signIn("user."+id, password)
			path, body := sendsCode(b, p, "factor")
			return onward(b.as(c).Do(http.MethodPost, path, body))
		}},
		{Operation: "enter a wrong code of an app", Do: func(c *testkit.Client) *testkit.Answer {
			_, _, id := enrolled()
			b := w.browser().exempt().get(w.authorize("portal")).signIn("user."+id, password)
			path, body := b.form(url.Values{"action": {"factor"}, "code": {"000000"}})
			return onward(b.as(c).Do(http.MethodPost, path, body))
		}},
		{Operation: "set up an app", Do: func(c *testkit.Client) *testkit.Answer {
			b, _ := setsUp()
			path, body := sendsCode(b, b.phone(), "add-factor")
			return onward(b.as(c).Do(http.MethodPost, path, body))
		}},
		testkit.Takes("delete a factor", http.MethodDelete, factor, nil),
		testkit.Takes("give new recovery codes", http.MethodPost, codesOf, nil),
	}
}
