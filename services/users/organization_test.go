package users_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
)

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
		"actor": "test#tester", "origin": "origin",
	}, question())
	unchanged(t, c, user)
	require.Zero(t, openChanges(t, s, "acme"), "a change that nobody was asked for is not left open")

	require.Equal(t, memberships, c.Post(change+"?dry_run=true", object{"object_code": "company", "to_node_id": "32"}).
		Object())
	require.Equal(t, object{
		"user_id": user["id"], "object_code": "company", "to_node_id": "32", "dry_run": true, "tenant": "acme",
		"actor": "test#tester", "origin": "",
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
		apperr.AlreadyExists: http.StatusConflict,
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
