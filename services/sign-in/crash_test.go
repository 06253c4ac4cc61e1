package signin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/rounds"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/questions"
	signin "github.com/idplatform/idplatform/services/sign-in"
)

// dying is the store as a replica has it that is killed at one of its writes: before it is committed, or after, so that
// its answer is lost.
type dying struct {
	docstore.Engine
	mu    sync.Mutex
	left  int  // writes before the last one, once the play begins
	after bool // the last one is committed
	began bool
	dead  bool
}

var errDead = errors.New("the replica was killed")

func (d *dying) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	d.mu.Lock()
	dead, last := d.dead, d.began && d.left == 0
	if d.began {
		d.left--
	}
	d.dead = d.dead || last
	d.mu.Unlock()
	if dead || last && !d.after {
		return errDead
	}
	if err := d.Engine.Write(ctx, fn); err != nil || !last {
		return err
	}
	return errDead
}

// doomed is a world in which requests come to a replica that dies, and go to another one then.
type doomed struct {
	*world
	replica *testkit.Service
	engine  *dying
}

func newDoomed(w *world, kill int) *doomed {
	d := &doomed{world: w, engine: &dying{left: kill / 2, after: kill%2 == 1}}
	d.replica = w.Replica(signin.Spec(signin.DefaultConfig()), testkit.Options{
		Engine: func(e docstore.Engine) docstore.Engine { d.engine.Engine = e; return d.engine },
	})
	d.engine.mu.Lock()
	d.engine.began = true
	d.engine.mu.Unlock()
	return d
}

// isDead reports whether the replica is dead.
func (d *doomed) isDead() bool {
	d.engine.mu.Lock()
	defer d.engine.mu.Unlock()
	return d.engine.dead
}

func (d *doomed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.isDead() {
		d.Handler.ServeHTTP(w, r)
		return
	}
	d.replica.Handler.ServeHTTP(w, r)
}

func (d *doomed) browser() *browser {
	b := d.world.browser()
	b.client.Transport = handler{d}
	return b
}

const chosen = "a new battery staple"

// setsPassword goes on as a person does, from page to page, until there holds. After an error it opens the last page
// again.
func (b *browser) setsPassword(from string, code func() string, there func() bool) {
	b.w.t.Helper()
	b.get(from)
	page := from
	for range 20 {
		if there() {
			return
		}
		if b.page.StatusCode >= http.StatusInternalServerError {
			b.get(page)
			continue
		}
		page = b.at
		hasPassword := false
		b.w.change(func() { hasPassword = b.w.sets > 0 })
		switch {
		case strings.Contains(b.body, `value="new-password"`):
			b.choose(chosen)
		case strings.Contains(b.body, `value="code"`):
			b.enter(code())
		case strings.Contains(b.body, "Accept the invitation"):
			b.send(url.Values{"code": {from[strings.LastIndex(from, "=")+1:]}})
		case strings.Contains(b.body, over):
			b.get(base)
		case hasPassword:
			b.signIn("bob", chosen)
		case strings.Contains(b.body, `value="send-code"`):
			b.send(url.Values{"action": {"send-code"}, "login_name": {"bob"}})
		default:
			b.send(url.Values{"action": {"forgot"}, "login_name": {"bob"}})
		}
	}
	require.FailNow(b.w.t, "the person does not get there", "%s\n%s", b.at, b.body)
}

// untilNobodyDies plays with a replica that dies at each of its writes, one after the other, until one outlives the
// play.
func untilNobodyDies(t *testing.T, play func(t *testing.T, d *doomed)) {
	t.Helper()
	step := rounds.Of(7, 1)
	for kill := 0; ; kill += step {
		over := false
		t.Run(fmt.Sprint(kill), func(t *testing.T) {
			d := newDoomed(withNewcomers(t), kill)
			play(t, d)
			over = !d.isDead()
		})
		if over || t.Failed() {
			return
		}
		require.Less(t, kill, 200)
	}
}

// Whenever a replica dies while a person sets a new password, the person gets there, the password is set once, and
// the code serves nobody any more.
func TestCrashesInARecovery(t *testing.T) {
	t.Parallel()
	untilNobodyDies(t, func(t *testing.T, d *doomed) {
		w := d.world
		w.users["bob"] = ann(w.Clock.Now())
		w.users["bob"].record["id"], w.users["bob"].record["email"] = "31", "bob@acme.test"
		used := ""
		newest := func() string {
			wait.Until(t, func() bool {
				w.sendMails()
				w.Clock.Advance(time.Second) // a lease of the dead one ends
				return len(w.mails.Mails()) > 0
			})
			mails := w.mails.Mails()
			used = mailedCode.FindString(mails[len(mails)-1].Data)
			return used
		}
		b := d.browser()
		there := func() bool { return strings.HasPrefix(b.at, callback) }
		b.setsPassword(w.authorize("portal"), newest, there)
		require.Equal(t, []any{chosen, 1}, []any{w.users["bob"].password, w.sets})
		b = w.browser().forgets("bob")
		b.enter(used).shows(200, "not right, or it has expired")
	})
}

