package users_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/questions"
)

// Sign-in finds the user of an identity by its stored credential alone, and links identities to users who have proven
// both, or whose verified address is the provider's, too.
func TestAnswerLinks(t *testing.T) {
	t.Parallel()
	scopes := map[string]string{}
	s := startWith(t, cheap(), scopes)
	c := s.As("acme", auth.UsersRead, auth.UsersWrite, auth.UsersSecrets)
	entra := func(subject string) questions.ForeignIdentity {
		return questions.ForeignIdentity{
			ConnectionID: "77", ProviderCode: "microsoft", Subject: subject, Username: "li\nwei",
			DisplayName: strings.Repeat("李", 300),
		}
	}
	find := func(tenant string, in questions.ForeignIdentity) questions.Linked {
		t.Helper()
		answer, err := questions.FindLinked.Ask(request.System(t.Context(), tenant), s.Deps.Bus, in)
		require.NoError(t, err)
		return answer
	}
	link := func(in questions.NewLink) (questions.Linked, error) {
		return questions.Link.Ask(request.System(t.Context(), "acme"), s.Deps.Bus, in)
	}
	wei := addUser(t, c, "li.wei", object{"email": "Li.Wei@acme.test", "email_verified": true})
	bob := addUser(t, c, "bob", object{"email": "bob@acme.test"})
	weiID, bobID := wei["id"].(string), bob["id"].(string)

	require.Equal(t, questions.Linked{Reason: questions.NotLinked}, find("acme", entra("s1")))
	made, err := link(questions.NewLink{ForeignIdentity: entra("s1"), UserID: weiID})
	require.NoError(t, err)
	require.Contains(t, string(made.User), `"username":"li.wei"`)
	require.NotEmpty(t, made.LinkID)
	stored := c.Get(credentials + "/" + made.LinkID).Object()
	require.Equal(t, "liwei", stored["username"])
	require.Equal(t, strings.Repeat("李", 256), stored["display_name"])
	require.Equal(t, 77.0, stored["idp_config_id"])
	again, err := link(questions.NewLink{ForeignIdentity: entra("s1"), UserID: weiID})
	require.NoError(t, err)
	require.Equal(t, made.LinkID, again.LinkID, "once")
	require.Equal(t, made.LinkID, find("acme", entra("s1")).LinkID)
	for name, other := range map[string]questions.ForeignIdentity{
		"another subject":    entra("S1"),
		"another connection": {ConnectionID: "78", ProviderCode: "microsoft", Subject: "s1"},
		"another provider":   {ConnectionID: "77", ProviderCode: "google", Subject: "s1"},
		"no connection":      {ConnectionID: "0", ProviderCode: "microsoft", Subject: "s1"},
	} {
		require.Equal(t, questions.NotLinked, find("acme", other).Reason, name)
	}
	require.Equal(t, questions.NotLinked, find("globex", entra("s1")).Reason)
	_, err = link(questions.NewLink{ForeignIdentity: entra("s1"), UserID: bobID})
	require.Equal(t, apperr.AlreadyExists, apperr.KindOf(err), "it is another user's")
	_, err = link(questions.NewLink{ForeignIdentity: entra(strings.Repeat("s", 257)), UserID: bobID})
	require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))

	scopes[weiID] = "users:read"
	require.True(t, find("acme", entra("s1")).HasScopes)
	byEmail := func(subject, email string) questions.Linked {
		t.Helper()
		answer, err := link(questions.NewLink{ForeignIdentity: entra(subject), Email: email})
		require.NoError(t, err)
		return answer
	}
	require.Equal(t, questions.NotLinked, byEmail("s2", "li.wei@acme.test").Reason,
		"whoever changes the connection would get the scope")
	delete(scopes, weiID)
	require.NotEmpty(t, byEmail("s2", "li.wei@ACME.test").LinkID, "in any case")
	require.Equal(t, questions.NotLinked, byEmail("s3", "bob@acme.test").Reason, "bob has not verified it")
	require.Equal(t, questions.NotLinked, byEmail("s3", "li.wei").Reason, "a username is no address")
	require.Equal(t, questions.NotLinked, byEmail("s3", "nobody@acme.test").Reason)

	one := credentials + "/" + made.LinkID
	c.Patch(one, object{"status": "0"}).OK(nil)
	require.Equal(t, questions.LinkDisabled, find("acme", entra("s1")).Reason)
	disabled, err := link(questions.NewLink{ForeignIdentity: entra("s1"), UserID: weiID})
	require.NoError(t, err)
	require.Equal(t, questions.LinkDisabled, disabled.Reason, "linking again enables nothing")
	c.Patch(one, object{"status": "1"}).OK(nil)
	c.Patch(path(wei), object{"status": "0"}).OK(nil)
	require.Equal(t, "disabled", find("acme", entra("s1")).Reason)
	require.Equal(t, questions.NotLinked, byEmail("s4", "li.wei@acme.test").Reason)
	_, err = link(questions.NewLink{ForeignIdentity: entra("s4"), UserID: weiID})
	require.Equal(t, apperr.InvalidState, apperr.KindOf(err))
	c.Patch(path(wei), object{"status": "1"}).OK(nil)

	for i := range 50 {
		_, err = link(questions.NewLink{ForeignIdentity: entra(fmt.Sprint("n", i)), UserID: bobID})
		require.NoError(t, err)
	}
	_, err = link(questions.NewLink{ForeignIdentity: entra("one more"), UserID: bobID})
	require.Equal(t, apperr.InvalidState, apperr.KindOf(err), "links are bounded")
	c.Delete(one, nil).OK(nil)
	require.Equal(t, questions.NotLinked, find("acme", entra("s1")).Reason)
}

