package users_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/users"
)

// signer asks as the sign-in service does, for the tenant acme.
type signer struct {
	t   testing.TB
	s   *testkit.Service
	key secret.TransitKey
}

func signerOf(t testing.TB, s *testkit.Service) *signer {
	t.Helper()
	key, err := questions.TransitKeyOfUsers.Ask(request.System(t.Context(), "acme"), s.Deps.Bus, questions.Nothing{})
	require.NoError(t, err)
	return &signer{t, s, key}
}

func (a *signer) sealed(use, whose, password string) string {
	a.t.Helper()
	text, err := a.key.Seal(password, questions.PasswordFor(use, "acme", whose))
	require.NoError(a.t, err)
	return text
}

func (a *signer) verify(name, password string) questions.LoginVerified {
	a.t.Helper()
	return a.verifyFrom(questions.Browser{}, name, password)
}

func (a *signer) verifyFrom(b questions.Browser, name, password string) questions.LoginVerified {
	a.t.Helper()
	answer, err := questions.VerifyLogin.Ask(request.System(a.t.Context(), "acme"), a.s.Deps.Bus,
		questions.Login{LoginName: name, Password: a.sealed(questions.ToVerify, name, password), Browser: b})
	require.NoError(a.t, err)
	return answer
}

func (a *signer) set(id, change, password string, proven clock.Time) (questions.SignedIn, error) {
	a.t.Helper()
	return questions.SetPassword.Ask(request.System(a.t.Context(), "acme"), a.s.Deps.Bus, questions.NewPassword{
		ID: change, UserID: id, Password: a.sealed(questions.ToSet, id, password), TimePasswordChanged: proven,
	})
}

// changed is when the password of an answer's user was changed.
func (a *signer) changed(in questions.SignedIn) clock.Time {
	a.t.Helper()
	var user struct {
		Changed clock.Time `json:"time_password_changed"`
	}
	require.NoError(a.t, json.Unmarshal(in.User, &user))
	return user.Changed
}

func TestAnswerVerifyLogin(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"email": "li.wei@acme.test", "password": "correct horse battery"})
	a := signerOf(t, s)
	for _, name := range []string{"li.wei", "LI.WEI", "li.wei@acme.test"} {
		answer := a.verify(name, "correct horse battery")
		require.True(t, answer.Verified)
		require.False(t, answer.MustChangePassword)
		var record object
		require.NoError(t, json.Unmarshal(answer.User, &record))
		require.Equal(t, user["id"], record["id"])
		require.NotContains(t, string(answer.User), "argon2")
		require.Positive(t, answer.Sequence)
	}
	refused := questions.LoginVerified{Reason: "invalid_credentials"}
	require.Equal(t, refused, a.verify("li.wei", "wrong"))
	require.Equal(t, refused, a.verify("nobody", "correct horse battery"))
	c.Post(path(user, "lock"), object{"reason": "on leave"}).OK(nil)
	require.Equal(t, questions.LoginVerified{Reason: "locked"}, a.verify("li.wei", "correct horse battery"))
}

// A new password by mail is for who may sign in, has a password, and has an address that is nobody else's.
func TestAnswerRecoverable(t *testing.T) {
	t.Parallel()
	scopes := map[string]string{}
	s := startWith(t, cheap(), scopes)
	c := s.As("acme", auth.UsersRead, auth.UsersWrite, auth.UsersSecrets, auth.UsersVerify)
	ask := func(tenant, name string) questions.Recoverable {
		t.Helper()
		answer, err := questions.RecoverableUser.Ask(request.System(t.Context(), tenant), s.Deps.Bus,
			questions.LoginName{LoginName: name})
		require.NoError(t, err)
		return answer
	}
	user := addUser(t, c, "li.wei", object{"email": "li.wei@acme.test", "password": password})
	for _, name := range []string{"li.wei", " LI.WEI ", "li.wei@acme.test"} {
		answer := ask("acme", name)
		require.True(t, answer.Found)
		var record object
		require.NoError(t, json.Unmarshal(answer.User, &record))
		require.Equal(t, user["id"], record["id"])
		require.NotContains(t, string(answer.User), "argon2")
		require.Positive(t, answer.Sequence)
	}
	require.Equal(t, questions.Recoverable{}, ask("acme", "nobody"))
	require.Equal(t, questions.Recoverable{}, ask("globex", "li.wei"))
	addUser(t, c, "no.mail", object{"password": password})
	require.False(t, ask("acme", "no.mail").Found)
	addUser(t, c, "no.password", object{"email": "no.password@acme.test"})
	require.False(t, ask("acme", "no.password").Found)

	scopes[user["id"].(string)] = "kv:read"
	require.False(t, ask("acme", "li.wei").Found, "whoever changes the address would get the scope")
	delete(scopes, user["id"].(string))

	for range 5 {
		login(t, c, "li.wei", "wrong")
	}
	require.Equal(t, "locked", login(t, c, "li.wei", password)["reason"])
	require.True(t, ask("acme", "li.wei").Found, "strangers have locked the user")
	c.Post(path(user, "unlock"), nil).OK(nil)
	c.Post(path(user, "lock"), object{"reason": "on leave"}).OK(nil)
	require.False(t, ask("acme", "li.wei").Found)
	c.Post(path(user, "unlock"), nil).OK(nil)
	c.Patch(path(user), object{"status": "0"}).OK(nil)
	require.False(t, ask("acme", "li.wei").Found)
	c.Patch(path(user), object{"status": "1"}).OK(nil)
	require.True(t, ask("acme", "li.wei").Found)

	c.Patch(settings, object{"shared_contacts": true}).OK(nil)
	addUser(t, c, "ann", object{"email": "li.wei@acme.test", "password": password})
	for _, name := range []string{"li.wei", "ann", "li.wei@acme.test"} {
		require.False(t, ask("acme", name).Found, "two users read these mails: %s", name)
	}
}