// Whenever a replica dies while a user is invited and while the person accepts, one link is good, and the password is
// set once.
func TestCrashesInAnInvitation(t *testing.T) {
	t.Parallel()
	untilNobodyDies(t, func(t *testing.T, d *doomed) {
		w := d.world
		request := func(s *testkit.Service) *testkit.Answer {
			return s.As("acme", "users:secrets").With("Idempotency-Key", "k1").Post("/v1/users/31/invite", "")
		}
		if answer := request(d.replica); answer.Status != http.StatusOK {
			require.True(t, d.isDead(), "%s", answer.Body)
			wait.Until(t, func() bool {
				w.Clock.Advance(10 * time.Second)
				return request(w.Service).Status == http.StatusOK
			})
		}
		require.Len(t, w.stored(storedLinks), 1)
		wait.Until(t, func() bool {
			w.sendMails()
			w.Clock.Advance(time.Second)
			return len(w.mails.Mails()) > 0
		})
		b := d.browser()
		b.setsPassword(w.link(len(w.mails.Mails())), nil, func() bool {
			return b.at == base && strings.Contains(b.body, "Change password")
		})
		require.Equal(t, []any{chosen, 1}, []any{w.users["bob"].password, w.sets})
		w.tellUser("password_changed", w.users["bob"])
		wait.Until(t, func() bool { return w.invitation("31")["status"] == "accepted" })
		require.Empty(t, w.stored(storedLinks))
	})
}

// Whenever a replica dies while a person verifies an address, it is verified in the end.
func TestCrashesInAVerification(t *testing.T) {
	t.Parallel()
	untilNobodyDies(t, func(t *testing.T, d *doomed) {
		w := d.world
		w.users["ann"].record["email_verified"] = false
		b := d.browser().get(base)
		for range 20 {
			switch {
			case strings.Contains(b.body, "The address is verified"):
				w.mu.Lock()
				defer w.mu.Unlock()
				require.Equal(t, true, w.users["ann"].record["email_verified"])
				return
			case b.page.StatusCode >= http.StatusInternalServerError:
				b.get(base)
			case strings.Contains(b.body, `value="sign-in"`):
				b.signIn("ann", password)
			case strings.Contains(b.body, `value="verify"`):
				wait.Until(t, func() bool {
					w.sendMails()
					w.Clock.Advance(time.Second) // a lease of the dead one ends
					return len(w.mails.Mails()) > 0
				})
				mails := w.mails.Mails()
				b.email("verify", mailedCode.FindString(mails[len(mails)-1].Data))
			case strings.Contains(b.body, `value="send"`):
				b.email("send", "")
			default: // it was verified, and the answer was lost
				require.Equal(t, true, w.users["ann"].record["email_verified"], "%s", b.body)
				return
			}
		}
		require.FailNow(t, "the person does not get there", "%s\n%s", b.at, b.body)
	})
}

// Whenever a replica dies while a person sets up an app and signs in with it, the person gets there with one app and
// ten codes, and no code works twice.
func TestCrashesInASetUp(t *testing.T) {
	t.Parallel()
	untilNobodyDies(t, func(t *testing.T, d *doomed) {
		w := d.world
		w.demands("portal", func(c *questions.Client) { c.MFA = true })
		var app *phone
		var codes []string
		from := w.authorize("portal")
		play := func(b *browser) {
			page := from
			b.get(from)
			for range 20 {
				switch {
				case strings.HasPrefix(b.at, callback):
					return
				case b.page.StatusCode >= http.StatusInternalServerError:
					b.get(page)
					continue
				}
				page = b.at
				switch {
				case strings.Contains(b.body, `value="sign-in"`):
					b.signIn("ann", password)
				case strings.Contains(b.body, `value="set-up"`):
					b.chooses("otp")
				case strings.Contains(b.body, `value="add-factor"`):
					app = b.phone()
					b.send(url.Values{"action": {"add-factor"}, "code": {app.code()}})
				case strings.Contains(b.body, `value="kept"`):
					codes = b.codes()
					b.press("kept")
				case strings.Contains(b.body, `value="factor"`):
					b.prove(app.next())
				default:
					require.FailNow(t, "an unknown page", "%s\n%s", b.at, b.body)
				}
			}
			require.FailNow(t, "the person does not get there", "%s\n%s", b.at, b.body)
		}
		play(d.browser())
		require.Len(t, codes, 10)
		all := w.factors()
		require.Len(t, all, 2)
		require.EqualValues(t, 10, all[1]["codes_left"])
		play(d.browser())
		again := w.browser().get(from).signIn("ann", password).prove(app.code())
		again.shows(200, "not right").prove(app.next()).answered(callback)
	})
}

