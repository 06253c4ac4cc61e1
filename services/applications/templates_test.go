package applications_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An application can be created from every template with the examples of its schema, and its protocol is complete.
func TestEveryTemplate(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	var all []object
	c.Get("/v1/application-templates?name=").OK(&all)
	require.GreaterOrEqual(t, len(all), 20)
	for _, template := range all {
		id := template["template_id"].(string)
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			assert.Contains(t, template["logo"], "data:image/svg+xml,")
			schema := template["params_schema"].(object)
			params := object{}
			for name, property := range schema["properties"].(object) {
				params[name] = property.(object)["examples"].([]any)[0]
			}
			app := addApp(t, c, id, object{"template_id": id, "template_params": object{"params": params}})
			assert.Equal(t, "2", app["type"])
			assert.Empty(t, app["logo"], "the template's monogram is not copied")
			assert.Equal(t, template["protocol_type"], app["protocol_type"])
			assert.Equal(t, template["category"], app["category"])
			assert.Equal(t, template["version"], app["template_params"].(object)["version"])
			text, err := json.Marshal(app)
			require.NoError(t, err)
			assert.NotRegexp(t, `\{[a-z_]+\}`, string(text), "all parameters are filled in")
			assert.NotEmpty(t, app["descr"])
			c.Post(path(app, "protocols", app["protocol_type"].(string), "enable"), nil).OK(nil)

			if required, _ := schema["required"].([]any); len(required) > 0 {
				c.Post("/v1/applications", object{"name": id + " 2", "template_id": id}).
					Problem(http.StatusBadRequest, "invalid_parameters", locations(required)...)
			}
		})
	}
}

// locations are those of template parameters in the body.
func locations(members []any) (list []string) {
	for _, member := range members {
		list = append(list, "body.template_params.params."+member.(string))
	}
	return list
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	names := func(query string) (list []any) {
		var found []object
		c.Get("/v1/application-templates" + query).OK(&found)
		for _, template := range found {
			list = append(list, template["name"])
		}
		return list
	}
	assert.Equal(t, []any{"GitLab", "GitLab (OpenID Connect)"}, names("?name=gitLAB"))
	assert.Empty(t, names("?name=nosuchproduct"))
	c.Get("/v1/application-templates").Problem(http.StatusBadRequest, "invalid_parameters", "query.name")

	base := object{"base_url": "https://gitlab.acme.test"}
	app := addApp(t, c, "a", object{
		"template_id": "gitlab", "template_params": object{"version": "1", "params": base},
		"logout_url":    "https://other.test/out",
		"protocol_prop": object{"sp_entity": "mine"},
	})
	prop := app["protocol_prop"].(object)
	assert.Equal(t, "https://gitlab.acme.test/users/auth/saml/callback", prop["acs_url"])
	assert.Equal(t, "mine", prop["sp_entity"], "the request's members take precedence over the template's")
	assert.Equal(t, "https://other.test/out", app["logout_url"])
	assert.Equal(t, "https://gitlab.acme.test/users/sign_in", app["login_url"])

	create := func(members object) object { members["name"] = "b"; return members }
	for name, row := range map[string]struct {
		body     object
		location string
	}{
		"unknown":     {object{"template_id": "nothing"}, "body.template_id"},
		"type 1":      {object{"template_id": "box", "type": "1"}, "body.type"},
		"no template": {object{"type": "2"}, "body.template_id"},
		"version": {object{"template_id": "box", "template_params": object{"version": "0"}},
			"body.template_params.version"},
		"a bad value": {object{"template_id": "gitlab",
			"template_params": object{"params": object{"base_url": "http://x"}}},
			"body.template_params.params.base_url"},
		"a wrong type": {object{"template_id": "gitlab", "template_params": object{"params": object{"base_url": 1}}},
			"body.template_params.params.base_url"},
		"an unknown parameter": {object{"template_id": "box", "template_params": object{"params": object{"x": 1}}},
			"body.template_params.params.x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Post("/v1/applications", create(row.body)).Problem(http.StatusBadRequest, "invalid_parameters",
				row.location)
		})
	}
	c.Patch(path(app), object{"template_params": object{"params": object{"base_url": "x"}}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.template_params.params.base_url")
	c.Patch(path(app), object{"template_params": object{"version": "2"}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.template_params.version")
}

// A change of the parameters changes what the template filled in, except what was changed by hand.
func TestTemplateParametersChange(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	app := addApp(t, c, "a", object{
		"template_id": "gitlab", "template_params": object{"params": object{"base_url": "https://old.acme.test"}},
		"logout_url": "https://other.test/out",
	})
	c.Patch(path(app), object{"protocol_prop": object{"lifetime_in_seconds": 600}}).OK(nil)
	changed := c.Patch(path(app), object{
		"template_params": object{"params": object{"base_url": "https://new.acme.test"}}, "descr": "moved",
		"protocol_prop": object{"sp_entity": "gitlab"},
	}).Object()
	prop := changed["protocol_prop"].(object)
	assert.Equal(t, "https://new.acme.test/users/auth/saml/callback", prop["acs_url"])
	assert.Equal(t, "https://new.acme.test/users/sign_in", changed["login_url"])
	assert.Equal(t, "https://other.test/out", changed["logout_url"], "given when it was created")
	assert.EqualValues(t, 600, prop["lifetime_in_seconds"], "changed before")
	assert.Equal(t, "gitlab", prop["sp_entity"], "changed with the same request")
	assert.Equal(t, "moved", changed["descr"])
	assert.Len(t, prop["response_attr"], 3)
	protocol := c.Get(path(app, "protocols/saml")).Object()
	assert.Equal(t, prop, protocol["protocol_prop"], "both records show the same settings")

	c.Patch(path(app), object{"protocol_type": "oidc", "redirect_url": "https://new.acme.test/cb"}).OK(nil)
	changed = c.Patch(path(app),
		object{"template_params": object{"params": object{"base_url": "https://third.acme.test"}}}).Object()
	assert.Equal(t, "https://third.acme.test/users/sign_in", changed["login_url"])
	assert.NotContains(t, changed["protocol_prop"], "acs_url", "the template is for another protocol")
}
