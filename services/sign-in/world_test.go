package signin_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/dnsname"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/questions"
	signin "github.com/idplatform/idplatform/services/sign-in"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/mailtest"
)

// object is a JSON object.
type object = map[string]any

func TestMain(m *testing.M) { basic.Main(m) }

func start(t testing.TB) *testkit.Service {
	return testkit.Start(t, signin.Spec(signin.DefaultConfig()))
}

// world is the service among answers in place of the other services.
type world struct {
	*testkit.Service
	t testing.TB

	mu       sync.Mutex
	users    map[string]*user // by login name
	clients  map[string]questions.Client
	template questions.LoginTemplate
	// templates are further ones, by code.
	templates map[string]questions.LoginTemplate
	refused   map[string]string                 // reason by application
	accounts  map[string][]questions.SubAccount // by application
	away      map[string]bool                   // services that do not answer
	// launchable are the applications on people's own page.
	launchable []questions.Launchable
	sloURL     string // of the application that shop lets in
	verified   int
	browsers   []questions.Browser // of the logins so far
	verifying  func()              // called before each password is looked at; nil for nothing
	setting    func()              // called before each password is set; nil for nothing
	// afterVerify is called after each password was looked at; nil for nothing.
	afterVerify func()
	recipient   *secret.Recipient
	mails       *mailtest.Server // of the tenant's connection; nil: it has none
	verifiedTo  string           // the address that was proven with the newest password
	sets        int              // how many passwords were set
	// connections are settings by id, providers those of another code than oidc, and links the stored credentials of
	// users.
	connections map[string]object
	providers   map[string]string
	links       map[questions.ForeignIdentity]*linked
	unlinked    questions.EndedLink // the last that was removed
	// changes are the profiles of the changes of users so far, node is that of the last one, and refuseChange, if it is
	// not nil, refuses changes.
	changes      []object
	node         string
	refuseChange func(object) error
}

// linked is a stored credential.
type linked struct{ id, userID, status string }

type user struct {
	record     object
	scoped     bool // has a scope of the platform's API
	password   string
	mustChange bool
	sequence   int64
}

const (
	clientSecret = "the-secret-of-the-portal-is-random-enough"
	callback     = "https://portal.test/callback"
)

func ann(now clock.Time) *user {
	return &user{password: "correct horse", sequence: 10, record: object{
		"id": "20", "tenant_id": "acme", "username": "ann", "display_name": "Ann Lee", "email": "ann@acme.test",
		"email_verified": true, "locale": "", "status": "1", "locked": false, "lock_reason": "",
		"time_password_changed": now, "time_modified": now, "mobile": "", "gender": "", "zoneinfo": "",
	}}
}

func newWorld(t testing.TB, options ...testkit.Options) *world {
	t.Helper()
	return newWorldOf(t, signin.Spec(signin.DefaultConfig()), options...)
}

func newWorldOf(t testing.TB, spec service.Spec, options ...testkit.Options) *world {
	t.Helper()
	w := &world{t: t, Service: testkit.Start(t, spec, options...)}
	w.connections, w.providers = map[string]object{}, map[string]string{}
	w.links = map[questions.ForeignIdentity]*linked{}
	w.refused, w.accounts, w.away = map[string]string{}, map[string][]questions.SubAccount{}, map[string]bool{}
	w.users, w.sloURL = map[string]*user{"ann": ann(w.Clock.Now())}, slo
	sum := sha256.Sum256([]byte(clientSecret))
	w.clients = map[string]questions.Client{"portal": {
		AppID: "9", ClientID: "portal", Name: "Portal", Category: "1", Enabled: true, SSO: true,
		RedirectURLs: []string{callback}, LogoutURL: "https://portal.test/bye",
		OIDC:    &questions.OIDCSettings{SignatureAlgorithm: "ES256", LifetimeInSeconds: 600},
		Secrets: []questions.HashedSecret{{SHA256: hex.EncodeToString(sum[:])}},
	}, "wiki": {
		AppID: "8", ClientID: "wiki", Name: "Wiki", Category: "1", Enabled: true, SSO: true,
		RedirectURLs: []string{"https://wiki.test/cb"}, OIDC: &questions.OIDCSettings{SignatureAlgorithm: "ES256"},
		Secrets: []questions.HashedSecret{{SHA256: hex.EncodeToString(sum[:])}},
	}}
	var err error
	w.recipient, err = secret.NewRecipient([]byte(strings.Repeat("seed", 10)))
	require.NoError(t, err)
	w.answer()
	w.Ready()
	return w
}

