package applications_test

import (
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/forwarded"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/applications"
)

// backend is the body of a machine client.
func backend(scopes ...string) object { return object{"category": "4", "scopes": scopes} }

// Nobody changes, switches or deletes an application whose scopes go beyond his own, in any way.
func TestOthersScopesAreOutOfReach(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	root := s.As("acme", auth.PlatformAdmin)
	admin := addApp(t, root, "Administrator", backend("platform:admin"))
	addApp(t, root, "Another", backend("platform:admin")) // so that the last one is not the reason
	off := addApp(t, root, "Off", backend("users:write"))
	off = root.Post(path(off, "disable"), nil).Object()
	for name, request := range map[string]func(app object) *testkit.Answer{
		"enable":  func(app object) *testkit.Answer { return c.Post(path(app, "enable"), nil) },
		"disable": func(app object) *testkit.Answer { return c.Post(path(app, "disable"), nil) },
		"delete":  func(app object) *testkit.Answer { return c.Delete(path(app), nil) },
		"secrets": func(app object) *testkit.Answer { return c.Post(path(app, "secrets"), nil) },
		"a name":  func(app object) *testkit.Answer { return c.Patch(path(app), object{"name": "x"}) },
		"no scopes": func(app object) *testkit.Answer {
			return c.Patch(path(app), object{"scopes": []string{}, "category": "1"})
		},
		"sso":           func(app object) *testkit.Answer { return c.Post(path(app, "sso/disable"), nil) },
		"mfa":           func(app object) *testkit.Answer { return c.Post(path(app, "mfa/enable"), nil) },
		"configuration": func(app object) *testkit.Answer { return c.Patch(path(app, "configs"), object{}) },
		"a source": func(app object) *testkit.Answer {
			return c.Post(path(app, "idp"), object{"config_id": "31"})
		},
		"a protocol": func(app object) *testkit.Answer {
			return c.Do(http.MethodPut, path(app, "protocols/cas"), object{"protocol_prop": object{}})
		},
		"a protocol off": func(app object) *testkit.Answer { return c.Post(path(app, "protocols/oidc/disable"), nil) },
		"accounts":       func(app object) *testkit.Answer { return c.Post(path(app, "multi-accounts/enable"), nil) },
	} {
		for _, app := range []object{admin, off} {
			answer := request(app)
			require.Equal(t, http.StatusForbidden, answer.Status, "%s: %s", name, answer.Body)
			unchanged(t, root, app)
		}
	}
	quiet := addApp(t, root, "Quiet", object{"scopes": []string{"users:write"}})
	c.Patch(path(quiet), object{"category": "4"}).Problem(http.StatusForbidden, "forbidden")
	all := s.As("acme", auth.ApplicationsWrite, auth.UsersWrite)
	all.Patch(path(quiet), object{"category": "4"}).OK(nil)
	all.Delete(path(off), nil).OK(nil)
}

// The last application that administers the platform stays, whatever the tenant of another request.
func TestTheLastAdministratorStays(t *testing.T) {
	t.Parallel()
	s, _ := acme(t)
	root := s.As("acme", auth.PlatformAdmin)
	last := addApp(t, root, "Administrator", backend("platform:admin"))
	refused := func(app object) {
		t.Helper()
		for _, answer := range []*testkit.Answer{
			root.Post(path(app, "disable"), nil), root.Delete(path(app), nil),
			root.Patch(path(app), object{"scopes": []string{}}), root.Patch(path(app), object{"category": "1"}),
		} {
			answer.Problem(http.StatusConflict, "in_use")
		}
		unchanged(t, root, app)
	}
	refused(last)
	addApp(t, root, "Web", object{"scopes": []string{"platform:admin"}}) // gets no tokens
	off := addApp(t, root, "Off", backend("platform:admin"))
	root.Post(path(off, "disable"), nil).OK(nil)
	refused(last)

	globex := root.With("X-Tenant-Id", "globex")
	other := addApp(t, globex, "Administrator", backend("platform:admin"))
	root.Delete(path(last), nil).OK(nil)
	globex.Post(path(other, "disable"), nil).Problem(http.StatusConflict, "in_use")
	root.Post(path(off, "enable"), nil).OK(nil)
	globex.Post(path(other, "disable"), nil).OK(nil)
	refused(root.Get(path(off)).Object())
}

// Two administrators that are disabled at the same time are not both.
func TestAdministratorsDisabledAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := acme(t)
	root := s.As("acme", auth.PlatformAdmin)
	var apps []object
	for _, name := range []string{"a", "b", "c", "d"} {
		apps = append(apps, addApp(t, root, name, backend("platform:admin")))
	}
	var all sync.WaitGroup
	answers := make([]*testkit.Answer, len(apps))
	for i, app := range apps {
		all.Go(func() { answers[i] = root.Post(path(app, "disable"), nil) })
	}
	all.Wait()
	left := 0
	for i, app := range apps {
		if answers[i].Status != http.StatusOK {
			answers[i].Problem(http.StatusConflict, "in_use")
		}
		if root.Get(path(app)).Object()["status"] == "1" {
			left++
		}
	}
	require.Equal(t, 1, left)
}

