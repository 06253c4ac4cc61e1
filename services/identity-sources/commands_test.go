package identitysources_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// writes describe what the service writes; see testkit.Writes.
var writes = testkit.Writes{
	Service: "identity-sources",
	Start: func(t testing.TB) (*testkit.Service, *testkit.Client) {
		s, _ := startNamed(t)
		return s, s.As("acme", auth.PlatformAdmin)
	},
	Commands: func(_ testing.TB, _ *testkit.Service, c *testkit.Client) []testkit.Commands {
		fresh := testkit.Names()
		return slices.Concat(ofConnections(c, fresh), ofDomains(c, fresh), ofMethods(c, fresh), ofTemplates(c, fresh))
	},
	Changes: changes,
}

func TestCommands(t *testing.T)         { writes.TestCommands(t) }
func TestAtOnce(t *testing.T)           { writes.TestAtOnce(t) }
func BenchmarkConnections(b *testing.B) { writes.BenchmarkConnections(b) }

func changes(testing.TB, *testkit.Service, *testkit.Client) []testkit.Change {
	return []testkit.Change{
		{Name: "methods", Do: func(c *testkit.Client, _, n int) *testkit.Answer {
			code := fmt.Sprint("method-", n)
			return c.Post(methodsPath, object{"code": code, "name": code, "type": "password"})
		}},
	}
}

func ofConnections(c *testkit.Client, fresh func() string) []testkit.Commands {
	body := func() any { return with(ldap(nil), "display_name", fresh()) }
	connection := testkit.Path(func() string { return one(c.Post(connectionsPath, body()).Object()) })
	there := connection()
	return []testkit.Commands{
		testkit.Takes("get a connection", http.MethodGet, there, nil),
		testkit.Takes("find connections by a keyword", http.MethodGet, connectionsPath+"?keyword=li", nil),
		testkit.Takes("create a connection", http.MethodPost, connectionsPath, body),
		testkit.Takes("change a connection", http.MethodPut, there, body),
		testkit.Takes("enable a connection", http.MethodPost, connection.After(c, "/disable").Below("/enable"), nil),
		testkit.Takes("disable a connection", http.MethodPost, connection.Below("/disable"), nil),
		testkit.Takes("test a connection", http.MethodPost, func() string { // which needs nobody else
			return one(c.Post(connectionsPath, object{"provider_code": "mfa_otp",
				"config_fields": object{"displayName": fresh()}}).Object()) + "/test"
		}, nil),
		testkit.Takes("delete a connection", http.MethodDelete, connection, nil),
	}
}

func ofDomains(c *testkit.Client, fresh func() string) []testkit.Commands {
	all := one(c.Post(connectionsPath, wechat()).Object()) + "/domains"
	body := func() any { return object{"domain": fresh() + ".test"} }
	domain := testkit.Path(func() string { return all + "/" + c.Post(all, body()).ID() })
	there, enforce := domain(), "0"
	return []testkit.Commands{
		testkit.Takes("add a domain to a connection", http.MethodPost, all, body),
		testkit.Takes("change a domain of a connection", http.MethodPatch, there, func() any {
			enforce = map[string]string{"0": "1", "1": "0"}[enforce]
			return object{"enforce": enforce}
		}),
		testkit.Takes("verify a domain of a connection", http.MethodPost, domain.Below("/verify"), nil),
		testkit.Takes("delete a domain of a connection", http.MethodDelete, domain, nil),
	}
}

func ofMethods(c *testkit.Client, fresh func() string) []testkit.Commands {
	body := func() any { code := fresh(); return object{"code": code, "name": code, "type": "password"} }
	method := testkit.Path(func() string { return methodsPath + "/" + c.Post(methodsPath, body()).ID() })
	return []testkit.Commands{
		testkit.Takes("find methods by a keyword", http.MethodGet, methodsPath+"?keyword=m", nil),
		testkit.Takes("create a method", http.MethodPost, methodsPath, body),
		testkit.Takes("change a method", http.MethodPatch, method, func() any { return object{"name": fresh()} }),
		testkit.Takes("enable a method", http.MethodPost, method.After(c, "/disable").Below("/enable"), nil),
		testkit.Takes("disable a method", http.MethodPost, method.Below("/disable"), nil),
		testkit.Takes("delete a method", http.MethodDelete, method, nil),
	}
}

func ofTemplates(c *testkit.Client, fresh func() string) []testkit.Commands {
	c.Post(methodsPath, object{"code": "pwd", "name": "Password", "type": "password"}).OK(nil)
	body := func() any {
		code := fresh()
		return object{"code": code, "name": code, "steps": []any{object{"methods": []any{"pwd"}, "required": true}}}
	}
	template := testkit.Path(func() string { return templatesPath + "/" + c.Post(templatesPath, body()).ID() })
	template.After(c, "/default")() // so that another one takes its place
	return []testkit.Commands{
		testkit.Takes("find templates by a keyword", http.MethodGet, templatesPath+"?keyword=t", nil),
		testkit.Takes("create a template", http.MethodPost, templatesPath, body),
		testkit.Takes("change a template", http.MethodPatch, template, func() any { return object{"name": fresh()} }),
		testkit.Takes("make a template the default", http.MethodPost, template.Below("/default"), nil),
		testkit.Takes("delete a template", http.MethodDelete, template, nil),
	}
}

func with(body object, name string, value any) object {
	body[name] = value
	return body
}
