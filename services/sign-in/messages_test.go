package signin_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	signin "github.com/idplatform/idplatform/services/sign-in"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/mailtest"
)

const messagesPath = "/v1/sign-in/messages"

func TestPreviewOfMails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.admin()
	c.Patch("/v1/sign-in/settings", object{"name": "Acme <i>", "locale": "zh", "messages": object{
		"sender": "Acme IT", "reply_to": "help@acme.test", "footer": object{"en": "Floor <b>7</b>"},
		"recovery": object{"subject": object{"en": "Hello"}, "words": object{"en": "You & we"}},
	}}).OK(nil)
	got := c.Post(messagesPath+"/preview", object{"kind": "recovery", "locale": "en"}).Object()
	require.Equal(t, []any{"Acme IT", "help@acme.test", "Hello", "en"},
		[]any{got["sender"], got["reply_to"], got["subject"], got["lang"]})
	text, page := got["text"].(string), got["html"].(string)
	for _, want := range []string{
		"Hello Li Wei,", "You & we", "BCDF-GHJK", "10 minutes", "Floor <b>7</b>", "Acme <i>",
	} {
		require.Contains(t, text, want)
	}
	for _, want := range []string{"Hello Li Wei,", "You &amp; we", "BCDF-GHJK", "Floor &lt;b&gt;7", "Acme &lt;i&gt;"} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, text+page, "<no value>")
	require.NotContains(t, page, "://", "nothing is loaded from elsewhere")
	got = c.Post(messagesPath+"/preview", object{"kind": "recovery"}).Object()
	require.Equal(t, []any{"zh-Hans", "您的验证码：BCDF-GHJK"}, []any{got["lang"], got["subject"]})
	got = c.Post(messagesPath+"/preview", object{"kind": "recovery", "locale": "en",
		"messages": object{"sender": "Draft"}}).Object()
	require.Equal(t, []any{"Draft", "Your code: BCDF-GHJK"}, []any{got["sender"], got["subject"]})
	got = c.Post(messagesPath+"/preview", object{"kind": "invitation", "locale": "en"}).Object()
	require.Equal(t, "Your account at Acme <i>", got["subject"])
	text, page = got["text"].(string), got["html"].(string)
	const link = "https://idp.test/sign-in/acme/invitation?code=BCDF-GHJK-MNPQ-RTVW"
	for _, want := range []string{link, "You sign in as li.wei.", "Choose a password", "until 20", " UTC."} {
		require.Contains(t, text, want)
		require.Contains(t, page, want)
	}
	require.NotContains(t, text+page, "ZgotmplZ")
	got = c.Post(messagesPath+"/preview", object{"kind": "linked", "locale": "en"}).Object()
	require.Equal(t, "You can sign in in another way", got["subject"])
	text, page = got["text"].(string), got["html"].(string)
	for _, want := range []string{"Acme SSO", "https://idp.test/sign-in/acme", "If it was not you"} {
		require.Contains(t, text, want)
		require.Contains(t, page, want)
	}
	require.NotContains(t, text+page, "works once")
	require.NotContains(t, text+page, "%!")
	got = c.Post(messagesPath+"/preview", object{"kind": "invitation", "locale": "en", "messages": object{
		"invitation": object{"subject": object{"en": "Welcome"}, "words": object{"en": "Glad <b>you</b> are here"}},
	}}).Object()
	require.Equal(t, "Welcome", got["subject"])
	require.Contains(t, got["html"], "Glad &lt;b&gt;you&lt;/b&gt; are here")
	c.Post(messagesPath+"/preview", object{"kind": "recovery", "messages": object{"reply_to": "x"}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.messages.reply_to")
	c.Post(messagesPath+"/preview", object{"kind": "poem"}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.kind")
}

func TestFaultsOfMailSettings(t *testing.T) {
	t.Parallel()
	c := newWorld(t).admin()
	for member, value := range map[string]any{
		"sender": "a\nb", "reply_to": "Acme <help@acme.test>", "footer": object{"fr": "x"}, "per_hour": -1,
		"per_hour_of_address": 101, "recovery.subject": "", "recovery.words": object{"en": strings.Repeat("x", 501)},
		"invitation.words": object{"en": strings.Repeat("x", 501)},
	} {
		body := object{member: value}
		if of, name, ok := strings.Cut(member, "."); ok {
			body = object{of: object{name: value}}
		}
		if member == "recovery.subject" {
			body = object{"recovery": object{"subject": object{"en": strings.Repeat("x", 101)}}}
		}
		c.Patch("/v1/sign-in/settings", object{"messages": body}).
			Problem(http.StatusBadRequest, "invalid_parameters", "body.messages."+member)
	}
}

func TestTestMails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.admin()
	try := func() *testkit.Answer {
		return c.Post(messagesPath+"/test", object{"kind": "recovery", "locale": "en", "to": "you@acme.test"})
	}
	require.Contains(t, try().Problem(http.StatusConflict, "invalid_state").Detail, "there is no mail server")
	mails := mailtest.Start(t, mailtest.STARTTLS)
	w.change(func() { w.mails = mails })
	require.Equal(t, object{"server": "connection"}, try().Object())
	require.Equal(t, "you@acme.test", mails.Mails()[0].To)
	mails.Answer(func(string) error { return mailtest.Refused(550) })
	require.Contains(t, try().Problem(http.StatusConflict, "invalid_state").Detail, "550")
	c.Post(messagesPath+"/test?dry_run=true", object{"kind": "recovery", "to": "you@acme.test"}).OK(nil)
	for range 17 {
		try().Problem(http.StatusConflict, "invalid_state")
	}
	c.Patch("/v1/sign-in/settings", object{"messages": object{"per_hour": 1000, "per_hour_of_address": 100}}).OK(nil)
	try().Problem(http.StatusTooManyRequests, "rate_limited")
	require.Equal(t, 19, mails.Tried())
	w.Clock.Advance(time.Hour)
	w.change(func() { w.away["identity-sources"] = true })
	try().Problem(http.StatusServiceUnavailable, "unavailable")
	c.Post(messagesPath+"/test", object{"kind": "recovery", "to": "you"}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.to")
}

// at is the specification of a service that is at another address.
func at(publicURL, smtpURL string) service.Spec {
	config := signin.DefaultConfig()
	config.SMTPURL = secret.New(smtpURL)
	spec := signin.Spec(config)
	start := spec.New
	spec.New = func(ctx context.Context, d service.Deps) (service.App, error) {
		d.PublicURL = publicURL
		return start(ctx, d)
	}
	return spec
}

// A platform may have a mail server for tenants that have none.
func TestMailsOfThePlatform(t *testing.T) {
	t.Parallel()
	mails := mailtest.Start(t, mailtest.None)
	address := fmt.Sprintf("smtp+none://127.0.0.1:%d?from=codes@platform.test", mails.Port)
	w := newWorldOf(t, at("https://idp.test", address))
	w.browser().forgets("ann")
	w.sendMails()
	require.Equal(t, "codes@platform.test", mails.Wait(t, 1)[0].From)
	own := mailtest.Start(t, mailtest.STARTTLS)
	limits := object{"per_hour": 100_000}
	w.admin().Patch("/v1/sign-in/settings", object{"messages": limits}).OK(nil)
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = strconv.Itoa(1000 + i)
		w.users[ids[i]] = newcomer(ids[i], "n"+ids[i])
	}
	w.users["bob"] = newcomer("31", "bob")
	many := object{"ids": ids}
	w.inviter().Post("/v1/batch/users/invite?dry_run=true", many).OK(nil)
	w.invite("31")
	w.RunTask("send invitations")
	mails.Wait(t, 2)
	w.inviter().Post("/v1/batch/users/invite?dry_run=true", many).Problem(429, "rate_limited") // it serves others, too
	w.change(func() { w.mails = own })
	w.inviter().Post("/v1/batch/users/invite?dry_run=true", many).OK(nil)
	w.browser().forgets("ann")
	w.code(1)
	require.Len(t, mails.Mails(), 2, "the tenant's own server comes first")
}

// On loopback the platform may write mails to its log, and nowhere else.
func TestMailsInTheLog(t *testing.T) {
	t.Parallel()
	var log basic.LogBuffer
	w := newWorldOf(t, at("http://127.0.0.1:8080", signin.ToLog),
		testkit.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.Equal(t, object{"server": "log"}, w.admin().Post(messagesPath+"/test",
		object{"kind": "recovery", "locale": "en", "to": "you@acme.test"}).Object())
	require.Contains(t, log.String(), "BCDF-GHJK")
	for url, loopback := range map[string]bool{
		"http://localhost:8080": true, "http://[::1]:8080": true, "http://127.1.2.3": true, "https://localhost": false,
		"http://localhost.evil.test": false, "http://192.0.2.1": false, "https://id.acme.test": false, "": false,
	} {
		require.Equal(t, loopback, signin.OnLoopback(url), url)
	}
	_, err := at("https://id.acme.test", signin.ToLog).New(t.Context(), w.Deps)
	require.ErrorContains(t, err, "others can reach the platform")
	config := signin.DefaultConfig()
	config.SMTPURL = secret.New("smtp://codes:sesame@smtp.acme.test")
	require.ErrorContains(t, config.Validate(), "smtp_url must name the address that mails come from")
	require.NotContains(t, config.Validate().Error(), "sesame")
}
