package signin_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/questions"
)

// tells has the provider send a logout token, and returns the status of the answer.
func (f *federated) tells(connection string, claims object) int {
	f.t.Helper()
	return f.sends(connection, f.LogoutToken(claims))
}

func (f *federated) sends(connection, token string) int {
	f.t.Helper()
	r, err := http.NewRequest(http.MethodPost, base+"/backchannel/"+connection,
		strings.NewReader(url.Values{"logout_token": {token}}.Encode()))
	f.must(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return f.browser().do(r).page.StatusCode
}

// comesFrom signs Ann in by a session at the provider, in a browser of its own.
func (f *federated) comesFrom(session any) *browser {
	f.t.Helper()
	b := f.browser().get(f.authorize("portal"))
	f.goesThrough(b, object{"sub": "ann-at-corp", "sid": session}).answered(callback)
	return b
}

// Who signs out at the provider is signed out here: of what rests on that session there, or of all.
func TestLogoutAtTheProvider(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		claims object
		left   int // of sessions by one, two, and one that the provider has not named
	}{
		"a session":                {object{"sid": "one"}, 2},
		"a session of a subject":   {object{"sub": "ann-at-corp", "sid": "one"}, 1},
		"a subject":                {object{"sub": "ann-at-corp"}, 0},
		"another session":          {object{"sid": "three"}, 3},
		"another subject":          {object{"sub": "bob-there"}, 3},
		"a session of another one": {object{"sub": "bob-there", "sid": "one"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, `{}`)
			f.linkAnn()
			f.comesFrom("one")
			f.comesFrom("two")
			f.comesFrom(nil)
			f.browser().get(f.authorize("wiki")).signIn("ann", password).answered(wikiCallback)
			require.Equal(t, http.StatusOK, f.tells(corp, row.claims))
			require.Len(t, f.sessions(), row.left+1)
			if row.left < 3 {
				f.EventsUntil(func(e stream.Event) bool {
					var data struct {
						Reason string `json:"reason"`
					}
					f.must(e.Read(&data))
					return e.Type == "idp.session.ended" && data.Reason == "upstream_logout"
				})
			}
		})
	}
}

// A token that is not the provider's, not of now or not for this ends nothing.
func TestLogoutTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	f.linkAnn()
	f.comesFrom("one")
	now := f.Clock.Now().Millis() / 1000
	for name, claims := range map[string]object{
		"another audience":  {"aud": "other"},
		"another issuer":    {"iss": "https://evil.test"},
		"old":               {"iat": now - 3600, "exp": nil},
		"ended":             {"exp": now - 120},
		"of the future":     {"iat": now + 3600, "exp": now + 7200},
		"without a time":    {"iat": nil},
		"an ID token":       {"events": nil},
		"another event":     {"events": object{"https://evil.test": object{}}},
		"with a nonce":      {"nonce": "n"},
		"without a subject": {"sid": nil},
	} {
		all := object{"sid": "one"}
		for member, value := range claims {
			all[member] = value
		}
		require.Equal(t, http.StatusBadRequest, f.tells(corp, all), name)
		f.Clock.Advance(time.Minute) // wrong ones are counted
		now += 60
	}
	good := object{"sid": "one"}
	require.Equal(t, http.StatusBadRequest, f.sends(corp, f.LogoutToken(good)+"x"))
	require.Equal(t, http.StatusBadRequest, f.sends(corp, ""))
	require.Equal(t, http.StatusBadRequest, f.tells("78", good), "a connection that there is not")
	require.Len(t, f.sessions(), 1)
	require.Equal(t, http.StatusOK, f.tells(corp, object{"sid": "one", "exp": nil}))
	require.Empty(t, f.sessions())

	f.comesFrom("two")
	f.change(func() { f.away["users"] = true })
	require.Equal(t, http.StatusServiceUnavailable, f.tells(corp, object{"sub": "ann-at-corp"}))
	f.change(func() { f.away["users"] = false })
	require.Len(t, f.sessions(), 1)
	require.Equal(t, http.StatusOK, f.tells(corp, object{"sub": "ann-at-corp"}))
	require.Empty(t, f.sessions())
}

// Wrong tokens of one address are refused after some, and right ones are never counted.
func TestLogoutTokensAreCounted(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	f.linkAnn()
	for range 100 {
		require.Equal(t, http.StatusOK, f.tells(corp, object{"sid": "one"}))
	}
	status := 0
	for range 100 {
		if status = f.sends(corp, "wrong"); status != http.StatusBadRequest {
			break
		}
	}
	require.Equal(t, http.StatusTooManyRequests, status)
}

// A sign-in that is under way when the person signs out there begins no session, whatever is left to show. A later one
// does.
func TestLogoutDuringASignIn(t *testing.T) {
	t.Parallel()
	for name, claims := range map[string]object{
		"a session": {"sid": "one"}, "a subject": {"sub": "ann-at-corp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, `{}`)
			f.linkAnn()
			f.demands("portal", func(c *questions.Client) { c.MFA = true })
			b := f.goesThrough(f.browser().get(f.authorize("portal")), object{"sub": "ann-at-corp", "sid": "one"})
			b.shows(200, "Set up a second factor")
			require.Equal(t, http.StatusOK, f.tells(corp, claims))
			p, _ := b.chooses("otp").setUp("")
			b.press("kept")
			require.Empty(t, f.sessions())
			f.Clock.Advance(time.Minute)
			b = f.goesThrough(f.browser().get(f.authorize("portal")), object{"sub": "ann-at-corp", "sid": "two"})
			b.prove(p.next()).answered(callback)
		})
	}
}

// What an application keeps without a session stays.
func TestLogoutAtTheProviderLeavesGrants(t *testing.T) {
	t.Parallel()
	f := federate(t, `{}`)
	f.linkAnn()
	rp := f.relyingParty("portal")
	token := f.offline(rp, f.comesFrom("one"))
	require.Equal(t, http.StatusOK, f.tells(corp, object{"sid": "one", "sub": "ann-at-corp"}))
	require.Empty(t, f.sessions())
	require.NoError(t, rp.refresh(token))
}
