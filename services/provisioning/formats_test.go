package provisioning_test

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/provisioning"
)

func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	testkit.Document(t, start(t), "api/openapi.yaml")
}

var unsteady = regexp.MustCompile(`"(sha256|request_id)": "[^"]+"`)

func steady(document []byte) []byte { return unsteady.ReplaceAll(document, []byte(`"$1": "…"`)) }

// Later versions must be able to read stored documents: whoever changes a golden file provides for the old form.
func TestGoldenDocuments(t *testing.T) {
	t.Parallel()
	s := start(t)
	w := newWorld(t, s)
	began := s.Clock.Now()
	c := another(t, s, w, "okta", object{"client_id": "c1", "extensions": []any{"urn:acme:badge"},
		"login_link": object{"idp_config_id": 31, "id1": "externalId"}, "gate": object{"percent": 0, "min": 0, "hours": 1}})
	s.Clock.Advance(time.Second)
	user := c.addUser("li.wei", object{"displayName": "李伟 <&>", "title": "Guide",
		"emails": []any{object{"value": "li.wei@acme.test", "primary": true}}, "urn:acme:badge": object{"colour": "red"}})
	group := c.addGroup("Platform", user)
	c.want(http.StatusServiceUnavailable, http.MethodDelete, usersPath+"/"+user, nil)
	w.mu.Lock()
	w.fail = func(question string) (error, bool) {
		return errCrash, question == "change" || question == "change-node"
	}
	w.mu.Unlock()
	c.want(http.StatusBadGateway, http.MethodPost, usersPath, person("half", nil))
	c.want(http.StatusBadGateway, http.MethodPost, groupsPath, object{"displayName": "Half",
		"members": valued([]string{user})})
	for name, document := range map[string]struct{ collection, id string }{
		"connection": {"connections", c.connection["id"].(string)}, "token": {"tokens", ""},
		"user": {"scim_users", user}, "group": {"scim_groups", group}, "member": {"scim_members", ""},
		"held_request": {"held_requests", ""}, "user_intent": {"user_intents", ""}, "group_intent": {"group_intents", ""},
	} {
		testkit.GoldenDocument(t, s, began, name, document.collection, document.id, steady)
	}
}

// The events are a format that other services and clients rely on.
func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	spec := provisioning.Spec()
	newApp := spec.New
	spec.New = func(ctx context.Context, d service.Deps) (service.App, error) {
		app, err := newApp(ctx, d)
		for i := range app.Tasks {
			app.Tasks[i].Every = time.Hour // else the counters would be in events if the test takes a second
		}
		return app, err
	}
	s := testkit.Start(t, spec)
	w := newWorld(t, s)
	began := s.Clock.Now()
	tick := func() { s.Clock.Advance(time.Second) }
	tick()
	c := another(t, s, w, "okta", object{"adopt": "username", "gate": object{"percent": 0, "min": 0, "hours": 1}})
	tick()
	id := c.addUser("li.wei", nil)
	tick()
	w.addUser("acme", "wang.fang", "", false)
	c.addUser("wang.fang", nil)
	for _, how := range []string{"/reject", "/approve"} {
		tick()
		c.want(http.StatusServiceUnavailable, http.MethodDelete, usersPath+"/"+id, nil)
		tick()
		c.admin().Post(c.path(how), nil).OK(nil)
	}
	tick()
	c.addUser("li.wei", nil)
	tick()
	c.addGroup("Platform")
	tick()
	c.admin().Patch(c.path(""), object{"on_delete": "resign"}).OK(nil)
	tick()
	c.admin().Delete(c.path(""), nil).OK(nil)
	events := s.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.scim_connection.deleted" })
	// The approval and the removal that it carries out are told at the same time, in any order.
	slices.SortStableFunc(events, func(a, b stream.Event) int {
		return cmp.Or(a.Time.Std().Compare(b.Time.Std()), strings.Compare(a.Type, b.Type))
	})
	testkit.GoldenEvents(t, began, events,
		"scim_connection.created", "scim_connection.updated", "scim_connection.held", "scim_connection.approved",
		"scim_connection.rejected", "scim_connection.deleted",
		"scim_link.created", "scim_link.adopted", "scim_link.gone", "scim_link.revived",
	)
	testkit.EventTypes(t, s, "provisioning", began, events, map[string]string{"scim_connection": "ScimConnection"})
}