// Sequences of answers and events are of one row, so that the asker knows which of two is the later.
// Strangers cannot lock people out of browsers with which they have signed in before.
func TestKnownBrowsersCountApart(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": password})
	id := user["id"].(string)
	a := signerOf(t, s)
	own := questions.Browser{ID: "own", KnownTo: []string{id}}
	phone := questions.Browser{ID: "phone", KnownTo: []string{"1", id}}
	strange := questions.Browser{ID: "strange", KnownTo: []string{"1"}}
	from := func(b questions.Browser, password string) string {
		t.Helper()
		answer := a.verifyFrom(b, "li.wei", password)
		require.Equal(t, answer.Reason == "", answer.Verified)
		return answer.Reason
	}
	for range 4 {
		require.Equal(t, "invalid_credentials", from(own, "wrong"))
	}
	require.Empty(t, from(own, password), "four are not enough")
	for range 5 {
		require.Equal(t, "invalid_credentials", from(strange, "wrong"))
	}
	require.Equal(t, "locked", from(strange, password))
	require.Equal(t, "locked", login(t, c, "li.wei", password)["reason"])
	require.Empty(t, from(own, password), "strangers have locked the user, but not for a known browser")
	require.Equal(t, "locked", from(strange, password), "a known browser's success leaves their lock as it is")
	require.Equal(t, true, c.Get(path(user)).Object()["locked"])

	for range 7 {
		require.Equal(t, "invalid_credentials", from(phone, "wrong"))
	}
	require.Equal(t, "invalid_credentials", from(phone, password), "too many from this one")
	require.Empty(t, from(own, password), "but not from another")
	s.Clock.Advance(15*time.Minute - time.Millisecond)
	require.Equal(t, "invalid_credentials", from(phone, password))
	s.Clock.Advance(time.Millisecond)
	require.Empty(t, from(phone, password), "guessing on has not prolonged it")
	require.Empty(t, from(strange, password), "and the user's lock has ended")

	for range 5 {
		from(own, "wrong")
	}
	require.Equal(t, false, c.Get(path(user)).Object()["locked"], "a known browser's failures lock nobody else")
	require.Empty(t, from(strange, password))
	c.Post(path(user, "reset-password"), object{"new_password": "a new Passw0rd"}).OK(nil)
	require.Empty(t, from(own, "a new Passw0rd"), "a new password restarts the count")

	c.Post(path(user, "lock"), object{"reason": "left"}).OK(nil)
	require.Equal(t, "locked", from(own, "a new Passw0rd"), "a caller's lock holds for all browsers")
	c.Post(path(user, "unlock"), nil).OK(nil)
	c.Patch(path(user), object{"status": "0"}).OK(nil)
	require.Equal(t, "disabled", from(own, "a new Passw0rd"))
}

// A person who is told to choose a new password does so in a known browser, although strangers have locked the user.
func TestANewPasswordWhileStrangersLockTheUser(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": password})
	a := signerOf(t, s)
	for range 5 {
		a.verify("li.wei", "wrong")
	}
	id := user["id"].(string)
	in := a.verifyFrom(questions.Browser{ID: "own", KnownTo: []string{id}}, "li.wei", password)
	require.True(t, in.Verified)
	_, err := a.set(id, "1", "a new Passw0rd", a.changed(in.SignedIn))
	require.NoError(t, err)
	c.Post(path(user, "lock"), object{"reason": "left"}).OK(nil)
	in.SignedIn = questions.SignedIn{User: c.Get(path(user)).Body}
	_, err = a.set(id, "2", "another Passw0rd", a.changed(in.SignedIn))
	require.ErrorContains(t, err, "locked")
}

