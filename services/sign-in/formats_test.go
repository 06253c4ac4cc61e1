package signin_test

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/mailtest"
)

// Later versions must be able to read stored documents: whoever changes a golden file provides for the old form.
func TestGoldenDocuments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := w.Clock.Now()
	c := w.clients["portal"]
	c.SignIn.Consent = true
	w.clients["portal"] = c
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).press("agree")
	b.answered(callback)
	settings := w.admin().Patch("/v1/sign-in/settings", object{"name": "Acme", "colour": "#1a5fb4",
		"texts": object{"help": object{"en": "Call 4711."}}}).ID()
	w.change(func() { w.users["bob"], w.mails = newcomer("31", "bob"), mailtest.Start(t, mailtest.STARTTLS) })
	w.invite("31")
	link := ""
	for id := range testkit.Stored(t, w.Service, "acme", "invitation_links") {
		link = id
	}
	b.get(base).factor("add", "").setUp("Work phone")
	factors := w.factors()
	for name, document := range map[string]struct{ collection, id string }{
		"session":  {"sessions", w.sessions()[0].(object)["id"].(string)},
		"consent":  {"consents", first(w.admin().Get("/v1/consents"))["id"].(string)},
		"settings": {"settings", settings}, "person": {"people", "20"},
		"invitation": {"invitations", "31"}, "link": {"invitation_links", link},
		"factor": {"factors", factors[0]["id"].(string)}, "factor_secrets": {"factor_secrets", "20"},
	} {
		testkit.GoldenDocument(t, w.Service, began, name, document.collection, document.id, func(b []byte) []byte {
			b = timeStep.ReplaceAll(sealedText.ReplaceAll(b, []byte(`"sealed": "random"`)), []byte(`"step": 1`))
			return randomID.ReplaceAll(b, []byte(`"$1": "random"`))
		})
	}
}

func TestGoldenDocumentsOfFederation(t *testing.T) {
	t.Parallel()
	f := federate(t, `{"trust_mfa": "1"}`)
	f.linkAnn()
	began := f.Clock.Now()
	b := f.browser().get(f.authorize("portal"))
	f.goesThrough(b, object{"sub": "ann-at-corp", "sid": "one", "amr": []string{"pwd", "mfa"}}).answered(callback)
	random := func(b []byte) []byte { return randomID.ReplaceAll(b, []byte(`"$1": "random"`)) }
	testkit.GoldenDocument(t, f.Service, began, "session_elsewhere", "sessions", f.newest()["id"].(string), random)
	f.tell("credential", "deleted", "500", 2, object{"id": "500", "user_id": 20, "idp_config_id": 77})
	wait.Until(t, func() bool { return testkit.Stored(t, f.Service, "acme", "link_states")["link:500"] != "" })
	testkit.GoldenDocument(t, f.Service, began, "link_state", "link_states", "link:500", random)
}

func first(list *testkit.Answer) object { return list.Object()["items"].([]any)[0].(object) }

