package permissions_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// grantTo is the request that grants a user to read the data resources.
func grantTo(user string, codes ...string) object {
	var rules []object
	for _, code := range codes {
		rule := data(code, "read")
		rule["application_id"] = "9"
		rules = append(rules, rule)
	}
	return object{"identities": []object{{"identity_id": user, "identity_type": "user"}}, "rules": rules}
}

// A write has a token also if it is a repeat, by content or by its Idempotency-Key. Every question takes tokens.
func TestConsistencyTokens(t *testing.T) {
	t.Parallel()
	s := start(t)
	other := s.Replica(spec)
	ready(t, other)
	c, there := in(s, "acme"), in(other, "acme")
	addResource(t, c, "ledger")
	token := func(a *testkit.Answer) string {
		t.Helper()
		a.OK(nil)
		require.NotEmpty(t, a.Header.Get(request.ConsistencyToken))
		return a.Header.Get(request.ConsistencyToken)
	}
	sees := func(token string) {
		t.Helper()
		at := there.With(request.ConsistencyToken, token)
		about := object{"subject": object{"type": "user", "id": "bob"}, "action": object{"name": "read"},
			"resource": object{"type": "data", "id": "ledger", "properties": object{"application_id": "9"}}}
		require.Equal(t, true, at.Post("/access/v1/evaluation", about).Object()["decision"])
		require.Equal(t, true, at.Post("/access/v1/evaluations", about).Object()["decision"])
		require.Len(t, at.Post("/access/v1/search/action", about).Object()["results"], 1)
		require.Equal(t, true, at.Post("/v1/auth-check", reading("21")).Object()["allowed"])
		require.Equal(t, 1, total(t, at, "/v1/privileges?application_id=9"))
		require.Equal(t, 1, total(t, at, "/v1/auth-check/objects?identity_id=21&identity_type=user&application_id=9"+
			"&object_type=data"))
	}
	first := c.Post("/v1/batch/auth-unit-rules", grantTo("21", "ledger"))
	sees(token(first))
	sees(token(c.Post("/v1/batch/auth-unit-rules", grantTo("21", "ledger"))))
	keyed := c.With("Idempotency-Key", "k1")
	kept := token(keyed.Post("/v1/batch/auth-unit-rules", grantTo("22", "ledger")))
	replayed := in(other, "acme").With("Idempotency-Key", "k1").Post("/v1/batch/auth-unit-rules",
		grantTo("22", "ledger"))
	require.Equal(t, "true", replayed.Header.Get("Idempotent-Replayed"))
	require.Equal(t, kept, token(replayed))
	token(c.Delete("/v1/batch/auth-unit-rules", object{"rule_ids": []string{"1"}}))
	for _, wrong := range []string{"?", "AAAA", "Av8", "!"} {
		for path, body := range map[string]object{"/v1/auth-check": reading("21"),
			"/access/v1/evaluation": evaluation("alice", "a", "b")} {
			c.With(request.ConsistencyToken, wrong).Post(path, body).Problem(400, "invalid_parameters",
				"header.X-Consistency-Token")
		}
	}
}

// The token of a write that changes many records covers all of them, and is no longer than a header may be.
func TestTokensCoverAllRecords(t *testing.T) {
	t.Parallel()
	s := start(t)
	other := s.Replica(spec)
	ready(t, other)
	c, there := in(s, "acme"), in(other, "acme")
	var codes []string
	for i := range 300 {
		codes = append(codes, "r"+strconv.Itoa(i))
		addResource(t, c, codes[i])
	}
	var checks []object
	for _, code := range codes {
		check := reading("21")
		check["object_code"] = code
		checks = append(checks, check)
	}
	count := func(token string) (n int) {
		t.Helper()
		var got struct{ Results []struct{ Allowed bool } }
		var answer *testkit.Answer
		wait.Until(t, func() bool { // on a busy machine hundreds of events take longer than a check waits
			answer = there.With(request.ConsistencyToken, token).Post("/v1/batch/auth-check", object{"checks": checks})
			return answer.Status != http.StatusServiceUnavailable
		})
		answer.OK(&got)
		for _, r := range got.Results {
			if r.Allowed {
				n++
			}
		}
		return n
	}
	for range 3 {
		granted := c.Post("/v1/batch/auth-unit-rules", grantTo("21", codes...)).OK(nil)
		token := granted.Header.Get(request.ConsistencyToken)
		require.Less(t, len(token), 1000)
		require.Equal(t, 300, count(token))
		unit := unitOf(t, c, "user/21")["id"].(string)
		token = c.Delete("/v1/batch/auth-unit-rules", object{"auth_unit_id": unit}).OK(nil).Header.Get(
			request.ConsistencyToken)
		require.Equal(t, 0, count(token))
	}
}
