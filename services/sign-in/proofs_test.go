package signin_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// formerSession is a session as versions without proofs store it.
type formerSession struct {
	docstore.Meta
	UserID              string     `json:"user_id"`
	ACR                 string     `json:"acr"`
	AMR                 []string   `json:"amr"`
	Address             string     `json:"address"`
	Browser             string     `json:"browser"`
	Applications        []object   `json:"applications"`
	TimeSignedIn        clock.Time `json:"time_signed_in"`
	TimeUsed            clock.Time `json:"time_used"`
	TimeExpires         clock.Time `json:"time_expires"`
	TimeEnds            clock.Time `json:"time_ends"`
	TimePasswordChanged clock.Time `json:"time_password_changed"`
}

var formerSessions = docstore.Define(docstore.Schema[formerSession]{
	Name: "sessions", Noun: "session", Sortable: []string{"time_created"},
	Due: func(s *formerSession) clock.Time { return s.TimeExpires },
	Indexes: []docstore.Index[formerSession]{
		docstore.Grouped(docstore.ByText("user_id", func(s *formerSession) string { return s.UserID }), "time_created"),
		docstore.ByList("app_id", func(s *formerSession) (ids []string) {
			for _, a := range s.Applications {
				ids = append(ids, a["app_id"].(string))
			}
			return ids
		}),
		docstore.ByList("connection_id", func(*formerSession) []string { return nil }), // of this version
		docstore.ByList("upstream_session", func(*formerSession) []string { return nil }),
		docstore.ByNumber("time_created", func(s *formerSession) docstore.Value {
			return docstore.Moment(s.TimeCreated)
		}),
	},
})

// formerFlow is a flow as versions without proofs store it.
type formerFlow struct {
	docstore.Meta
	AppID       string     `json:"app_id"`
	Protocol    string     `json:"protocol"`
	Request     any        `json:"request"`
	Browser     string     `json:"browser"`
	Done        []object   `json:"done,omitempty"`
	Proofs      []object   `json:"proofs,omitempty"`
	UserID      string     `json:"user_id"`
	SessionID   string     `json:"session_id"`
	TimeExpires clock.Time `json:"time_expires"`
}

var formerFlows = docstore.Define(docstore.Schema[formerFlow]{
	Name: "flows", Noun: "sign-in", Due: func(f *formerFlow) clock.Time { return f.TimeExpires.Add(24 * time.Hour) },
})

// storedPerson is the copy of a user.
type storedPerson struct {
	docstore.Meta
	User json.RawMessage `json:"user"`
}

var storedPeople = docstore.Define(docstore.Schema[storedPerson]{Name: "people", Noun: "user"})

// rewrite changes all documents of a collection, as another version would.
func rewrite[T any](w *world, of *docstore.Collection[T], name string, change func(*T)) {
	w.t.Helper()
	for id := range testkit.Stored(w.t, w.Service, "acme", name) {
		w.must(docstore.Do(request.System(w.t.Context(), "acme"), w.Deps.Store, func(tx *docstore.Tx) error {
			doc, err := of.Load(request.System(w.t.Context(), "acme"), tx, id)
			if err != nil {
				return err
			}
			change(doc)
			_, err = of.Replace(request.System(w.t.Context(), "acme"), tx, doc)
			return err
		}))
	}
}

// formerly makes all sessions such as versions without proofs store.
func (w *world) formerly() {
	w.t.Helper()
	rewrite(w, formerSessions, "sessions", func(s *formerSession) { s.TimeUsed = s.TimeUsed.Add(time.Millisecond) })
	for _, doc := range testkit.Stored(w.t, w.Service, "acme", "sessions") {
		require.NotContains(w.t, doc, "proofs")
	}
}

// tellAndWait tells of a change of ann, and waits until its event is done with.
func (w *world) tellAndWait() {
	w.t.Helper()
	u := w.users["ann"]
	for _, name := range []string{"Ann A.", "Ann B."} { // events of one record are handled one after the other
		w.change(func() { u.record["display_name"], u.sequence = name, u.sequence+10 })
		w.tellUser("updated", u)
	}
	ctx := request.System(w.t.Context(), "acme")
	wait.Until(w.t, func() bool {
		kept, err := storedPeople.Find(ctx, w.Deps.Store, "20")
		w.must(err)
		p, err := kept.Value()
		w.must(err)
		return strings.Contains(string(p.User), "Ann B.")
	})
}

// What is given in a session that an earlier version began ends with its password, and not before: also where the
// clocks of the two services differ.
func TestGrantsOfFormerSessions(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"a later password": true, "another change": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			set := w.Clock.Now()
			if ends {
				w.Clock.Advance(10 * time.Second) // the sign-in is after the time of the later password
			} else {
				w.users["ann"].record["time_password_changed"] = set.Add(5 * time.Second) // the clock of users is ahead
			}
			b := w.browser().get(w.authorize("wiki")).signIn("ann", password)
			b.answered("https://wiki.test/cb")
			w.formerly()
			b.get(w.authorize("portal"))
			w.offline(w.relyingParty("portal"), b)
			if ends {
				w.users["ann"].record["time_password_changed"] = set.Add(5 * time.Second)
			}
			w.tellAndWait()
			want := 1
			if ends {
				want = 0
			}
			wait.Until(t, func() bool { return len(w.sessions()) == want })
			wait.Until(t, func() bool { return len(w.grants("")) == want })
		})
	}
}