// Whenever a replica dies while an invited person sets up a passkey, there is one in the end, and it signs them in.
func TestCrashesInAnInvitationToAPasskey(t *testing.T) {
	t.Parallel()
	untilNobodyDies(t, func(t *testing.T, d *doomed) {
		w := d.world
		w.users["bob"].record["password_set"] = false
		w.invite("31")
		wait.Until(t, func() bool {
			w.sendMails()
			w.Clock.Advance(time.Second)
			return len(w.mails.Mails()) > 0
		})
		var made []*authenticator
		from := w.link(len(w.mails.Mails()))
		b, page := d.browser().get(from), from
		for range 20 {
			if b.at == base && strings.Contains(b.body, "My account") {
				break
			}
			if b.page.StatusCode >= http.StatusInternalServerError {
				b.get(page)
				continue
			}
			page = b.at
			switch {
			case strings.Contains(b.body, "Accept the invitation"):
				b.send(url.Values{"code": {from[strings.LastIndex(from, "=")+1:]}})
			case strings.Contains(b.body, `value="set-up"`):
				b.chooses("webauthn")
			case strings.Contains(b.body, `value="add-factor"`):
				made = append(made, b.makes("", virtualwebauthn.AuthenticatorOptions{}))
			case strings.Contains(b.body, `value="kept"`):
				b.press("kept")
			case strings.Contains(b.body, "Sign in with a passkey"): // the answer with the cookie was lost
				b.uses(made[len(made)-1])
			default:
				require.FailNow(t, "an unknown page", "%s\n%s", b.at, b.body)
			}
		}
		require.Equal(t, base, b.at, "%s", b.body)
		require.Len(t, w.factors(), 2)
		require.Equal(t, "accepted", w.invitation("31")["status"])
		require.Empty(t, w.stored(storedLinks))
		w.Clock.Advance(time.Minute)
		require.True(t, slices.ContainsFunc(made, func(a *authenticator) bool {
			return strings.HasPrefix(w.browser().get(w.authorize("portal")).uses(a).at, callback)
		}))
	})
}

// Whenever a replica dies while an invited person links an identity, there is one link in the end, and it signs them
// in.
func TestCrashesInAnInvitationToALink(t *testing.T) {
	t.Parallel()
	untilNobodyDies(t, func(t *testing.T, d *doomed) {
		f := d.federate(`{}`)
		f.invite("31")
		wait.Until(t, func() bool {
			f.sendMails()
			f.Clock.Advance(time.Second)
			return len(f.mails.Mails()) > 0
		})
		from := f.link(len(f.mails.Mails()))
		b, page := d.browser().get(from), from
		for range 30 {
			if b.at == base && strings.Contains(b.body, "My account") {
				break
			}
			if b.page.StatusCode >= http.StatusInternalServerError {
				b.get(page)
				continue
			}
			if strings.HasPrefix(b.at, f.Issuer) {
				b.get(f.SignIn(b.at, object{"sub": "bob-there"}))
				continue
			}
			page = b.at
			switch {
			case strings.Contains(b.body, "Accept the invitation"):
				b.send(url.Values{"code": {from[strings.LastIndex(from, "=")+1:]}})
			case strings.Contains(b.body, "Link your accounts?"):
				b.press("link")
			case strings.Contains(b.body, `name="connection"`):
				b.send(url.Values{"action": {"leave"}, "connection": {corp}})
			default:
				require.FailNow(t, "an unknown page", "%s\n%s", b.at, b.body)
			}
		}
		require.Equal(t, base, b.at, "%s", b.body)
		require.Len(t, f.links, 1)
		require.Equal(t, "accepted", f.invitation("31")["status"])
		require.Empty(t, f.stored(storedLinks))
		f.goesThrough(f.browser().get(f.authorize("wiki")), object{"sub": "bob-there"}).answered(wikiCallback)
	})
}

// Whenever a replica dies while a person comes from another provider and is linked, the person gets there, and there is
// one link at most.
func TestCrashesInASignInElsewhere(t *testing.T) {
	t.Parallel()
	untilNobodyDies(t, func(t *testing.T, d *doomed) {
		f := d.federate(`{}`)
		b := d.browser().get(f.authorize("portal"))
		for range 30 {
			if strings.HasPrefix(b.at, callback) {
				break
			}
			switch {
			case strings.HasPrefix(b.at, f.Issuer):
				b.get(f.SignIn(b.at, object{"sub": "new"}))
			case b.page.StatusCode >= http.StatusInternalServerError:
				b.get(f.authorize("portal"))
			case strings.Contains(b.body, "Link your accounts?"):
				b.press("link")
			case strings.Contains(b.body, "No account here belongs to that yet"):
				b.signIn("ann", password)
			case strings.Contains(b.body, `name="connection"`):
				b.send(url.Values{"action": {"leave"}, "connection": {corp}})
			default:
				require.FailNow(t, "an unknown page", "%s\n%s", b.at, b.body)
			}
		}
		b.answered(callback)
		require.LessOrEqual(t, len(f.links), 1)
		sessions := len(f.sessions())
		require.LessOrEqual(t, sessions, 2)
		b = f.browser().get(f.authorize("portal"))
		f.goesThrough(b, object{"sub": "new"})
		if len(f.links) == 1 { // the person was asked, unless the flow had to begin again
			b.answered(callback)
			require.Len(t, f.sessions(), sessions+1)
		}
	})
}