// A list of administrators is made for data of versions that had none.
func TestAdministratorsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	c := applications.DefaultConfig()
	c.Bootstrap.ClientID = "boss"
	c.Bootstrap.ClientSecret = secret.New("operator-8Qx2vT5mZr7Lk1pWcN4sYb3")
	s := testkit.Start(t, applications.Spec(c))
	answers(t, s)
	root := s.As("default", auth.PlatformAdmin)
	var list struct{ Items []object }
	root.Get("/v1/applications").OK(&list)
	root.Post(path(list.Items[0], "disable"), nil).Problem(http.StatusConflict, "in_use")
}

// A kept answer with a secret is not for a token of the same client that may not see secrets.
func TestKeptAnswersBelongToTheirScopes(t *testing.T) {
	t.Parallel()
	s := start(t)
	full := s.As("acme", auth.ApplicationsWrite, auth.ApplicationsSecrets).With("Idempotency-Key", "k")
	few := s.As("acme", auth.ApplicationsWrite).With("Idempotency-Key", "k")
	require.NotEmpty(t, full.Post("/v1/applications", object{"name": "a"}).Object()["client_secret"])
	require.NotEmpty(t, full.Post("/v1/applications", object{"name": "a"}).Object()["client_secret"])
	answer := few.Post("/v1/applications", object{"name": "a"})
	assert.NotContains(t, string(answer.Body), "client_secret")
	assert.Empty(t, answer.Header.Get("Idempotent-Replayed"))
}

// A connection whose deletion was handled is not attached, even if the identity-sources service still knows it.
func TestAttachAgainstDelete(t *testing.T) {
	t.Parallel()
	g := guide(t)
	app := addApp(t, g.Client, "a")
	g.tell("acme", "connection.deleted", "31", 1)
	g.tell("acme", "connection.deleted", "31", 2)
	g.Post(path(app, "idp"), object{"config_ids": []any{"32", "31"}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.config_ids[1]")
	unchanged(t, g.Client, app)
	g.Post(path(app, "idp"), object{"config_id": "32"}).OK(nil)
	in(g.Service, "globex").Post("/v1/applications", object{"name": "a"}).OK(nil)
}

// Keys with which no signature can be verified are refused when they are given, not at every login.
func TestKeysThatAreOfNoUse(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	const x = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
	const y = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
	p256 := object{"kty": "EC", "crv": "P-256", "x": x, "y": y}
	for name, key := range map[string]object{
		"another algorithm": {"kty": "EC", "crv": "P-256", "x": x, "y": y, "alg": "ES384"},
		"for encryption":    {"kty": "EC", "crv": "P-256", "x": x, "y": y, "use": "enc"},
		"a short RSA key":   {"kty": "RSA", "e": "AQAB", "n": strings.Repeat("q", 170) + "w"},
	} {
		answer := c.Post("/v1/applications", object{"name": name, "jwks": object{"keys": []any{key}}})
		require.Equal(t, http.StatusBadRequest, answer.Status, name)
		answer.Problem(http.StatusBadRequest, "invalid_parameters", "body.jwks")
	}
	unusable := object{"kty": "EC", "crv": "P-256", "x": x, "y": y, "alg": "ES384"}
	c.Post("/v1/applications", object{"name": "a", "jwks": object{"keys": []any{unusable, p256}}}).OK(nil)
}

// X-Forwarded-For is believed from the gateway alone, which proves itself.
func TestAddressesAreNotForged(t *testing.T) {
	t.Parallel()
	key := forwarded.NewKey(secret.New("shared"))
	s := testkit.Start(t, applications.Spec(applications.DefaultConfig()),
		testkit.Options{Forwarded: &forwarded.Trust{Gateway: key}})
	s.TestTells("access") // the events service describes its type
	app := addApp(t, in(s, "acme"), "a")
	reader := s.As("acme", auth.ApplicationsRead)
	proof := http.Header{"X-Request-Id": {"r-2"}}
	key.Set(proof, netip.MustParseAddr("203.0.113.9"))
	reader.With("X-Forwarded-For", "198.51.100.1").With("X-Request-Id", "r-1").Patch(path(app), object{}).
		Problem(http.StatusForbidden, "forbidden")
	reader.With("X-Forwarded-For", "203.0.113.9").With("X-Request-Id", "r-2").
		With(forwarded.ProofHeader, proof.Get(forwarded.ProofHeader)).Patch(path(app), object{}).
		Problem(http.StatusForbidden, "forbidden")
	s.TellDenied()
	told := map[string]string{}
	s.EventsUntil(func(e stream.Event) bool {
		if e.Type == "idp.access.denied" {
			told[e.RequestID] = string(e.Data)
		}
		return len(told) == 2
	})
	require.Contains(t, told["r-1"], `"address":"192.0.2.1"`, "the connection's")
	require.Contains(t, told["r-2"], `"address":"203.0.113.9"`)
	for _, data := range told {
		require.Contains(t, data, `"record":"`+app["id"].(string)+`"`)
		require.Contains(t, data, `"actor":"test#tester"`)
	}
}
