package users_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
)

// provisioner asks as the provisioning service does.
type provisioner struct {
	t *testing.T
	s *testkit.Service
}

var owner = &questions.ManagedBy{ConnectionID: "4001",
	Members: []string{"username", "display_name", "status", questions.OwnedProps}}

func (p provisioner) change(c questions.UserChange) (object, error) {
	ctx := request.With(p.t.Context(), request.Info{Tenant: "acme", Actor: "scim:4001"})
	state, err := questions.ChangeUser.Ask(ctx, p.s.Deps.Bus, c)
	if err != nil || len(state.User) == 0 {
		return nil, err
	}
	var user object
	require.NoError(p.t, json.Unmarshal(state.User, &user))
	require.Positive(p.t, state.Sequence)
	return user, nil
}

func (p provisioner) must(c questions.UserChange) object {
	p.t.Helper()
	user, err := p.change(c)
	require.NoError(p.t, err)
	return user
}

func (p provisioner) refused(kind apperr.Kind, c questions.UserChange) {
	p.t.Helper()
	_, err := p.change(c)
	require.Equal(p.t, kind, apperr.KindOf(err), "%v", err)
}

func profile(v object) json.RawMessage {
	text, _ := json.Marshal(v)
	return text
}

// What a connection owns is changed by its questions only; the rest, and what guards a user, stays local.
func TestOwnedMembersChangeNowhereElse(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	p := provisioner{t, s}
	user := p.must(questions.UserChange{ID: "1", Action: questions.CreateUser, ManagedBy: owner,
		Profile: profile(object{"username": "li.wei", "sys_ext_props": object{"scim": object{"title": "Guide"}}})})
	require.Equal(t, object{"connection_id": "4001", "members": []any{"username", "display_name", "status",
		"sys_ext_props.scim"}}, user["managed_by"])
	require.Equal(t, user, c.Get(path(user)).Object())
	owned := object{
		"username": "other", "display_name": "x", "status": "0", "sys_ext_props": object{"scim": object{"title": "x"}},
	}
	for member, value := range owned {
		c.Patch(path(user), object{member: value}).Problem(http.StatusConflict, "managed_elsewhere")
	}
	unchanged(t, c, user)
	c.Patch(path(user), object{"managed_by": nil, "gender": "m", "sys_ext_props": object{"mine": 1}}).OK(nil)
	same := c.Get(path(user)).Object()
	require.NotNil(t, same["managed_by"], "it is read-only")
	c.Post(path(user, "lock"), object{}).OK(nil)
	c.Post(path(user, "reset-password"), object{}).OK(nil)
	c.Post(path(user, "resign"), object{}).OK(nil)
	c.Post(path(user, "reinstate"), nil).OK(nil)

	result := c.With("Content-Type", "application/x-ndjson").Post("/v1/users/import?on_conflict=update",
		`{"username":"li.wei","display_name":"x"}`)
	require.Equal(t, http.StatusOK, result.Status)
	require.Contains(t, string(result.Body), `"failed"`)

	changed := p.must(questions.UserChange{ID: "2", UserID: user["id"].(string), Action: questions.UpdateUser,
		Profile: profile(object{"display_name": "李伟", "sys_ext_props": object{"scim": nil}}), ManagedBy: owner})
	require.Equal(t, "李伟", changed["display_name"])
	require.Equal(t, object{"mine": 1.0}, changed["sys_ext_props"])
	p.refused(apperr.ManagedElsewhere, questions.UserChange{ID: "3", UserID: user["id"].(string),
		Action:    questions.UpdateUser,
		ManagedBy: &questions.ManagedBy{ConnectionID: "4002", Members: []string{"email"}}})
	freed := p.must(questions.UserChange{ID: "4", UserID: user["id"].(string), Action: questions.UpdateUser,
		ManagedBy: &questions.ManagedBy{ConnectionID: "4001"}})
	require.Nil(t, freed["managed_by"])
	c.Patch(path(user), object{"display_name": "mine again"}).OK(nil)
	c.Delete(path(user), nil).OK(nil)
}

// A password that a connection sets keeps the rules; the one that the user has already changes nothing.
func TestProvisionedPasswords(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	p := provisioner{t, s}
	key, err := questions.TransitKeyOfUsers.Ask(request.System(t.Context(), "acme"), s.Deps.Bus, questions.Nothing{})
	require.NoError(t, err)
	n := 0
	change := func(action, id, username, password string, set object) questions.UserChange {
		n++
		sealed, err := key.Seal(password, questions.PasswordFor(questions.ToProvision, "acme", username))
		require.NoError(t, err)
		return questions.UserChange{ID: fmt.Sprint(n), UserID: id, Action: action, ManagedBy: owner, Password: sealed,
			Profile: profile(set)}
	}
	user := p.must(change(questions.CreateUser, "", "zhang.wei", "first one 1", object{"username": "zhang.wei"}))
	id := user["id"].(string)
	update := func(username, password string, set object) questions.UserChange {
		return change(questions.UpdateUser, id, username, password, set)
	}
	p.refused(apperr.InvalidParameters, update("", "zhang.wei-2026", object{"display_name": "x"}))
	p.refused(apperr.InvalidParameters, update("li.na", "my li.na 2026", object{"username": "li.na"}))
	version := c.Get(path(user)).Object()["version"]
	require.Equal(t, version, p.must(update("", "first one 1", object{}))["version"], "it has this password")
	p.must(update("", "second one 2", object{}))
	p.refused(apperr.InvalidParameters, update("", "first one 1", object{}))
}

