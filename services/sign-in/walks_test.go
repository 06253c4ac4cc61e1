package signin_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/rounds"
	"github.com/idplatform/idplatform/services/questions"
)

// A thief who knows ann's password, reads her mails, and has an account with a passkey of his own walks through the
// pages at random, in two tabs. Nobody gets a session of hers, a factor or a password for her, or a session with less
// than is demanded, and no page breaks.
func TestWalksOfAThief(t *testing.T) {
	t.Parallel()
	for i, options := range []virtualwebauthn.AuthenticatorOptions{{}, {UserNotVerified: true}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			newThief(t, options).walks(rounds.Of(30, 500))
		})
	}
}

// thief is who walks. Tabs are of one browser; answer is what he has sent for a passkey before.
type thief struct {
	*world
	key    *authenticator
	tabs   [2]*browser
	answer url.Values
}

func newThief(t *testing.T, options virtualwebauthn.AuthenticatorOptions) *thief {
	h := &thief{world: withMails(t)}
	h.addBob()
	for _, name := range []string{"ann", "bob"} {
		b := h.browser().get(base).signIn(name, password).factor("add", "").chooses("webauthn")
		h.key = b.makes("", options)
		b.press("kept")
		h.Clock.Advance(time.Second)
	}
	h.admin().Post("/v1/sessions/end", object{"user_ids": []string{"20", "21"}}).OK(nil)
	h.demands("portal", func(c *questions.Client) { c.MFA = true })
	return h
}

func (h *thief) walks(n int) {
	h.t.Helper()
	for walk := range n {
		r := rand.New(rand.NewPCG(uint64(walk), 7)) //nolint:gosec // the same walks each time
		h.Clock.Advance(time.Hour)
		h.tabs[0] = h.browser().exempt().get(h.authorize("portal"))
		h.tabs[1] = h.tabs[0].tab().get(base)
		var trace []string
		for range 10 {
			trace = append(trace, h.step(r))
			require.Less(h.t, h.tabs[0].page.StatusCode, 500, "walk %d: %v", walk, trace)
			require.NotContains(h.t, []int{404, 409}, h.tabs[0].page.StatusCode, "walk %d: %v", walk, trace)
		}
		require.Equal(h.t, password, h.users["ann"].password, "walk %d: %v", walk, trace)
		for _, s := range h.sessions() {
			require.Equal(h.t, "21", s.(object)["user_id"], "walk %d: %v", walk, trace)
			require.NotEqual(h.t, "urn:idplatform:aal:1", s.(object)["acr"], "walk %d: %v", walk, trace)
		}
		for _, f := range h.factors() {
			require.False(h.t, f["user_id"] == "20" && f["name"] == "thief's", "walk %d: %v", walk, trace)
		}
	}
}

// step does one thing in the first tab, and returns what.
func (h *thief) step(r *rand.Rand) string {
	h.t.Helper()
	h.Clock.Advance(time.Second)
	if r.IntN(4) == 0 {
		h.tabs[0], h.tabs[1] = h.tabs[1], h.tabs[0]
	}
	b := h.tabs[0]
	if !action.MatchString(b.body) {
		b.get(h.authorize("portal"))
	}
	forms := []url.Values{
		{"action": {"sign-in"}, "login_name": {"ann"}, "password": {password}},
		{"action": {"sign-in"}, "login_name": {"ann"}, "password": {"wrong"}},
		{"action": {"sign-in"}, "login_name": {"bob"}, "password": {password}},
		{"action": {"passkey"}}, {"action": {"passkey"}, "again": {"yes"}}, {"action": {"add-factor"}, "name": {"thief's"}},
		{"action": {"set-up"}, "method": {"otp"}}, {"action": {"set-up"}, "method": {"webauthn"}},
		{"action": {"new-codes"}}, {"action": {"kept"}}, {"action": {"later"}}, {"action": {"another"}}, {"action": {"continue"}},
		{"action": {"back"}}, {"action": {"forgot"}, "login_name": {"ann"}},
		{"action": {"send-code"}, "login_name": {"ann"}}, {"action": {"code"}},
		{"action": {"new-password"}, "password": {"a thief's password"}, "repeated": {"a thief's password"}},
	}
	opens := []string{
		h.authorize("portal", "prompt", "login"), h.authorize("portal", "prompt", "select_account"), h.authorize("wiki"), "",
	}
	n := r.IntN(len(forms) + len(opens) + 2)
	switch {
	case n < len(forms):
		h.send(b, forms[n])
		return forms[n].Encode()
	case n < len(forms)+len(opens):
		b.get(base + opens[n-len(forms)])
		return opens[n-len(forms)]
	}
	task := []string{"add", "renew"}[n-len(forms)-len(opens)]
	b.factor(task, "")
	return task
}

// send sends a form with what the page asks for, as far as the thief has it.
func (h *thief) send(b *browser, form url.Values) {
	h.t.Helper()
	asks, makes := challengeOf.MatchString(b.body), strings.Contains(b.body, `data-passkey="create"`)
	switch form.Get("action") {
	case "passkey":
		if asks && form.Get("again") == "" {
			h.answer = h.key.answer(b)
		}
		for name, values := range h.answer {
			form[name] = values
		}
	case "add-factor":
		if key := shownKey.FindStringSubmatch(b.body); key != nil {
			form.Set("code", (&phone{h.world, strings.ReplaceAll(key[1], "-", "")}).code())
		}
		if makes {
			asked, err := virtualwebauthn.ParseAttestationOptions(b.options())
			h.must(err)
			form.Set("passkey", virtualwebauthn.CreateAttestationResponse(h.key.party, h.key.device,
				newKey(), *asked))
		}
	case "code":
		h.sendMails()
		for _, m := range h.mails.Mails() {
			if m.To == "ann@acme.test" {
				form.Set("code", mailedCode.FindString(m.Data))
			}
		}
	}
	if action.MatchString(b.body) {
		b.send(form)
	}
}
