package users_test

import (
	"context"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// callersScopes are the scopes of the client that in returns: a move gives no others.
var callersScopes = object{"scopes": []any{
	"users:read", "users:write", "users:secrets", "users:verify", "organization:write",
}}

func TestChangeOrganization(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	change := path(user, "change-organization")
	move := object{"object_code": "company", "from_node_id": "31", "to_node_id": "32"}

	answer := c.Post(change, move) // nobody answers
	answer.Problem(http.StatusServiceUnavailable, "unavailable")
	require.NotEmpty(t, answer.Header.Get("Retry-After"))

	asked := make(chan object, 16)
	refusal := error(nil)
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "organization", "change-membership",
		func(ctx context.Context, q object) (object, error) {
			q["tenant"], q["actor"], q["origin"] = request.Tenant(ctx), request.From(ctx).Actor,
				request.From(ctx).PayloadOrigin
			asked <- q
			return object{"memberships": []any{object{"node_id": q["to_node_id"]}}}, refusal
		}))
	memberships := object{"memberships": []any{object{"node_id": "32"}}}
	ids := map[any]bool{}
	question := func() object {
		q := <-asked
		require.NotEmpty(t, q["change_id"])
		require.NotContains(t, ids, q["change_id"], "each change has an id of its own")
		ids[q["change_id"]] = true
		delete(q, "change_id")
		return q
	}
	require.Equal(t, memberships, c.With("X-Payload-Origin", "origin").Post(change, move).Object())
	require.Equal(t, object{
		"user_id": user["id"], "object_code": "company", "from_node_id": "31", "to_node_id": "32", "tenant": "acme",
		"actor": "test#tester", "origin": "origin", "held": callersScopes,
	}, question())
	unchanged(t, c, user)
	require.Zero(t, openChanges(t, s, "acme"), "a change that nobody was asked for is not left open")

	require.Equal(t, memberships, c.Post(change+"?dry_run=true", object{"object_code": "company", "to_node_id": "32"}).
		Object())
	require.Equal(t, object{
		"user_id": user["id"], "object_code": "company", "to_node_id": "32", "dry_run": true, "tenant": "acme",
		"actor": "test#tester", "origin": "", "held": callersScopes,
	}, question())

	// The other service is not asked about what this service refuses.
	c.With("If-Match", `"7"`).Post(change, move).Problem(http.StatusPreconditionFailed, "version_mismatch")
	c.Post("/v1/users/1/change-organization", move).Problem(http.StatusNotFound, "not_found")
	in(s, "globex").Post(change, move).Problem(http.StatusNotFound, "not_found")
	for _, bad := range []object{{}, {"object_code": "company"}, {"to_node_id": "32"},
		{"object_code": "", "to_node_id": "32"}, {"object_code": "c", "to_node_id": ""},
		{"object_code": "c", "to_node_id": 32}, {"object_code": "c", "to_node_id": "1", "node": "x"}} {
		c.Post(change, bad).Problem(http.StatusBadRequest, "invalid_parameters")
	}
	resigned := addUser(t, c, "resigned")
	c.Post(path(resigned, "resign"), nil).OK(nil)
	c.Post(path(resigned, "change-organization"), move).Problem(http.StatusConflict, "invalid_state")
	require.Empty(t, asked)
	require.Zero(t, openChanges(t, s, "acme"), "a dry run or a refusal leaves nothing")

	last := untilAction(s, user, "organization_changed")
	data := members(t, last.Data)
	require.JSONEq(t, `"company"`, string(data["object_code"]))
	require.JSONEq(t, `"31"`, string(data["from_node_id"]))
	require.JSONEq(t, `"32"`, string(data["to_node_id"]))
	require.Equal(t, "origin", last.PayloadOrigin)

	for kind, status := range map[apperr.Kind]int{
		apperr.NotFound: http.StatusNotFound, apperr.InvalidState: http.StatusConflict,
		apperr.AlreadyExists: http.StatusConflict, apperr.Forbidden: http.StatusForbidden,
	} {
		refusal = apperr.New(kind, "the node says no")
		require.Equal(t, "the node says no", c.Post(change, move).Problem(status, string(kind)).Detail)
		<-asked
	}
	refusal = apperr.Invalid("body.to_node_id", "is no node")
	c.Post(change, move).Problem(http.StatusBadRequest, "invalid_parameters", "body.to_node_id")
	unchanged(t, c, user)
	require.Zero(t, openChanges(t, s, "acme"))
	require.Equal(t, []string{"created", "organization_changed", "deleted"}, actions(t, s, c, user))
}

