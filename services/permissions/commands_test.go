package permissions_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// writes describe what the service writes; see testkit.Writes.
var writes = testkit.Writes{
	Service: "permissions",
	Start: func(t testing.TB) (*testkit.Service, *testkit.Client) {
		s := start(t)
		return s, s.As("acme", auth.PlatformAdmin).With("X-Tenant-Id", "acme")
	},
	Commands: func(t testing.TB, s *testkit.Service, c *testkit.Client) []testkit.Commands {
		p := &prepared{t, c, testkit.Names(), s.Token("acme", auth.PermissionsWrite)}
		rows := append(p.ofResources(), p.ofSets()...)
		return append(append(rows, p.ofUnits()...), p.ofRules()...)
	},
	Changes: changes,
}

func TestCommands(t *testing.T)         { writes.TestCommands(t) }
func TestAtOnce(t *testing.T)           { writes.TestAtOnce(t) }
func BenchmarkConnections(b *testing.B) { writes.BenchmarkConnections(b) }

func changes(testing.TB, *testkit.Service, *testkit.Client) []testkit.Change {
	return []testkit.Change{
		{Name: "rules of one unit", Do: func(c *testkit.Client, _, n int) *testkit.Answer {
			return c.Post(rulesPath, object{
				"identities": []any{object{"identity_id": "20", "identity_type": "user"}},
				"rules": []any{object{
					"application_id": "9", "type": "res", "code": fmt.Sprint("code", n, "*"), "actions": []any{"read"},
				}},
			})
		}},
		{Name: "resources", Do: func(c *testkit.Client, _, n int) *testkit.Answer {
			return c.Post(resourcesPath, resourceBody(fmt.Sprint("resource", n)))
		}},
	}
}

const (
	resourcesPath = "/v1/resources"
	setsPath      = "/v1/resource-sets"
	unitsPath     = "/v1/auth-units"
	rulesPath     = "/v1/batch/auth-unit-rules"
	grantsPath    = "/v1/application-authorizations"
)

// resourceBody is the body of a resource.
func resourceBody(code string) object {
	return object{"application_id": "9", "type": "data", "code": code, "name": code,
		"actions": []any{object{"code": "read"}}}
}

// prepared makes the records that operations change. Its own requests are not counted.
type prepared struct {
	t     testing.TB
	c     *testkit.Client
	fresh func() string
	token string // of a caller who lacks most scopes
}

// resource makes a resource and returns its id.
func (p *prepared) resource() string { return p.c.Post(resourcesPath, resourceBody(p.fresh())).ID() }

func (p *prepared) ofResources() []testkit.Commands {
	resource := testkit.Path(func() string { return resourcesPath + "/" + p.resource() })
	there := resource()
	body := func() any { return resourceBody(p.fresh()) }
	replaced := resourceBody("replaced")
	return []testkit.Commands{
		testkit.Takes("check", http.MethodPost, "/v1/auth-check", reading("20")),
		testkit.Takes("assess an impact", http.MethodPost, "/v1/auth-impact", func() any {
			grant := p.grant("20", 1)
			return object{"grant": []any{object{"identity": grant["identities"].([]object)[0],
				"rule": grant["rules"].([]object)[0]}}}
		}),
		testkit.Takes("create a resource", http.MethodPost, resourcesPath, body),
		testkit.Takes("create 100 resources", http.MethodPost, "/v1/batch/resources", func() any {
			items := make([]object, 100)
			for i := range items {
				items[i] = resourceBody(p.fresh())
			}
			return object{"items": items}
		}),
		testkit.Takes("change a resource", http.MethodPatch, there,
			func() any { return object{"description": p.fresh()} }),
		testkit.Takes("replace a resource", http.MethodPut,
			resourcesPath+"/"+p.c.Post(resourcesPath, replaced).ID(),
			func() any { replaced["name"] = p.fresh(); return replaced }),
		testkit.Takes("delete a resource", http.MethodDelete, resource, nil),
		testkit.Takes("delete 100 resources", http.MethodDelete, "/v1/batch/resources", func() any {
			ids := make([]string, 100)
			for i := range ids {
				ids[i] = p.resource()
			}
			return object{"ids": ids}
		}),
	}
}

func (p *prepared) ofSets() []testkit.Commands {
	body := func() any { return object{"application_id": "9", "code": p.fresh()} }
	set := testkit.Path(func() string { return setsPath + "/" + p.c.Post(setsPath, body()).ID() })
	there := set()
	one := func() any { return object{"resource_id": p.resource(), "actions": []string{"read"}} }
	member := testkit.Path(func() string { return there + "/members/" + p.c.Post(there+"/members", one()).ID() })
	return []testkit.Commands{
		testkit.Takes("find resources by a keyword", http.MethodGet, "/v1/resources?application_id=9&keyword=o", nil),
		testkit.Takes("find resources by their ids", http.MethodGet, resourcesPath+"?ids="+p.resource()+",1", nil),
		testkit.Takes("find resource sets by their ids", http.MethodGet, setsPath+"?ids=1,2", nil),
		testkit.Takes("find resource sets by a keyword", http.MethodGet, setsPath+"?application_id=9&keyword=o", nil),
		testkit.Takes("create a resource set", http.MethodPost, setsPath, body),
		testkit.Takes("replace a resource set", http.MethodPut, set, body),
		testkit.Takes("delete a resource set", http.MethodDelete, set, nil),
		testkit.Takes("add a resource to a set", http.MethodPost, there+"/members", one),
		testkit.Takes("add 100 resources to a set", http.MethodPost, set.Below("/members"), func() any {
			members := make([]any, 100)
			for i := range members {
				members[i] = one()
			}
			return object{"members": members}
		}),
		testkit.Takes("change the actions of a set's member", http.MethodPut, member,
			object{"actions": []string{"*"}}),
		testkit.Takes("take a resource out of a set", http.MethodDelete, member, nil),
	}
}