// change changes the world while the service runs.
func (w *world) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// answer answers in place of the other services.
func (w *world) answer() {
	b := w.Deps.Bus
	w.must(questions.TransitKeyOfUsers.Answer(b, func(context.Context, questions.Nothing) (secret.TransitKey, error) {
		return w.recipient.Key(), nil
	}))
	w.must(questions.VerifyLogin.Answer(b, w.verifyLogin))
	w.must(questions.SetPassword.Answer(b, w.setPassword))
	w.must(questions.ClientOf.Answer(b, func(ctx context.Context, q questions.ClientName) (questions.Client, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.away["applications"] {
			return questions.Client{}, apperr.Away("the applications service", nil)
		}
		for _, c := range w.clients {
			ofOrigin := slices.ContainsFunc(c.RedirectURLs, func(uri string) bool {
				origin, _ := dnsname.Origin(uri)
				return origin == q.Origin
			})
			if request.Tenant(ctx) == "acme" && (c.ClientID == q.ClientID || c.AppID == q.AppID || ofOrigin ||
				c.SAML != nil && c.SAML.SPEntity == q.SPEntity) {
				return c, nil
			}
		}
		return questions.Client{}, apperr.Missing("application")
	}))
	w.must(questions.ApplicationRecords.Answer(b,
		func(ctx context.Context, _ questions.RecordsPage) (questions.Applications, error) {
			if request.Tenant(ctx) != "acme" {
				return questions.Applications{}, nil
			}
			return questions.Applications{Applications: []questions.Application{{ID: "9", Name: "Portal"}}}, nil
		}))
	w.must(questions.LaunchableApplications.Answer(b,
		func(context.Context, questions.RecordsPage) (questions.Launchables, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.away["applications"] {
				return questions.Launchables{}, apperr.Away("the applications service", nil)
			}
			return questions.Launchables{Applications: append([]questions.Launchable{}, w.launchable...)}, nil
		}))
	w.must(questions.Usable.Answer(b,
		func(_ context.Context, q questions.UsableQuestion) (questions.ApplicationIDs, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.away["permissions"] {
				return questions.ApplicationIDs{}, apperr.Away("the permissions service", nil)
			}
			if w.away["answer"] {
				return questions.ApplicationIDs{}, errors.New("the identity belongs to too many nodes and groups")
			}
			return questions.ApplicationIDs{IDs: slices.DeleteFunc(q.AppIDs, func(id string) bool {
				return w.refused[id] != ""
			})}, nil
		}))
	w.must(questions.LoginTemplateOf.Answer(b,
		func(_ context.Context, q questions.TemplateCode) (questions.LoginTemplate, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			t := w.template
			if other, ok := w.templates[q.Code]; ok {
				t = other
			}
			if t.Steps == nil {
				t.Steps = []questions.LoginStep{}
			}
			return t, nil
		}))
	w.must(questions.AccountsOfUser.Answer(b,
		func(_ context.Context, q questions.AccountsQuestion) (questions.SubAccounts, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return questions.SubAccounts{Accounts: append([]questions.SubAccount{}, w.accounts[q.AppID]...)}, nil
		}))
	w.must(questions.GroupsOfUser.Answer(b,
		func(_ context.Context, q questions.GroupsQuestion) (questions.Groups, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.away["organization"] {
				return questions.Groups{}, apperr.Away("the organization service", nil)
			}
			return questions.Groups{Groups: []string{"company/company", "company/rd-" + q.UserID}}, nil
		}))
	w.must(questions.RecoverableUser.Answer(b, w.recoverable))
	w.must(questions.InvitableUser.Answer(b, w.invitable))
	w.must(questions.VerifyEmail.Answer(b, w.verifyEmail))
	w.must(questions.SettingsOfConnection.Answer(b, w.settings))
	w.must(questions.FindLinked.Answer(b, w.findLinked))
	w.must(questions.Link.Answer(b, w.linkUser))
	w.must(questions.ChangeUser.Answer(b, w.changeUser))
	w.must(questions.LinksOf.Answer(b, w.linksOf))
	w.must(questions.Unlink.Answer(b, w.unlink))
	w.must(questions.ExistingConnections.Answer(b,
		func(context.Context, questions.ConnectionIDs) (questions.Connections, error) {
			closed := corpConnection
			closed.ID, closed.Disabled = "78", true
			return questions.Connections{Connections: []questions.Connection{corpConnection, closed}}, nil
		}))
	w.must(questions.MayUse.Answer(b, func(_ context.Context, q questions.Use) (questions.MayUseAnswer, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.away["permissions"] {
			return questions.MayUseAnswer{}, apperr.Away("the permissions service", nil)
		}
		if reason, ok := w.refused[q.AppID]; ok {
			return questions.MayUseAnswer{Reason: reason}, nil
		}
		return questions.MayUseAnswer{Allowed: true, RuleID: "7", Reason: "granted"}, nil
	}))
}