// The events are a format that other services and clients rely on.
func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := w.Clock.Now()
	tick := func() { w.Clock.Advance(time.Second) }
	c := w.clients["portal"]
	c.SignIn.Consent = true
	w.clients["portal"] = c
	b := w.browser()
	b.header.Set("X-Forwarded-For", "203.0.113.9")
	b.get(w.authorize("portal")).signIn("ann", "wrong")
	tick()
	b.signIn("ann", password)
	tick()
	b.press("agree").answered(callback)
	tick()
	b.get(w.authorize("wiki", "prompt", "login")).signIn("ann", password).answered("https://wiki.test/cb")
	tick()
	w.change(func() { w.refused["8"] = "not_granted" })
	b.get(w.authorize("wiki")).shows(403, "Wiki")
	tick()
	w.admin().Delete("/v1/consents/"+first(w.admin().Get("/v1/consents"))["id"].(string), nil).OK(nil)
	tick()
	w.admin().Patch("/v1/sign-in/settings", object{"name": "Acme"}).OK(nil)
	tick()
	b.get("/logout").send(url.Values{"confirm": {"yes"}})
	var events []stream.Event
	seen := map[string]bool{}
	events = w.EventsUntil(func(e stream.Event) bool {
		seen[e.Type] = true
		return seen["idp.session.ended"] && seen["idp.sign_in_settings.updated"] && seen["idp.consent.withdrawn"] &&
			seen["idp.sign_in.refused"]
	})
	for i := range events {
		if events[i].Type == "idp.sign_in.failed" { // the flow's id is random
			require.Empty(t, events[i].Actor)
		} else if events[i].Type == "idp.session.created" {
			require.Equal(t, base+"#20", events[i].Actor)
		}
	}
	events = redacted(events)
	slices.SortStableFunc(events, func(a, b stream.Event) int { // those of different records come in any order
		return cmp.Or(a.Time.Std().Compare(b.Time.Std()), strings.Compare(a.Type, b.Type))
	})
	events = append(events, slices.Concat(w.granted(), w.rolledOver(), w.invited(), w.unsent(), w.factored())...)
	testkit.GoldenEvents(t, began, events,
		"session.created", "session.stepped_up", "session.ended", "sign_in.completed", "sign_in.refused", "sign_in.failed",
		"consent.given", "consent.withdrawn", "sign_in_settings.updated", "grant.created", "grant.ended", "saml_key.created",
		"saml_key.updated", "saml_key.activated", "saml_key.deleted", "message.failed", "message.refused", "invitation.created",
		"invitation.resent", "invitation.accepted", "invitation.expired", "invitation.deleted", "factor.created", "factor.used", "factor.deleted")
	testkit.EventTypes(t, w.Service, "sign-in", began, append(events, w.reused()...), map[string]string{
		"session": "Session", "consent": "GivenConsent", "sign_in_settings": "SignInSettings", "grant": "LastingGrant",
		"saml_key": "SAMLKey", "invitation": "Invitation", "factor": "Factor",
	})
}

var (
	sealedText = regexp.MustCompile(`"sealed": ?"[^"]*"`)
	timeStep   = regexp.MustCompile(`"step": ?[0-9]+`)
)

var randomID = regexp.MustCompile(`"(flow_id|family_id|session_id|mail_id|id)": ?"[A-Za-z0-9_-]{22,64}"`)

// redacted replaces the ids of flows, sessions and token families, which are random.
func redacted(events []stream.Event) []stream.Event {
	for i := range events {
		events[i].Data = randomID.ReplaceAll(events[i].Data, []byte(`"$1":"random"`))
		if len(events[i].Subject) >= 22 {
			events[i].Subject = "random"
		}
	}
	return events
}

// granted are the events about access that goes on after the session, and ends.
func (w *world) granted() []stream.Event {
	w.t.Helper()
	b := w.browser().get(w.authorize("portal")).signIn("ann", password).press("agree")
	w.offline(w.relyingParty("portal"), b)
	w.Clock.Advance(time.Second)
	w.admin().Delete("/v1/grants/"+first(w.admin().Get("/v1/grants"))["id"].(string), nil).OK(nil)
	events := w.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.grant.ended" })
	others := func(e stream.Event) bool { return !strings.HasPrefix(e.Type, "idp.grant.") }
	return redacted(slices.DeleteFunc(events, others))
}

// factored are the events about factors.
func (w *world) factored() []stream.Event {
	w.t.Helper()
	b := w.browser().get(base).signIn("ann", password).factor("add", "")
	_, codes := b.setUp("Work phone")
	b.press("kept")
	w.Clock.Advance(time.Second)
	w.browser().get(base).signIn("ann", password).prove(codes[0]).shows(200, "My account")
	w.Clock.Advance(time.Second)
	w.As("acme", auth.UsersSecrets).Delete("/v1/factors/"+w.factors()[0]["id"].(string), nil).OK(nil)
	n := 0
	events := w.EventsUntil(func(e stream.Event) bool {
		if e.Type == "idp.factor.deleted" {
			n++
		}
		return n == 2
	})
	return slices.DeleteFunc(events, func(e stream.Event) bool { return !strings.HasPrefix(e.Type, "idp.factor.") })
}