func (p *prepared) ofUnits() []testkit.Commands {
	group := testkit.Path(func() string {
		return unitsPath + "/" + p.c.Post(unitsPath, object{"identity_type": "group", "identity_id": p.fresh()}).ID()
	})
	users := object{"user_ids": []string{"20", "21"}}
	full := testkit.Path(func() string {
		path := group()
		p.c.Post(path+"/members", users).OK(nil)
		return path
	})
	return []testkit.Commands{
		testkit.Takes("find authorization units by a keyword", http.MethodGet, unitsPath+"?keyword=li", nil),
		testkit.Takes("find authorization units by their ids", http.MethodGet, unitsPath+"?ids=1,2", nil),
		testkit.Takes("create an authorization unit", http.MethodPost, unitsPath,
			func() any { return object{"identity_type": "user", "identity_id": p.fresh()} }),
		testkit.Takes("change an authorization unit", http.MethodPatch, group,
			func() any { return object{"description": p.fresh()} }),
		testkit.Takes("delete an authorization unit", http.MethodDelete, full, nil),
		testkit.Takes("add users to a group", http.MethodPost, group.Below("/members"), users),
		testkit.Takes("remove users from a group", http.MethodDelete, full.Below("/members"), users),
	}
}

// newRules grants a new user n rules, and returns their paths.
func (p *prepared) newRules(n int) (paths []string) {
	user := p.fresh()
	p.c.Post(rulesPath, p.grant(user, n)).OK(nil)
	path := unitsPath + "/" + id(unitOf(p.t, p.c, "user/"+user)) + "/rules"
	var list []object
	p.c.Get(path + "?self_only=true").OK(&list)
	for _, rule := range list {
		paths = append(paths, path+"/"+id(rule))
	}
	return paths
}

// grant is the request that grants a user n rules.
func (p *prepared) grant(user string, n int) object {
	codes := make([]string, n)
	for i := range codes {
		codes[i] = p.fresh()
		p.c.Post(resourcesPath, resourceBody(codes[i])).OK(nil)
	}
	return grantTo(user, codes...)
}

// patterns is the request that grants a user all resources of n applications that begin alike, and n sets.
func (p *prepared) patterns(n int) object {
	var rules []object
	for range n {
		application, set := p.fresh(), p.fresh()
		p.c.Post(setsPath, object{"application_id": application, "code": set}).OK(nil)
		for _, rule := range []object{{"type": "res", "code": "users:*"}, {"type": "res_set", "code": set}} {
			rule["application_id"], rule["actions"] = application, []string{"*"}
			rules = append(rules, rule)
		}
	}
	return object{"identities": []object{{"identity_id": "20", "identity_type": "user"}}, "rules": rules}
}

func (p *prepared) ofRules() []testkit.Commands {
	revoke := func(n int) func() any {
		return func() any {
			ids := p.newRules(n)
			for i, path := range ids {
				ids[i] = path[strings.LastIndex(path, "/")+1:]
			}
			return object{"rule_ids": ids}
		}
	}
	uses := func() any {
		return object{"application_ids": []string{p.fresh()}, "affect": "affect",
			"identities": []object{{"identity_id": "20", "identity_type": "user"}}}
	}
	return []testkit.Commands{
		testkit.Takes("grant", http.MethodPost, rulesPath, func() any { return p.grant("20", 1) }),
		testkit.Takes("grant 100 rules", http.MethodPost, rulesPath, func() any { return p.grant("20", 100) }),
		{Operation: "grant 100 patterns and sets, lacking scopes", Do: func(c *testkit.Client) *testkit.Answer {
			body := p.patterns(50)
			return c.With("Authorization", "Bearer "+p.token).Post(rulesPath, body)
		}},
		testkit.Takes("revoke a rule", http.MethodDelete, rulesPath, revoke(1)),
		testkit.Takes("revoke 100 rules", http.MethodDelete, rulesPath, revoke(100)),
		testkit.Takes("replace a rule", http.MethodPut, func() string { return p.newRules(1)[0] }, func() any {
			return p.grant("", 1)["rules"].([]object)[0]
		}),
		testkit.Takes("let a user use an application", http.MethodPost, grantsPath, uses),
		testkit.Takes("take an application from a user", http.MethodDelete, grantsPath, func() any {
			body := uses()
			p.c.Post(grantsPath, body).OK(nil)
			return body
		}),
	}
}
