package automation_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

const componentsPath = "/v1/components"

func banner(more object) object {
	body := object{
		"code": "banner", "name": "Banner", "type": "login_page", "config": object{"title": "Welcome"},
		"schema": object{
			"type": "object", "required": []any{"title"}, "additionalProperties": false,
			"properties": object{"title": object{"type": "string", "maxLength": 10}, "$ref": object{"type": "integer"}},
		},
	}
	for name, value := range more {
		body[name] = value
	}
	return body
}

func TestComponentsKeepTheConventions(t *testing.T) {
	t.Parallel()
	testkit.Conventions(t, start, testkit.Resource{
		Collection: componentsPath,
		Body:       func(n int) any { return banner(object{"code": fmt.Sprint("component-", n)}) },
		Change:     object{"name": "Another name"},
		Faulty:     object{"code": "a b", "name": " ", "type": "A"},
		Faults:     []string{"body.code", "body.name", "body.type"}, Unique: []string{"code"},
		Read: auth.FunctionsRead, Write: auth.FunctionsWrite, Unrelated: auth.UsersRead,
		Secrets: secrets,
	})
}

func TestComponentsMeetTheirSchema(t *testing.T) {
	t.Parallel()
	c := start(t).As("acme", auth.FunctionsRead, auth.FunctionsWrite)
	for name, row := range map[string]struct {
		change    object
		locations []string
	}{
		"a missing member": {object{"config": object{}}, []string{"body.config.title"}},
		"two faults": {
			object{"config": object{"title": 1, "x": 1}}, []string{"body.config.title", "body.config.x"},
		},
		"not a schema":     {object{"schema": object{"type": "nothing"}}, []string{"body.schema"}},
		"a reference":      {object{"schema": object{"$ref": "https://x.test/s"}}, []string{"body.schema"}},
		"a deep reference": {object{"schema": object{"allOf": []any{object{"$ref": "#"}}}}, []string{"body.schema"}},
		"not an object":    {object{"config": []any{1}}, []string{"body.config"}},
		"a large schema":   {object{"schema": object{"title": strings.Repeat("x", 17<<10)}}, []string{"body.schema"}},
		"a large config":   {object{"config": object{"title": strings.Repeat("x", 65<<10)}}, []string{"body.config"}},
		"status":           {object{"status": "2"}, []string{"body.status"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Post(componentsPath, banner(row.change)).
				Problem(http.StatusBadRequest, "invalid_parameters", row.locations...)
		})
	}
	id := c.Post(componentsPath, banner(object{"code": "kept"})).ID()
	c.Patch(componentsPath+"/"+id, object{"config": object{"title": "much too long"}}).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.config.title")
	c.Patch(componentsPath+"/"+id, object{"config": object{"$ref": 7}}).OK(nil)
	c.Do(http.MethodPut, componentsPath+"/"+id, banner(object{"config": object{}})).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.config.title")
}

func TestPublishedVersions(t *testing.T) {
	t.Parallel()
	c := start(t).As("acme", auth.FunctionsRead, auth.FunctionsWrite)
	made := c.Post(componentsPath, banner(nil)).Object()
	path := componentsPath + "/" + made["id"].(string)
	require.Equal(t, 0.0, made["component_version"])
	require.Empty(t, c.Items(path+"/versions", "component_version"))
	c.Get(path+"/versions/1").Problem(http.StatusNotFound, "not_found")
	published := c.Post(path+"/publish", nil).Object()
	require.Equal(t, 1.0, published["component_version"])
	require.NotNil(t, published["time_published"])
	require.Equal(t, published, c.Post(path+"/publish", nil).Object(), "nothing has changed")
	c.Patch(path, object{"config": object{"title": "Hello"}}).OK(nil)
	require.Equal(t, object{"title": "Welcome"}, c.Get(path + "/versions/1").Object()["config"])
	c.With("If-Match", `"1"`).Post(path+"/publish", nil).Problem(http.StatusPreconditionFailed, "version_mismatch")
	require.Equal(t, 2.0, c.Post(path+"/publish", nil).Object()["component_version"])
	require.Equal(t, []any{2.0, 1.0}, c.Items(path+"/versions?page_sort=component_version[desc]", "component_version"))
	for n := range 100 {
		c.Patch(path, object{"name": fmt.Sprint("Banner ", n)}).OK(nil)
		c.Post(path+"/publish", nil).OK(nil)
	}
	require.EqualValues(t, 100, c.Get(path + "/versions").Object()["total"])
	c.Get(path+"/versions/2").Problem(http.StatusNotFound, "not_found")
	c.Delete(path, nil).OK(nil)
	c.Get(path+"/versions/102").Problem(http.StatusNotFound, "not_found")
	c.Get(path+"/versions").Problem(http.StatusNotFound, "not_found")
}

// Concurrent changes of different members all succeed, and none is lost.
func TestComponentsChangeAtTheSameTime(t *testing.T) {
	t.Parallel()
	c := start(t).As("acme", auth.FunctionsRead, auth.FunctionsWrite)
	path := componentsPath + "/" + c.Post(componentsPath, banner(nil)).ID()
	var all sync.WaitGroup
	for _, change := range []object{{"name": "One"}, {"type": "two"}, {"config": object{"title": "Three"}}} {
		all.Go(func() { c.Patch(path, change).OK(nil) })
	}
	all.Wait()
	after := c.Get(path).Object()
	require.Equal(t, "One", after["name"])
	require.Equal(t, "two", after["type"])
	require.Equal(t, object{"title": "Three"}, after["config"])
}