// invited are the events about invitations.
func (w *world) invited() []stream.Event {
	w.t.Helper()
	w.change(func() {
		w.users["bob"], w.users["eve"] = newcomer("31", "bob"), newcomer("32", "eve")
		w.mails = mailtest.Start(w.t, mailtest.STARTTLS)
	})
	w.invite("31")
	w.Clock.Advance(time.Second)
	w.inviter().Post("/v1/invitations/31/resend", "").OK(nil)
	w.Clock.Advance(time.Second)
	w.tellUser("password_changed", w.users["bob"])
	wait.Until(w.t, func() bool { return w.invitation("31")["status"] == "accepted" })
	w.Clock.Advance(time.Second)
	w.inviter().Delete("/v1/invitations/31", nil).OK(nil)
	w.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.invitation.deleted" })
	w.inviter().Post("/v1/users/32/invite", object{"expires_hours": 1}).OK(nil)
	w.RunTask("send invitations")
	w.mails.Wait(w.t, 1)
	w.Clock.Advance(time.Hour)
	w.RunTask("end invitations")
	events := w.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.invitation.expired" })
	return slices.DeleteFunc(events, func(e stream.Event) bool { return !strings.HasPrefix(e.Type, "idp.invitation.") })
}

// unsent are the events about mails that nobody gets.
func (w *world) unsent() []stream.Event {
	w.t.Helper()
	mails := mailtest.Start(w.t, mailtest.STARTTLS)
	mails.Answer(func(string) error { return mailtest.Refused(550) })
	w.change(func() { w.mails = mails })
	w.Clock.Advance(time.Minute)
	w.admin().Patch("/v1/sign-in/settings", object{"messages": object{"per_hour_of_address": 1}}).OK(nil)
	w.browser().forgets("ann")
	w.sendMails()
	w.Clock.Advance(time.Second)
	w.browser().forgets("ann")
	w.sendMails()
	events := w.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.message.refused" })
	others := func(e stream.Event) bool { return !strings.HasPrefix(e.Type, "idp.message.") }
	return redacted(slices.DeleteFunc(events, others))
}

var (
	samlCert  = regexp.MustCompile(`-----BEGIN CERTIFICATE-----[^"]*`)
	samlPrint = regexp.MustCompile(`([0-9A-F]{2}:){31}[0-9A-F]{2}`)
	samlEnd   = regexp.MustCompile(`("time_expires":)"[^"]*"`)
)

// rolledOver are the events about the keys of SAML: the first one, its successor, and the end of the first one.
func (w *world) rolledOver() []stream.Event {
	w.t.Helper()
	w.browser().get("/saml/metadata").shows(200, "EntityDescriptor")
	w.Clock.Advance(time.Second)
	id := w.admin().Post("/v1/sign-in/saml-keys", nil).ID()
	w.Clock.Advance(time.Second)
	w.admin().Post("/v1/sign-in/saml-keys/"+id+"/activate", nil).OK(nil)
	w.Clock.Advance(time.Minute) // replicas may sign with it so long
	w.admin().Delete("/v1/sign-in/saml-keys/signing", nil).OK(nil)
	events := w.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.saml_key.deleted" })
	events = slices.DeleteFunc(events, func(e stream.Event) bool { return !strings.HasPrefix(e.Type, "idp.saml_key.") })
	for i := range events {
		require.NotContains(w.t, string(events[i].Data), "PRIVATE")
		require.Contains(w.t, string(events[i].Data), `"private_key":"******"`)
		data := samlPrint.ReplaceAll(samlCert.ReplaceAll(events[i].Data, []byte("PEM")), []byte("SHA-256"))
		end := w.Clock.Now().Add(20 * 365 * 24 * time.Hour).String()
		events[i].Data = samlEnd.ReplaceAll(data, []byte(`$1"`+end+`"`))
	}
	return events
}

// reused are the events about a code that was used twice.
func (w *world) reused() []stream.Event {
	w.t.Helper()
	rp := w.relyingParty("portal")
	code := w.signedIn().answered(callback).Get("code")
	_, err := rp.config.Exchange(rp.ctx, code)
	w.must(err)
	_, err = rp.config.Exchange(rp.ctx, code)
	require.Error(w.t, err)
	events := w.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.token_family.reused" })
	return redacted(events[len(events)-1:])
}