// A user who is changed while the other service works is moved nevertheless: If-Match is checked before.
func TestChangeOrganizationMeanwhile(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "organization", "change-membership",
		func(context.Context, object) (object, error) {
			c.Patch(path(user), object{"gender": "x"}).OK(nil)
			return object{"memberships": []any{}}, nil
		}))
	c.With("If-Match", `"1"`).Post(path(user, "change-organization"),
		object{"object_code": "company", "to_node_id": "32"}).OK(nil)
	require.Equal(t, []string{"created", "updated", "organization_changed", "deleted"}, actions(t, s, c, user))
}

// Several users move together or not at all, with an event each.
func TestChangeOrganizationOfUsers(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	first, second := addUser(t, c, "li.wei"), addUser(t, c, "wang.fang")
	const change = "/v1/batch/users-change-organization"
	ids := []any{first["id"], second["id"]}
	body := func(more ...object) object {
		b := object{"ids": ids, "object_code": "company", "from_node_id": "31", "to_node_id": "32"}
		for _, members := range more {
			maps.Copy(b, members)
		}
		return b
	}
	c.Post(change, body()).Problem(http.StatusServiceUnavailable, "unavailable") // nobody answers
	require.Zero(t, openChanges(t, s, "acme"))

	var asked []object
	var refusal error
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "organization", "change-memberships",
		func(ctx context.Context, q object) (object, error) {
			require.NotEmpty(t, q["change_id"])
			delete(q, "change_id")
			asked = append(asked, q)
			return object{}, refusal
		}))
	require.Equal(t, object{"ids": ids}, c.Post(change+"?dry_run=true", body()).Object())
	keyed := c.With("Idempotency-Key", "k")
	for range 2 {
		require.Equal(t, object{"ids": ids}, keyed.Post(change, body()).Object())
	}
	want := object{"user_ids": ids, "object_code": "company", "from_node_id": "31", "to_node_id": "32",
		"held": callersScopes}
	dry := maps.Clone(want)
	dry["dry_run"] = true
	require.Equal(t, []object{dry, want}, asked, "the second answer of a key is the first again")
	require.Zero(t, openChanges(t, s, "acme"))

	// The other service is not asked about what this service refuses.
	asked = nil
	resigned := addUser(t, c, "resigned")
	c.Post(path(resigned, "resign"), nil).OK(nil)
	foreign := addUser(t, in(s, "globex"), "foreign")
	for _, bad := range []struct {
		more      object
		locations []string
	}{
		{object{"ids": []any{first["id"], "1", resigned["id"], foreign["id"]}},
			[]string{"body.ids[1]", "body.ids[2]", "body.ids[3]"}},
		{object{"ids": []any{first["id"], first["id"]}}, []string{"body.ids[1]"}},
		{object{"ids": []any{}}, []string{"body.ids"}}, {object{"ids": make([]string, 1001)}, []string{"body.ids"}},
		{object{"object_code": ""}, []string{"body.object_code"}},
		{object{"to_node_id": ""}, []string{"body.to_node_id"}},
		{object{"node": "1"}, []string{"body.node"}},
	} {
		c.Post(change, body(bad.more)).Problem(http.StatusBadRequest, "invalid_parameters", bad.locations...)
	}
	require.Empty(t, asked)
	refusal = apperr.Invalid("ids[1]", "is not a member of from_node_id")
	c.Post(change, body()).Problem(http.StatusBadRequest, "invalid_parameters", "body.ids[1]")
	refusal = apperr.New(apperr.InvalidState, "the node is dynamic")
	c.Post(change, body()).Problem(http.StatusConflict, "invalid_state")
	require.Zero(t, openChanges(t, s, "acme"))
	unchanged(t, c, first)
	for _, user := range []object{first, second} {
		require.Equal(t, []string{"created", "organization_changed", "deleted"}, actions(t, s, c, user))
	}
}

// A change of several users whose answer is lost is told when its outcome is known.
func TestChangeOrganizationOfUsersIsFinishedLater(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	first, second := addUser(t, c, "li.wei"), addUser(t, c, "wang.fang")
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "organization", "change-memberships",
		func(context.Context, object) (object, error) {
			return nil, apperr.New(apperr.Internal, "the answer is lost")
		}))
	c.Post("/v1/batch/users-change-organization", object{
		"ids": []any{first["id"], second["id"]}, "object_code": "company", "to_node_id": "32",
	}).Problem(http.StatusBadGateway, "outcome_unknown")
	require.EqualValues(t, 1, openChanges(t, s, "acme"))
	o := &organization{}
	o.settle(t, s)
	o.Lock()
	o.changes = map[string]bool{}
	o.everything = true
	o.Unlock()
	s.Clock.Advance(time.Minute)
	s.RunTask("finish organization changes")
	require.Zero(t, openChanges(t, s, "acme"))
	for _, user := range []object{first, second} {
		require.Equal(t, []string{"created", "organization_changed", "deleted"}, actions(t, s, c, user))
	}
}