func (w *world) must(err error) { require.NoError(w.t, err) }

func (w *world) open(ctx context.Context, sealed, use, whose string) (string, error) {
	text, err := w.recipient.Open(sealed, questions.PasswordFor(use, request.Tenant(ctx), whose))
	if err != nil {
		return "", apperr.New(apperr.VersionMismatch, "another key")
	}
	return text.Reveal(), nil
}

func (u *user) signedIn() questions.SignedIn {
	record, _ := json.Marshal(u.record)
	return questions.SignedIn{User: record, Sequence: u.sequence + 9} // newer than all events about the revision
}

func (w *world) verifyLogin(ctx context.Context, q questions.Login) (questions.LoginVerified, error) {
	answer, err := w.verify(ctx, q)
	if w.afterVerify != nil {
		w.afterVerify()
	}
	return answer, err
}

func (w *world) verify(ctx context.Context, q questions.Login) (questions.LoginVerified, error) {
	if w.verifying != nil {
		w.verifying()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away["users"] {
		return questions.LoginVerified{}, apperr.Away("the users service", nil)
	}
	w.verified++
	w.browsers = append(w.browsers, q.Browser)
	password, err := w.open(ctx, q.Password, questions.ToVerify, q.LoginName)
	if err != nil {
		return questions.LoginVerified{}, err
	}
	u := w.users[q.LoginName]
	switch {
	case u == nil || u.password != password || request.Tenant(ctx) != "acme":
		return questions.LoginVerified{Reason: "invalid_credentials"}, nil
	case u.record["status"] != "1":
		return questions.LoginVerified{Reason: "disabled"}, nil
	}
	return questions.LoginVerified{Verified: true, MustChangePassword: u.mustChange, SignedIn: u.signedIn()}, nil
}

func (w *world) recoverable(ctx context.Context, q questions.LoginName) (questions.Recoverable, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away["users"] {
		return questions.Recoverable{}, apperr.Away("the users service", nil)
	}
	u := w.users[q.LoginName]
	if u == nil || u.record["status"] != "1" || request.Tenant(ctx) != "acme" {
		return questions.Recoverable{}, nil
	}
	return questions.Recoverable{Found: true, SignedIn: u.signedIn()}, nil
}

func (w *world) verifyEmail(_ context.Context, q questions.ProvenEmail) (questions.SignedIn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away["users"] {
		return questions.SignedIn{}, apperr.Away("the users service", nil)
	}
	for _, u := range w.users {
		switch {
		case u.record["id"] != q.UserID:
		case u.record["email"] != q.Email:
			return questions.SignedIn{}, apperr.New(apperr.InvalidState, "the user has another email address")
		case w.away["had before"]:
			return questions.SignedIn{}, apperr.New(apperr.InvalidState, "another user had the email address before")
		default:
			u.record["email_verified"], u.sequence = true, u.sequence+10
			return u.signedIn(), nil
		}
	}
	return questions.SignedIn{}, apperr.Missing("user")
}

func (w *world) invitable(ctx context.Context, q questions.UserToInvite) (questions.Invitable, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away["users"] {
		return questions.Invitable{}, apperr.Away("the users service", nil)
	}
	for _, u := range w.users {
		if u.record["id"] != q.UserID || request.Tenant(ctx) != "acme" {
			continue
		}
		may := questions.Invitable{SignedIn: u.signedIn()}
		switch {
		case u.record["status"] != "1":
			may.Reason = "disabled"
		case u.password != "":
			may.Reason = questions.HasPassword
		case u.record["email"] == "":
			may.Reason = questions.HasNoEmail
		case u.scoped:
			may.Reason = questions.HasScopes
		}
		return may, nil
	}
	return questions.Invitable{}, apperr.Missing("user")
}

// settings are those of the tenant's connection to a mail server.
func (w *world) settings(ctx context.Context, q questions.SettingsQuestion) (questions.SealedSettings, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if fields := w.connections[q.ConnectionID]; fields != nil && !w.away["identity-sources"] {
		text, err := json.Marshal(fields)
		if err != nil {
			return questions.SealedSettings{}, err
		}
		sealed, err := q.To.Seal(string(text), questions.ForSettings)
		code := cmp.Or(w.providers[q.ConnectionID], "oidc")
		return questions.SealedSettings{ConnectionID: q.ConnectionID, ProviderCode: code, Sealed: sealed}, err
	}
	switch {
	case w.away["identity-sources"]:
		return questions.SealedSettings{}, apperr.Away("the identity-sources service", nil)
	case w.mails == nil || q.ProviderCode != "mfa_mail" || request.Tenant(ctx) != "acme":
		return questions.SealedSettings{}, apperr.Missing("connection")
	}
	fields, err := json.Marshal(object{
		"Host": "127.0.0.1", "Port": w.mails.Port, "Security": "starttls", "CaCertificate": w.mails.CA,
		"Username": "codes", "Password": "right", "From": "codes@acme.test",
	})
	if err != nil {
		return questions.SealedSettings{}, err
	}
	sealed, err := q.To.Seal(string(fields), questions.ForSettings)
	return questions.SealedSettings{ConnectionID: "17", Sealed: sealed}, err
}

// identity is what a link is found by.
func identityOf(in questions.ForeignIdentity) questions.ForeignIdentity {
	return questions.ForeignIdentity{
		ConnectionID: in.ConnectionID, ProviderCode: in.ProviderCode, Subject: in.Subject,
	}
}

func (w *world) findLinked(ctx context.Context, q questions.ForeignIdentity) (questions.Linked, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away["users"] {
		return questions.Linked{}, apperr.Away("the users service", nil)
	}
	l := w.links[identityOf(q)]
	if l == nil || request.Tenant(ctx) != "acme" {
		return questions.Linked{Reason: questions.NotLinked}, nil
	}
	return w.linkedTo(l), nil
}

func (w *world) linkedTo(l *linked) questions.Linked {
	if l.status == "0" {
		return questions.Linked{Reason: questions.LinkDisabled}
	}
	for _, u := range w.users {
		if u.record["id"] == l.userID && u.record["status"] == "1" {
			return questions.Linked{LinkID: l.id, HasScopes: u.scoped, SignedIn: u.signedIn()}
		}
	}
	return questions.Linked{Reason: "disabled"}
}

func (w *world) linkUser(ctx context.Context, q questions.NewLink) (questions.Linked, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away["users"] {
		return questions.Linked{}, apperr.Away("the users service", nil)
	}
	for _, u := range w.users {
		if q.UserID != u.record["id"] && (q.Email == "" || q.Email != u.record["email"] || u.scoped ||
			u.record["email_verified"] != true) {
			continue
		}
		l := w.links[identityOf(q.ForeignIdentity)]
		if l == nil {
			userID, _ := u.record["id"].(string)
			l = &linked{fmt.Sprint(500 + len(w.links)), userID, "1"}
			w.links[identityOf(q.ForeignIdentity)] = l
		}
		if l.userID != u.record["id"] {
			return questions.Linked{}, apperr.New(apperr.AlreadyExists, "the identity is another user's")
		}
		return w.linkedTo(l), nil
	}
	return questions.Linked{Reason: questions.NotLinked}, nil
}

func (w *world) linksOf(_ context.Context, q questions.LinksQuestion) (questions.UserLinks, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	links := questions.UserLinks{Links: []questions.UserLink{}}
	if w.away["users"] {
		return links, apperr.Away("the users service", nil)
	}
	for identity, l := range w.links {
		if l.userID == q.UserID {
			links.Links = append(links.Links, questions.UserLink{
				ID: l.id, ConnectionID: identity.ConnectionID, ProviderCode: identity.ProviderCode, Name: "Ann there",
				Enabled: l.status == "1", TimeCreated: w.Clock.Now(),
			})
		}
	}
	return links, nil
}

// unlink deletes a link. Who has no password keeps the last one.
func (w *world) unlink(_ context.Context, q questions.EndedLink) (questions.Nothing, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away["users"] {
		return questions.Nothing{}, apperr.Away("the users service", nil)
	}
	for identity, l := range w.links {
		if l.id != q.ID || l.userID != q.UserID {
			continue
		}
		for _, u := range w.users {
			if u.record["id"] == q.UserID && u.password == "" && !q.MayBeLast {
				return questions.Nothing{}, apperr.New(apperr.InvalidState, "it is the last")
			}
		}
		delete(w.links, identity)
		w.unlinked = q
		return questions.Nothing{}, nil
	}
	return questions.Nothing{}, apperr.Missing("stored credential")
}

// changeUser makes a user without a password, with a link, or changes one.
func (w *world) changeUser(_ context.Context, q questions.UserChange) (questions.UserState, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var profile object
	if err := json.Unmarshal(q.Profile, &profile); err != nil {
		return questions.UserState{}, err
	}
	w.changes = append(w.changes, maps.Clone(profile))
	w.node = q.NodeID
	if w.refuseChange != nil {
		if err := w.refuseChange(profile); err != nil {
			return questions.UserState{}, err
		}
	}
	if q.Action == questions.UpdateUser {
		return w.updateUser(q, profile)
	}
	made := ann(w.Clock.Now())
	made.password, made.record["email"], made.record["display_name"] = "", "", ""
	made.record["id"], made.record["time_password_changed"] = fmt.Sprint(900+len(w.users)), nil
	identity := questions.ForeignIdentity{
		ConnectionID: fmt.Sprint(q.Credential.IDPConfigID), ProviderCode: q.Credential.ProviderCode,
		Subject: q.Credential.ID1,
	}
	name, _ := profile["username"].(string)
	for _, u := range w.users {
		same := u.record["username"] == name || profile["email"] != "" && u.record["email"] == profile["email"]
		if same || w.links[identity] != nil {
			return questions.UserState{}, apperr.New(apperr.AlreadyExists, "a name is taken")
		}
	}
	maps.Copy(made.record, profile)
	id, _ := made.record["id"].(string)
	w.users[name], w.links[identity] = made, &linked{fmt.Sprint(500 + len(w.links)), id, "1"}
	return questions.UserState{User: made.signedIn().User, Sequence: made.sequence}, nil
}

func (w *world) updateUser(q questions.UserChange, profile object) (questions.UserState, error) {
	for _, u := range w.users {
		if u.record["id"] != q.UserID {
			continue
		}
		if _, ok := profile["email"]; ok && u.record["email_verified"] == true {
			profile["email_verified"] = false
		}
		more, _ := profile["sys_ext_props"].(object)
		props, _ := u.record["sys_ext_props"].(object)
		if more != nil {
			merged := object{}
			maps.Copy(merged, props)
			maps.Copy(merged, more)
			profile["sys_ext_props"] = merged
		}
		maps.Copy(u.record, profile)
		u.sequence += 10
		return questions.UserState{User: u.signedIn().User, Sequence: u.signedIn().Sequence}, nil
	}
	return questions.UserState{}, apperr.Missing("user")
}

func (w *world) setPassword(ctx context.Context, q questions.NewPassword) (questions.SignedIn, error) {
	if w.setting != nil {
		w.setting()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	password, err := w.open(ctx, q.Password, questions.ToSet, q.UserID)
	if err != nil {
		return questions.SignedIn{}, err
	}
	if len(password) < 8 {
		return questions.SignedIn{}, apperr.Invalid("new_password", "must have at least 8 characters")
	}
	for _, u := range w.users {
		if u.record["id"] == q.UserID {
			if changed, _ := u.record["time_password_changed"].(clock.Time); changed != q.TimePasswordChanged {
				return questions.SignedIn{}, apperr.New(apperr.InvalidState, "the password was changed meanwhile")
			}
			if q.Email != "" && q.Email != u.record["email"] {
				return questions.SignedIn{}, apperr.New(apperr.InvalidState, "the email address was changed meanwhile")
			}
			w.verifiedTo, w.sets = q.Email, w.sets+1
			u.password, u.mustChange, u.sequence = password, false, u.sequence+10
			u.record["time_password_changed"] = w.Clock.Now()
			return u.signedIn(), nil
		}
	}
	return questions.SignedIn{}, apperr.Missing("user")
}

// admin is a client of the API.
func (w *world) admin() *testkit.Client { return w.As("acme", auth.SignInRead, auth.SignInWrite) }

// browser is a person's browser: it keeps cookies, and follows redirects within the platform.
type browser struct {
	w      *world
	client *http.Client
	header http.Header
	// page is the last answer, at its address.
	page *http.Response
	at   string
	body string
}

// handler serves a client's requests without a network.
type handler struct{ http.Handler }

func (h handler) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.RequestURI, out.RemoteAddr = r.URL.RequestURI(), "192.0.2.1:4711"
	if out.Body == nil {
		out.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, out)
	answer := recorder.Result()
	answer.Request = r
	return answer, nil
}

// left is where a redirect leaves the platform.
type left struct{ to *url.URL }

func (l *left) Error() string { return "the browser has gone to " + l.to.String() }

func (w *world) browser() *browser {
	jar, err := cookiejar.New(nil)
	w.must(err)
	b := &browser{w: w, header: http.Header{"User-Agent": {"Mozilla/5.0 (X11; Linux) Firefox/140.0"}}}
	b.client = &http.Client{Jar: jar, Transport: handler{w.Handler}, CheckRedirect: func(r *http.Request,
		_ []*http.Request) error {
		if r.URL.Host != "idp.test" {
			return &left{r.URL}
		}
		r.Header = b.header.Clone()
		return nil
	}}
	return b
}

// tab is another tab of the browser.
func (b *browser) tab() *browser {
	other := *b
	return &other
}

const base = "https://idp.test/sign-in/acme"

func (b *browser) do(r *http.Request) *browser {
	b.w.t.Helper()
	for name, values := range b.header {
		r.Header[name] = values
	}
	answer, err := b.client.Do(r)
	if wrapped, ok := err.(*url.Error); ok {
		if gone, ok := wrapped.Err.(*left); ok {
			b.at, b.body = gone.to.String(), ""
			return b
		}
	}
	b.w.must(err)
	defer answer.Body.Close()
	var text strings.Builder
	_, err = copyBody(&text, answer)
	b.w.must(err)
	b.page, b.at, b.body = answer, answer.Request.URL.String(), text.String()
	if refresh := answer.Header.Get("Refresh"); refresh != "" {
		_, to, _ := strings.Cut(refresh, "url=")
		if strings.HasPrefix(to, "https://idp.test") {
			return b.get(to)
		}
		b.at = to
	}
	return b
}

func (b *browser) get(target string) *browser {
	b.w.t.Helper()
	if strings.HasPrefix(target, "/") {
		target = base + target
	}
	r, err := http.NewRequest(http.MethodGet, target, nil)
	b.w.must(err)
	return b.do(r)
}

var (
	action        = regexp.MustCompile(`<form (?:id="go" )?method="post" action="([^"]*)"`)
	sealedRequest = regexp.MustCompile(`name="request" value="([^"]*)"`)
)

// send sends a form of the page, as the script-less browser does.
func (b *browser) send(fields url.Values) *browser {
	b.w.t.Helper()
	to, sealed := action.FindStringSubmatch(b.body), sealedRequest.FindStringSubmatch(b.body)
	require.NotNil(b.w.t, to, "%s", b.body)
	if sealed != nil {
		fields.Set("request", html.UnescapeString(sealed[1]))
	}
	return b.post("https://idp.test"+html.UnescapeString(to[1]), fields)
}

func (b *browser) post(target string, fields url.Values) *browser {
	b.w.t.Helper()
	r, err := http.NewRequest(http.MethodPost, target, strings.NewReader(fields.Encode()))
	b.w.must(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.do(r)
}

// signIn fills in the page.
func (b *browser) signIn(name, password string) *browser {
	b.w.t.Helper()
	return b.send(url.Values{"action": {"sign-in"}, "login_name": {name}, "password": {password}})
}

func (b *browser) press(name string) *browser {
	b.w.t.Helper()
	return b.send(url.Values{"action": {name}})
}

// authorize is the address of an authorization request of an application.
func (w *world) authorize(client string, more ...string) string {
	q := url.Values{"client_id": {client}, "response_type": {"code"}, "scope": {"openid profile email"}, "state": {"s"},
		"redirect_uri": {w.clients[client].RedirectURLs[0]}, "nonce": {"n"}}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return "/authorize?" + q.Encode()
}

// answered fails the test unless the browser is at the application's callback, and returns the answer.
func (b *browser) answered(callback string) url.Values {
	b.w.t.Helper()
	require.True(b.w.t, strings.HasPrefix(b.at, callback+"?"), "%s\n%s", b.at, b.body)
	u, err := url.Parse(b.at)
	b.w.must(err)
	require.Equal(b.w.t, base, u.Query().Get("iss"))
	return u.Query()
}

// shows fails the test unless the browser shows a page with this status and text.
func (b *browser) shows(status int, text string) *browser {
	b.w.t.Helper()
	require.Equal(b.w.t, status, b.page.StatusCode, "%s", b.body)
	require.Contains(b.w.t, b.body, text)
	return b
}