// A resignation by a connection tells nothing of a former one.
func TestAResignationTellsItsOwnReason(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	p := provisioner{t, s}
	user, other := addUser(t, c, "li.wei"), addUser(t, c, "wang")
	c.Post(path(user, "resign"), object{"reason": "dismissed", "successor_id": other["id"]}).OK(nil)
	c.Post(path(user, "reinstate"), nil).OK(nil)
	p.must(questions.UserChange{ID: "1", UserID: user["id"].(string), Action: questions.ResignUser})
	var told []string
	s.EventsUntil(func(e stream.Event) bool {
		if e.Type == "idp.user.resigned" {
			told = append(told, string(e.Data))
		}
		return len(told) == 2
	})
	require.Contains(t, told[0], "dismissed")
	require.NotContains(t, told[1], "dismissed")
}

// Whoever creates a user can name a node: the event tells the organization service.
func TestUsersWithANode(t *testing.T) {
	t.Parallel()
	s, _ := acme(t)
	p := provisioner{t, s}
	p.must(questions.UserChange{
		ID: "1", Action: questions.CreateUser, NodeID: "31", Profile: profile(object{"username": "li.wei"}),
	})
	p.must(questions.UserChange{ID: "2", Action: questions.CreateUser, Profile: profile(object{"username": "zhang"})})
	var told []any
	s.EventsUntil(func(e stream.Event) bool {
		var data object
		require.NoError(t, e.Read(&data))
		told = append(told, data[questions.NodeOfUser])
		return len(told) == 2
	})
	require.Equal(t, []any{"31", nil}, told)
}

func TestChangesAreMadeOnce(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	p := provisioner{t, s}
	ctx := request.With(t.Context(), request.Info{Tenant: "acme", Actor: "scim:4001"})
	create := questions.UserChange{ID: "1", Action: questions.CreateUser, ManagedBy: owner,
		Profile:    profile(object{"username": "li.wei"}),
		Credential: &questions.UserCredential{ProviderCode: "oidc", IDPConfigID: 31, ID1: "00u1"}}
	dry := create
	dry.DryRun = true
	p.must(dry)
	user := p.must(create)
	require.Equal(t, user, p.must(create), "the same change again")
	outcome, err := questions.SettleUserChange.Ask(ctx, s.Deps.Bus, questions.ChangeID{ID: "1"})
	require.NoError(t, err)
	require.True(t, outcome.Applied)
	require.NotEmpty(t, outcome.User)
	outcome, err = questions.SettleUserChange.Ask(ctx, s.Deps.Bus, questions.ChangeID{ID: "2"})
	require.NoError(t, err)
	require.False(t, outcome.Applied)
	id := user["id"].(string)
	p.refused(apperr.InvalidState, questions.UserChange{ID: "2", UserID: id, Action: questions.ResignUser})
	p.refused(apperr.VersionMismatch, questions.UserChange{ID: "3", UserID: id, Version: 7,
		Action: questions.UpdateUser})
	p.refused(apperr.NotFound, questions.UserChange{ID: "4", UserID: "77", Action: questions.DeleteUser})
	p.refused(apperr.InvalidParameters, questions.UserChange{ID: "5", UserID: id, Action: "fly"})
	p.refused(apperr.InvalidParameters, questions.UserChange{ID: "", UserID: id, Action: questions.ResignUser})
	p.refused(apperr.AlreadyExists, questions.UserChange{ID: "6", Action: questions.CreateUser,
		Profile: profile(object{"username": "LI.WEI"})})
	p.refused(apperr.InvalidParameters, questions.UserChange{ID: "7", Action: questions.CreateUser,
		Profile: profile(object{"username": "two words "})})

	list := c.Get("/v1/user-stored-credentials?provider_code=oidc&id1=00u1").Object()
	require.Equal(t, 1.0, list["total"])
	p.must(questions.UserChange{ID: "8", UserID: id, Action: questions.UpdateUser,
		Credential: &questions.UserCredential{ProviderCode: "oidc", IDPConfigID: 31, ID1: "00u2"}})
	list = c.Get("/v1/user-stored-credentials?id1=00u2").Object()
	require.Equal(t, 1.0, list["total"], "it takes the place of the first")

	gone := p.must(questions.UserChange{ID: "9", UserID: id, Action: questions.ResignUser})
	require.Equal(t, "resigned", gone["status"])
	back := p.must(questions.UserChange{ID: "10", UserID: id, Action: questions.ReinstateUser,
		Profile: profile(object{"display_name": "back"})})
	require.Equal(t, []any{"1", "back"}, []any{back["status"], back["display_name"]})
	for _, q := range []questions.UserName{{ID: id}, {Username: "Li.Wei"}} {
		found, err := questions.FindUser.Ask(ctx, s.Deps.Bus, q)
		require.NoError(t, err)
		require.NotEmpty(t, found.User)
	}
	p.must(questions.UserChange{ID: "11", UserID: id, Action: questions.DeleteUser})
	found, err := questions.FindUser.Ask(ctx, s.Deps.Bus, questions.UserName{Username: "li.wei"})
	require.NoError(t, err)
	require.Empty(t, found.User)
	s.Clock.Advance(25 * 3600e9)
	s.RunTask("forget changes")
	require.Empty(t, testkit.Stored(t, s, "acme", "user_changes"))
}