// People remove their links themselves, and keep the last one if they could not sign in without it.
func TestPeopleRemoveLinks(t *testing.T) {
	t.Parallel()
	s := startWith(t, cheap(), map[string]string{})
	c := s.As("acme", auth.UsersRead, auth.UsersWrite, auth.UsersSecrets)
	ctx := request.System(t.Context(), "acme")
	id := func(user object) string { return user["id"].(string) }
	link := func(user object, connection, subject string) string {
		t.Helper()
		made, err := questions.Link.Ask(ctx, s.Deps.Bus, questions.NewLink{UserID: id(user),
			ForeignIdentity: questions.ForeignIdentity{
				ConnectionID: connection, ProviderCode: "oidc", Subject: subject, Username: subject,
			}})
		require.NoError(t, err)
		return made.LinkID
	}
	of := func(user object) []string {
		t.Helper()
		answer, err := questions.LinksOf.Ask(ctx, s.Deps.Bus, questions.LinksQuestion{UserID: id(user)})
		require.NoError(t, err)
		found := []string{}
		for _, one := range answer.Links {
			found = append(found, fmt.Sprint(one.ConnectionID, " ", one.ProviderCode, " ", one.Name, " ", one.Enabled))
		}
		return found
	}
	unlink := func(user object, link string, last bool, disabled ...string) apperr.Kind {
		_, err := questions.Unlink.Ask(ctx, s.Deps.Bus,
			questions.EndedLink{UserID: id(user), ID: link, MayBeLast: last, Disabled: disabled})
		if err == nil {
			return ""
		}
		return apperr.KindOf(err)
	}
	wei, bob := addUser(t, c, "li.wei"), addUser(t, c, "bob", object{"password": password})
	first, second := link(wei, "77", "one"), link(wei, "78", "two")
	c.Post(credentials, credentialOf(wei, "wechat_scan_qr", "of no connection")).OK(nil)
	require.Equal(t, []string{"77 oidc one true", "78 oidc two true"}, of(wei))
	require.Empty(t, of(bob))
	require.Equal(t, apperr.NotFound, unlink(bob, first, true), "somebody else's")
	c.Patch(credentials+"/"+second, object{"status": "0"}).OK(nil)
	require.Equal(t, []string{"77 oidc one true", "78 oidc two false"}, of(wei))
	require.Equal(t, apperr.InvalidState, unlink(wei, first, false), "nobody signs in by the other")
	require.Empty(t, unlink(wei, first, true), "there is a passkey")
	require.Equal(t, apperr.NotFound, unlink(wei, first, true))
	require.Equal(t, []string{"78 oidc two false"}, of(wei))
	require.Empty(t, unlink(bob, link(bob, "77", "three"), false), "there is a password")

	eve := addUser(t, c, "eve")
	first, second = link(eve, "77", "four"), link(eve, "78", "five")
	require.Equal(t, apperr.InvalidState, unlink(eve, first, false, "78"), "nobody signs in by the other connection")
	require.Empty(t, unlink(eve, second, false, "78"))
}

// An address whose signs only look the same is another mailbox.
func TestALinkByAddressIsExact(t *testing.T) {
	t.Parallel()
	s := startWith(t, cheap(), map[string]string{})
	c := s.As("acme", auth.UsersRead, auth.UsersWrite, auth.UsersSecrets)
	addUser(t, c, "strauss", object{"email": "strauss@acme.test", "email_verified": true})
	addUser(t, c, "finn", object{"email": "finn@acme.test", "email_verified": true})
	for address, links := range map[string]bool{
		"strauß@acme.test": false, "ﬁnn@acme.test": false, "ⓕinn@acme.test": false, "finn+x@acme.test": false,
		"FINN@ACME.test": true, "strauss@acme.test": true,
	} {
		answer, err := questions.Link.Ask(request.System(t.Context(), "acme"), s.Deps.Bus, questions.NewLink{
			ForeignIdentity: questions.ForeignIdentity{ConnectionID: "77", ProviderCode: "oidc", Subject: address},
			Email:           address,
		})
		require.NoError(t, err)
		require.Equal(t, links, answer.LinkID != "", address)
	}
}