func TestTheSequenceOfASignInIsThatOfItsEvent(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": "correct horse battery"})
	answer := signerOf(t, s).verify("li.wei", "correct horse battery")
	c.Post(path(user, "lock"), nil).OK(nil)
	for _, e := range s.Events(3) {
		switch e.Type {
		case "idp.user.locked":
			require.Greater(t, e.Sequence, answer.Sequence)
		default:
			require.LessOrEqual(t, e.Sequence, answer.Sequence, e.Type)
		}
	}
}

func TestASealedPasswordIsGoodForItsQuestionAlone(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	addUser(t, c, "li.wei", object{"password": "correct horse battery"})
	addUser(t, in(s, "globex"), "li.wei", object{"password": "correct horse battery"})
	a := signerOf(t, s)
	for name, try := range map[string]struct{ tenant, sealed string }{
		"another name":   {"acme", a.sealed(questions.ToVerify, "wang", "correct horse battery")},
		"another use":    {"acme", a.sealed(questions.ToSet, "li.wei", "correct horse battery")},
		"another tenant": {"globex", a.sealed(questions.ToVerify, "li.wei", "correct horse battery")},
		"not sealed":     {"acme", "correct horse battery"},
	} {
		_, err := questions.VerifyLogin.Ask(request.System(t.Context(), try.tenant), s.Deps.Bus,
			questions.Login{LoginName: "li.wei", Password: try.sealed})
		require.Equal(t, apperr.VersionMismatch, apperr.KindOf(err), name)
	}
	require.True(t, a.verify("li.wei", "correct horse battery").Verified)
}

func TestReplicasHaveOneTransitKey(t *testing.T) {
	t.Parallel()
	s, _ := acme(t)
	replica := s.Replica(users.Spec(cheap()))
	require.Equal(t, signerOf(t, s).key, signerOf(t, replica).key)
}

// An invitation is for who may sign in, has no password yet, and has an address.
func TestAnswerInvitable(t *testing.T) {
	t.Parallel()
	scopes := map[string]string{}
	s := startWith(t, cheap(), scopes)
	c := s.As("acme", auth.UsersRead, auth.UsersWrite, auth.UsersSecrets, auth.UsersVerify)
	ask := func(tenant, id string) (questions.Invitable, error) {
		return questions.InvitableUser.Ask(request.System(t.Context(), tenant), s.Deps.Bus,
			questions.UserToInvite{UserID: id})
	}
	reason := func(user object) string {
		t.Helper()
		answer, err := ask("acme", user["id"].(string))
		require.NoError(t, err)
		return answer.Reason
	}
	bob := addUser(t, c, "bob", object{"email": "bob@acme.test"})
	id := bob["id"].(string)
	answer, err := ask("acme", id)
	require.NoError(t, err)
	require.Empty(t, answer.Reason)
	require.Contains(t, string(answer.User), "bob@acme.test")
	require.Positive(t, answer.Sequence)
	_, err = ask("globex", id)
	require.Equal(t, apperr.NotFound, apperr.KindOf(err))
	require.Equal(t, questions.HasNoEmail, reason(addUser(t, c, "no.mail", nil)))
	require.Equal(t, questions.HasPassword,
		reason(addUser(t, c, "has.one", object{"email": "one@acme.test", "password": password})))
	scopes[id] = "kv:read"
	require.Equal(t, questions.HasScopes, reason(bob), "whoever changes the address would get the scope")
	delete(scopes, id)
	c.Patch(path(bob), object{"status": "0"}).OK(nil)
	require.Equal(t, "disabled", reason(bob))

	lonely := testkit.Start(t, users.Spec(cheap())) // nobody says which scopes there are
	c = lonely.As("acme", auth.UsersRead, auth.UsersWrite)
	bob = addUser(t, c, "bob", object{"email": "bob@acme.test"})
	_, err = questions.InvitableUser.Ask(request.System(t.Context(), "acme"), lonely.Deps.Bus,
		questions.UserToInvite{UserID: bob["id"].(string)})
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
}

