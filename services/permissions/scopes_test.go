package permissions_test

import (
	"net/http"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// Resources of type api whose codes are scopes of the platform's API give those scopes. Only who holds one gives it.
func TestNobodyGivesAScopeThatHeLacks(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	admin := s.As("acme", auth.PlatformAdmin).With("X-Tenant-Id", "acme")
	make := func(code, kind, global string) string {
		return admin.Post("/v1/resources", object{"application_id": "9", "type": kind, "code": code,
			"is_global": global, "actions": []object{{"code": "read"}}}).ID()
	}
	held, lacked := make("permissions:read", "api", "0"), make("users:write", "api", "0")
	make("users:write", "data", "0")
	make("events:read", "api", "1")
	set := addSet(t, admin, "lacked", lacked)
	harmless := addSet(t, c, "held", held)
	grant := func(rule object) *testkit.Answer {
		rule["application_id"] = "9"
		if rule["actions"] == nil {
			rule["actions"] = []string{"*"}
		}
		return c.Post("/v1/batch/auth-unit-rules", object{
			"identities": []object{{"identity_id": "20", "identity_type": "user"}}, "rules": []object{rule}})
	}
	for name, rule := range map[string]object{
		"by code":          {"type": "api", "code": "users:write"},
		"by id":            {"type": "api", "resource_id": lacked},
		"all":              {"type": "res", "resource_match_all_resources": "1"},
		"a pattern":        {"type": "res", "code": "users:*"},
		"a global one":     {"type": "res", "code": "e*:read"},
		"a set":            {"type": "res_set", "code": "lacked"},
		"with a condition": {"type": "api", "code": "users:write", "condition": "false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			grant(rule).Problem(http.StatusForbidden, "forbidden")
		})
	}
	for name, rule := range map[string]object{
		"one that is held": {"type": "api", "code": "permissions:read"},
		"a held pattern":   {"type": "res", "code": "permissions:*"},
		"a held set":       {"type": "res_set", "resource_set_id": harmless},
		"not of type api":  {"type": "data", "code": "users:write"},
		"denied":           {"type": "api", "code": "users:write", "affect": "deny"},
		"the application":  {"type": "app"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			grant(rule).OK(nil)
		})
	}
	t.Run("one of many", func(t *testing.T) {
		t.Parallel()
		many := []object{
			{"application_id": "8", "type": "res", "code": "users:*"},
			{"application_id": "9", "type": "res", "code": "x*"},
			{"application_id": "9", "type": "res_set", "code": "held"},
		}
		for i := range many {
			many[i]["actions"] = []string{"*"}
		}
		user := []object{{"identity_id": "22", "identity_type": "user"}}
		c.Post("/v1/batch/auth-unit-rules", object{"identities": user, "rules": many}).OK(nil)
		for _, rule := range []object{{"type": "res_set", "code": "lacked"}, {"type": "res", "code": "users:*"}} {
			rule["application_id"], rule["actions"] = "9", []string{"*"}
			c.Post("/v1/batch/auth-unit-rules", object{"identities": user, "rules": append(many, rule)}).
				Problem(http.StatusForbidden, "forbidden")
		}
	})
	t.Run("otherwise", func(t *testing.T) {
		t.Parallel()
		lacking := object{"application_id": "9", "type": "api", "code": "users:read"}
		c.Post("/v1/resources", lacking).Problem(http.StatusForbidden, "forbidden")
		c.Post("/v1/batch/resources", object{"items": []object{
			{"application_id": "9", "type": "api", "code": "harmless"}, lacking,
		}}).Problem(http.StatusForbidden, "forbidden")
		c.Post("/v1/resource-sets/"+harmless+"/members", object{"resource_id": lacked, "actions": []string{"*"}}).
			Problem(http.StatusForbidden, "forbidden")
		admin.Post("/v1/batch/auth-unit-rules", object{
			"identities": []object{{"identity_id": "21", "identity_type": "user"}},
			"rules":      []object{{"application_id": "9", "type": "api", "code": "users:write", "actions": []string{"*"}}},
		}).OK(nil)
		rule := c.Get("/v1/auth-rules?identity_id=21&identity_type=user").Object()["items"].([]any)[0].(object)
		path := "/v1/auth-units/" + rule["auth_unit_id"].(string) + "/rules/" + rule["id"].(string)
		c.Do(http.MethodPut, path, object{"application_id": "9", "type": "res_set", "resource_set_id": set,
			"actions": []string{"*"}}).Problem(http.StatusForbidden, "forbidden")
		c.Do(http.MethodPut, path, object{"application_id": "9", "type": "res_set", "resource_set_id": harmless,
			"actions": []string{"*"}}).OK(nil)
	})
}
