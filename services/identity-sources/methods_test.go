package identitysources_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
)

// system is the context of work for a tenant without a request.
func system(t *testing.T, tenant string) context.Context { return request.System(t.Context(), tenant) }

// stored is the stored text of all connections and of their encrypted values.
func stored(t *testing.T, s *testkit.Service) (text string) {
	t.Helper()
	type anything struct{ docstore.Meta }
	for _, name := range []string{"connections", "sealed_values"} {
		all := docstore.Define(docstore.Schema[anything]{Name: name, NoIfMatch: true})
		require.NoError(t, all.Each(system(t, "acme"), s.Deps.Store, docstore.Filter{},
			func(doc docstore.Doc[anything]) error {
				json, err := doc.JSON()
				text += string(json)
				return err
			}))
	}
	require.NotEmpty(t, text)
	return text
}

func TestMethods(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	connection := c.Post(connectionsPath, wechat()).Object()
	made := c.Post(methodsPath, object{"code": "pwd", "name": "Password", "type": "password"}).Object()
	for member, want := range map[string]any{"factor": "1", "status": "1", "policy": object{},
		"connection_ids": []any{}} {
		require.Equal(t, want, made[member], member)
	}
	at := methodsPath + "/" + id(made)
	changed := c.Patch(at, object{"connection_ids": []any{connection["id"]}, "policy": object{"重试": 3},
		"factor": "2"}).Object()
	require.Equal(t, object{"重试": 3.0}, changed["policy"])
	require.Equal(t, "0", c.Post(at+"/disable", nil).Object()["status"])
	for query, want := range map[string]int{"?status=0": 1, "?status=1": 0, "?type=password": 1, "?code=pwd": 1,
		"?code=x": 0} {
		require.Len(t, c.Get(methodsPath + query).Object()["items"], want, query)
	}
	require.Equal(t, "1", c.Post(at+"/enable", nil).Object()["status"])

	foreign := in(s, "globex").Post(connectionsPath, wechat()).Object()
	for name, row := range map[string]struct {
		change   object
		location string
	}{
		"type":               {object{"type": "magic"}, "body.type"},
		"factor":             {object{"factor": "3"}, "body.factor"},
		"no such connection": {object{"connection_ids": []any{"404"}}, "body.connection_ids[0]"},
		"another tenant's": {object{"connection_ids": []any{connection["id"], foreign["id"]}},
			"body.connection_ids[1]"},
		"twice": {object{"connection_ids": []any{connection["id"], connection["id"]}},
			"body.connection_ids[1]"},
		"policy": {object{"policy": "none"}, "body.policy"},
		"policy of another type": {
			object{"type": "webauthn", "policy": object{"重试": nil, "user_verification": "always"}},
			"body.policy.user_verification",
		},
		"unknown in a policy": {object{"type": "otp", "policy": object{"重试": nil, "length": 8}}, "body.policy.length"},
	} {
		t.Run(name, func(*testing.T) {
			c.Patch(at, row.change).Problem(http.StatusBadRequest, "invalid_parameters", row.location)
		})
	}
}

// What people become who come from another provider is checked when it is set.
func TestPoliciesOfProviders(t *testing.T) {
	t.Parallel()
	s := start(t)
	asked, away := 0, false
	require.NoError(t, questions.ChangeMembers.Answer(s.Deps.Bus,
		func(_ context.Context, q questions.MembersChange) (questions.MembersChanged, error) {
			asked++
			require.True(t, q.DryRun && q.Unmanaged && len(q.Add) == 0)
			switch {
			case away:
				return questions.MembersChanged{}, apperr.Away("the store", nil)
			case q.NodeID == "32":
				return questions.MembersChanged{}, apperr.New(apperr.InvalidState, "the node is dynamic")
			case q.NodeID == "33":
				return questions.MembersChanged{}, apperr.Managed("node_id")
			case q.NodeID != "31" && q.NodeID != "34":
				return questions.MembersChanged{}, apperr.Missing("tree node")
			}
			return questions.MembersChanged{Unknown: []string{}}, nil
		}))
	c := in(s, "acme")
	policy := object{
		"create": "1", "node_id": "31", "update": "always", "claim_mapping": object{
			"username": "upn", "display_name": `claims.given_name + " " + claims.family_name`,
			"sys_ext_props.department": "https://acme.test/dept",
		},
	}
	method := object{"code": "sso", "name": "SSO", "type": "enterprise", "policy": policy}
	made := c.Post(methodsPath, method).Object()
	require.Equal(t, policy, made["policy"])
	at := methodsPath + "/" + id(made)
	for name, row := range map[string]struct {
		policy   object
		location string
	}{
		"a member that nobody can set": {
			object{"claim_mapping": object{"status": "x"}}, "body.policy.claim_mapping.status",
		},
		"a faulty expression": {
			object{"claim_mapping": object{"display_name": "claims.a +"}}, "body.policy.claim_mapping.display_name",
		},
		"no text": {
			object{"claim_mapping": object{"display_name": `claims.a == "x"`}}, "body.policy.claim_mapping.display_name",
		},
		"no such node":      {object{"node_id": "404"}, "body.policy.node_id"},
		"a dynamic node":    {object{"node_id": "32"}, "body.policy.node_id"},
		"a managed node":    {object{"node_id": "33"}, "body.policy.node_id"},
		"an update at will": {object{"update": "never"}, "body.policy.update"},
	} {
		t.Run(name, func(*testing.T) {
			c.Patch(at, object{"policy": row.policy}).Problem(http.StatusBadRequest, "invalid_parameters", row.location)
		})
	}
	before := asked
	c.Patch(at, object{"name": "Single sign-on"}).OK(nil)
	require.Equal(t, before, asked, "the node stays")
	c.Patch(at, object{"policy": object{"node_id": "34"}}).OK(nil)
	require.Equal(t, before+1, asked)
	away = true
	c.Patch(at, object{"policy": object{"node_id": "31"}}).Problem(http.StatusServiceUnavailable, "unavailable")
	c.Patch(at, object{"policy": object{"node_id": nil}}).OK(nil)
}