// Who shows by a mail that an address is theirs has it verified with the first password. If they have another one by
// then, or if others have it, too, it is not.
func TestSetPasswordByMail(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	a := signerOf(t, s)
	set := func(user object, email string) error {
		t.Helper()
		id := user["id"].(string)
		_, err := questions.SetPassword.Ask(request.System(t.Context(), "acme"), s.Deps.Bus, questions.NewPassword{
			ID: "1", UserID: id, Password: a.sealed(questions.ToSet, id, password), Email: email,
		})
		return err
	}
	bob := addUser(t, c, "bob", object{"email": "bob@acme.test"})
	require.Equal(t, apperr.InvalidState, apperr.KindOf(set(bob, "robert@acme.test")))
	require.Equal(t, false, c.Get(path(bob)).Object()["password_set"])
	require.NoError(t, set(bob, "bob@acme.test"))
	now := c.Get(path(bob)).Object()
	require.Equal(t, []any{true, true, false},
		[]any{now["password_set"], now["email_verified"], now["must_change_password"]})

	allowSharing(c, true)
	eve := addUser(t, c, "eve", object{"email": "bob@acme.test"})
	require.NoError(t, set(eve, "bob@acme.test"))
	require.Equal(t, false, c.Get(path(eve)).Object()["email_verified"])
	ann := addUser(t, c, "ann", object{"email": "ann@acme.test"})
	require.NoError(t, set(ann, ""))
	require.Equal(t, false, c.Get(path(ann)).Object()["email_verified"])
}

func TestAnswerVerifyEmail(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	verify := func(user object, email string) error {
		t.Helper()
		answer, err := questions.VerifyEmail.Ask(request.System(t.Context(), "acme"), s.Deps.Bus,
			questions.ProvenEmail{UserID: user["id"].(string), Email: email})
		if err == nil {
			require.Contains(t, string(answer.User), `"email_verified":true`)
		}
		return err
	}
	bob := addUser(t, c, "bob", object{"email": "bob@acme.test"})
	require.Equal(t, apperr.InvalidState, apperr.KindOf(verify(bob, "robert@acme.test")))
	require.Equal(t, apperr.InvalidState, apperr.KindOf(verify(addUser(t, c, "no.mail"), "")))
	require.Equal(t, apperr.NotFound, apperr.KindOf(verify(object{"id": "404404"}, "bob@acme.test")))
	require.NoError(t, verify(bob, "bob@acme.test"))
	require.NoError(t, verify(bob, "bob@acme.test"), "again")
	require.Equal(t, true, c.Get(path(bob)).Object()["email_verified"])
	allowSharing(c, true)
	eve := addUser(t, c, "eve", object{"email": "bob@acme.test"})
	require.Equal(t, apperr.InvalidState, apperr.KindOf(verify(eve, "bob@acme.test")), "bob had it before")
	require.NoError(t, verify(bob, "bob@acme.test"))
	require.Equal(t, false, c.Get(path(eve)).Object()["email_verified"])
	c.Patch(path(bob), object{"status": "0"}).OK(nil)
	require.Equal(t, apperr.InvalidState, apperr.KindOf(verify(bob, "bob@acme.test")))
}

func TestAnswerSetPassword(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei", object{"password": "correct horse battery", "must_change_password": true})
	id := user["id"].(string)
	a := signerOf(t, s)
	verified := a.verify("li.wei", "correct horse battery")
	require.True(t, verified.MustChangePassword)
	proven := a.changed(verified.SignedIn)

	s.Clock.Advance(time.Second)
	for _, bad := range []string{"short", "li.wei is my name", "correct horse battery"} {
		_, err := a.set(id, "1", bad, proven)
		require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err), bad)
		require.NotContains(t, err.Error(), bad)
	}
	set, err := a.set(id, "1", "another staple", proven)
	require.NoError(t, err)
	require.Greater(t, set.Sequence, verified.Sequence)
	again, err := a.set(id, "1", "another staple", proven)
	require.NoError(t, err, "the same change, asked for again")
	require.Equal(t, set, again)
	require.False(t, a.verify("li.wei", "another staple").MustChangePassword)
	require.False(t, a.verify("li.wei", "correct horse battery").Verified)

	_, err = a.set(id, "2", "a third staple", proven)
	require.Equal(t, apperr.InvalidState, apperr.KindOf(err), "the proof is of the password before")
	require.True(t, a.verify("li.wei", "another staple").Verified)

	_, err = a.set("404404", "3", "another staple", proven)
	require.Equal(t, apperr.NotFound, apperr.KindOf(err))
	c.Post(path(user, "lock"), object{"until": s.Clock.Now().Add(time.Hour)}).OK(nil)
	_, err = a.set(id, "4", "a third staple", a.changed(set))
	require.Equal(t, apperr.InvalidState, apperr.KindOf(err))
}