// Replicas of versions without proofs read when the password was set.
func TestFamiliesForFormerReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.offline(w.relyingParty("portal"), w.signedIn())
	for _, doc := range testkit.Stored(t, w.Service, "acme", "oidc_families") {
		require.Contains(t, doc, `"time_password_changed"`)
		require.Contains(t, doc, `"proofs"`)
	}
}

// The API leaves out what an earlier version has not stored, and never has null for it.
func TestFormerSessionsInTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.signedIn()
	w.formerly()
	require.NotContains(t, w.sessions()[0], "proofs")
	w.Clock.Advance(6 * time.Minute)
	b.get(w.authorize("wiki")).answered("https://wiki.test/cb") // rewrites it
	require.NotContains(t, w.sessions()[0], "proofs")
}

// asking is a browser in whose flow ann has signed in, and is asked for her consent.
func (w *world) asking() *browser {
	w.t.Helper()
	c := w.clients["portal"]
	c.SignIn.Consent = true
	w.clients["portal"] = c
	return w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "Portal")
}

// A flow of an earlier version goes on, and the next sign-in in it counts alone.
func TestFormerFlows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.asking()
	rewrite(w, formerFlows, "flows", func(f *formerFlow) {
		f.Done, f.Proofs = []object{{"method": "password", "time": w.Clock.Now()}}, nil
	})
	w.admin().Post("/v1/sessions/end", object{"user_ids": []string{"20"}}).OK(nil)
	b.get(b.at).shows(200, "Sign in").signIn("ann", password)
	require.Len(t, w.sessions()[0].(object)["proofs"], 1)
}

// withKey adds a proof by a key to all flows.
func (w *world) withKey() {
	w.t.Helper()
	rewrite(w, formerFlows, "flows", func(f *formerFlow) {
		f.Proofs = append(f.Proofs, object{
			"method": "webauthn", "kinds": []string{"has", "is"}, "channel": "key", "amr": []string{"hwk", "user"},
			"time": w.Clock.Now(), "credential": "factor:77", "time_set": w.Clock.Now(),
		})
	})
}

// Proofs count for the person who has shown them, and as long as the session that they made.
func TestProofsThatCountNoMore(t *testing.T) {
	t.Parallel()
	for name, who := range map[string]string{"the session has ended": "ann", "another person": "bob"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.users["bob"] = ann(w.Clock.Now())
			w.users["bob"].record["id"], w.users["bob"].record["username"] = "21", "bob"
			b := w.asking()
			w.withKey()
			w.admin().Post("/v1/sessions/end", object{"user_ids": []string{"20"}}).OK(nil)
			b.get(b.at)
			b.shows(200, "Sign in").signIn(who, password)
			s := w.sessions()[0].(object)
			require.Equal(t, w.users[who].record["id"], s["user_id"])
			require.Len(t, s["proofs"], 1)
			require.Equal(t, []any{"urn:idplatform:aal:1", []any{"pwd"}}, []any{s["acr"], s["amr"]})
		})
	}
}

// A sign-in that a new password overtakes comes to nothing: the event about it has ended the sessions that there were.
func TestASignInThatIsOvertaken(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world, *user){
		"a new password": func(w *world, u *user) {
			u.password, u.record["time_password_changed"] = "battery staple", w.Clock.Now()
		},
		"a user who is disabled": func(_ *world, u *user) { u.record["status"] = "0" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.signedIn() // there is a copy of the user
			w.admin().Post("/v1/sessions/end", object{"user_ids": []string{"20"}}).OK(nil)
			w.Clock.Advance(time.Second)
			w.verified, w.afterVerify = 0, func() {
				w.afterVerify = nil
				w.change(func() { change(w, w.users["ann"]) })
				w.tellAndWait()
			}
			w.browser().get(w.authorize("portal")).signIn("ann", password).shows(200, "do not match")
			require.Empty(t, w.sessions())
		})
	}
}

// A code that was given with the older password is no good after the change, though the session goes on.
func TestACodeOfAnOlderPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser().get(base).signIn("ann", password).shows(200, "Where you are signed in")
	own := *b
	w.Clock.Advance(time.Second)
	rp := w.relyingParty("portal")
	rp.config.Scopes = []string{"openid", "offline_access"}
	b.get(rp.config.AuthCodeURL("s")).press("agree")
	code := b.answered(callback).Get("code")
	own.post(base+"/password", url.Values{
		"old": {password}, "password": {"battery staple"}, "repeated": {"battery staple"},
	}).shows(200, "The password is changed")
	_, err := rp.config.Exchange(rp.ctx, code)
	require.ErrorContains(t, err, "invalid_grant")
	require.Empty(t, w.grants(""))
}