// Each type of method has a schema, and what a schema offers by default meets it.
func TestPolicySchemas(t *testing.T) {
	t.Parallel()
	c := in(start(t), "acme")
	var all []struct {
		Type   string `json:"type"`
		Schema struct {
			Properties map[string]struct {
				Default any `json:"default"`
			} `json:"properties"`
		} `json:"policy_schema"`
	}
	c.Get(methodsPath + "/schemas").OK(&all)
	require.Len(t, all, 7)
	for _, one := range all {
		policy := object{}
		for name, property := range one.Schema.Properties {
			if property.Default != nil {
				policy[name] = property.Default
			}
		}
		made := object{"code": one.Type, "name": one.Type, "type": one.Type, "policy": policy}
		require.Equal(t, policy, c.Post(methodsPath, made).Object()["policy"])
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	c := in(start(t), "acme")
	for _, code := range []string{"pwd", "otp"} {
		c.Post(methodsPath, object{"code": code, "name": code, "type": "password"}).OK(nil)
	}
	method := c.Get(methodsPath + "?code=pwd").Object()["items"].([]any)[0].(object)
	steps := []any{object{"methods": []any{"pwd"}, "required": true},
		object{
			"methods": []any{"pwd"}, "required": true, "enrol": "demand", "grace_days": 14.0,
			"when": `!known_browser && !cidr("10.0.0.0/8").containsIP(address)`,
		},
		object{"methods": []any{"otp", "pwd"}, "required": false}}
	staff := c.Post(templatesPath, object{"code": "staff", "name": "Staff", "steps": steps}).Object()
	require.Equal(t, "0", staff["is_default"])
	require.Equal(t, steps, staff["steps"])
	guests := c.Post(templatesPath, object{"code": "guests", "name": "Guests", "steps": steps[:1]}).Object()
	c.Post(templatesPath, object{"code": "staff", "name": "Staff", "steps": steps}).Problem(http.StatusConflict,
		"already_exists", "body.code")

	at := func(template object) string { return templatesPath + "/" + id(template) }
	require.Equal(t, "1", c.Post(at(staff)+"/default", nil).Object()["is_default"])
	require.Equal(t, "1", c.Post(at(staff)+"/default", nil).Object()["is_default"], "again")
	require.Equal(t, "1", c.Post(at(guests)+"/default", nil).Object()["is_default"])
	require.Equal(t, "0", c.Get(at(staff)).Object()["is_default"], "there is one default")
	c.Delete(at(guests), nil).Problem(http.StatusConflict, "invalid_state")

	c.Delete(methodsPath+"/"+id(method), nil).Problem(http.StatusConflict, "in_use", "auth_templates")
	c.Patch(methodsPath+"/"+id(method), object{"code": "password"}).Problem(http.StatusConflict, "in_use",
		"auth_templates")
	c.Patch(methodsPath+"/"+id(method), object{"name": "Password"}).OK(nil)

	for name, row := range map[string]struct {
		change    object
		locations []string
	}{
		"no steps": {object{"steps": []any{}}, []string{"body.steps"}},
		"no methods": {object{"steps": []any{object{"methods": []any{}, "required": true}}},
			[]string{"body.steps[0].methods"}},
		"no such method": {object{"steps": []any{object{"methods": []any{"pwd", "none"}, "required": true}}},
			[]string{"body.steps[0].methods[1]"}},
		"twice": {object{"steps": []any{object{"methods": []any{"pwd", "pwd"}, "required": true}}},
			[]string{"body.steps[0].methods[1]"}},
		"a condition of every required step": {
			object{"steps": []any{object{"methods": []any{"pwd"}, "required": true, "when": "known_browser"}}},
			[]string{"body.steps"},
		},
		"faults of a step": {object{"steps": []any{
			object{"methods": []any{"pwd"}, "required": true, "enrol": "offer", "grace_days": 3},
			object{"methods": []any{"pwd"}, "when": "nobody"},
			object{"methods": []any{"pwd"}, "grace_days": 3},
		}}, []string{"body.steps[0].grace_days", "body.steps[1].when", "body.steps[2].grace_days"}},
		"no such enrol": {object{"steps": []any{object{"methods": []any{"pwd"}, "required": true, "enrol": "later"}}},
			[]string{"body.steps[0].enrol"}},
		"all optional": {object{"steps": []any{object{"methods": []any{"pwd"}}}}, []string{"body.steps"}},
		"code, name":   {object{"code": "/", "name": ""}, []string{"body.code", "body.name"}},
	} {
		t.Run(name, func(*testing.T) {
			c.Patch(at(staff), row.change).Problem(http.StatusBadRequest, "invalid_parameters", row.locations...)
		})
	}
	require.Equal(t, "Everybody", c.Patch(at(staff), object{"name": "Everybody"}).Object()["name"])
	c.Delete(at(staff), nil).OK(nil)
	require.Len(t, c.Get(templatesPath).Object()["items"], 1)
}
