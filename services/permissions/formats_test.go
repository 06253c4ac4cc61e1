package permissions_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

// everything makes one record of each kind, changes it, and deletes it.
func everything(t testing.TB, c *testkit.Client, from clock.Time) {
	t.Helper()
	resource := addResource(t, c, "ledger")
	c.Patch("/v1/resources/"+resource, object{"description": "账本 <&>",
		"free_ext_props": object{"键": []any{"值"}}}).OK(nil)
	set := addSet(t, c, "books", resource)
	put(c, "/v1/resource-sets/"+set, object{"code": "books", "name": "Books"}).OK(nil)
	member := c.Get("/v1/resource-sets/" + set + "/members").Object()["items"].([]any)[0].(object)["id"].(string)
	put(c, "/v1/resource-sets/"+set+"/members/"+member, object{"actions": []string{"read"}}).OK(nil)
	group := c.Post("/v1/auth-units", object{"identity_id": "auditors", "identity_type": "group",
		"identity_name": "Auditors"}).ID()
	c.Patch("/v1/auth-units/"+group, object{"description": "Yearly"}).OK(nil)
	c.Post("/v1/auth-units/"+group+"/members", object{"user_ids": []string{"21"}}).OK(nil)
	give(t, c, "group/auditors", object{
		"type": "res_set", "code": "books", "actions": []string{"read"}, "affect": "deny", "condition": "context.night",
		"valid_from": from,
	})
	var rules []object
	c.Get("/v1/auth-units/" + group + "/rules").OK(&rules)
	put(c, "/v1/auth-units/"+group+"/rules/"+rules[0]["id"].(string),
		object{"application_id": "9", "type": "data", "code": "ledger", "actions": []string{"read", "write"}}).OK(nil)
	c.Delete("/v1/resources/"+resource, nil).OK(nil)
	c.Delete("/v1/resource-sets/"+set, nil).OK(nil)
	c.Delete("/v1/auth-units/"+group, nil).OK(nil)
}

// The events are a format that other services and clients rely on.
func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	s := start(t)
	began := s.Clock.Now()
	everything(t, in(s, "acme"), began.Add(time.Hour))
	type event struct {
		Type    string          `json:"type"`
		Subject string          `json:"subject"`
		Source  string          `json:"source"`
		Data    json.RawMessage `json:"data"`
	}
	var events []event
	told := s.Events(17)
	for _, e := range told {
		events = append(events, event{e.Type, e.Subject, e.Source, e.Data})
	}
	slices.SortStableFunc(events, func(a, b event) int { return bytes.Compare([]byte(a.Subject), []byte(b.Subject)) })
	body, err := json.MarshalIndent(events, "", "  ")
	require.NoError(t, err)
	basic.Golden(t, "testdata/events.json.golden", basic.Since(t, began, append(body, '\n')))
	slices.SortStableFunc(told, func(a, b stream.Event) int { return strings.Compare(a.Subject, b.Subject) })
	testkit.EventTypes(t, s, "permissions", began, told, map[string]string{
		"auth_rule": "AuthRule", "auth_unit": "AuthUnit", "auth_unit_member": "GroupMember", "resource": "Resource",
		"resource_set": "ResourceSet", "resource_set_member": "ResourceSetMember",
	})
}

// Later versions must be able to read stored documents: whoever changes a golden file provides for the old form.
func TestGoldenDocuments(t *testing.T) {
	t.Parallel()
	s := start(t)
	c, began := in(s, "acme"), s.Clock.Now()
	resource := c.Post("/v1/resources", object{"application_id": "9", "type": "api", "code": "orders", "name": "订单",
		"description": "<&>", "uri": "/orders/{id}", "is_global": "1",
		"actions":        []object{{"code": "GET", "description": "Read"}},
		"free_ext_props": object{"键": []any{"值"}}}).ID()
	addSet(t, c, "books", resource)
	give(t, c, "group/auditors", object{"type": "res_set", "code": "books", "actions": []string{"read"},
		"affect": "deny", "condition": "context.night", "valid_from": began.Add(time.Hour),
		"valid_to": began.Add(2 * time.Hour), "description": "Nights"})
	group := unitOf(t, c, "group/auditors")["id"].(string)
	c.Post("/v1/auth-units/"+group+"/members", object{"user_ids": []string{"21"}}).OK(nil)
	for _, collection := range []string{"resources", "resource_sets", "resource_set_members", "auth_units",
		"auth_unit_members", "auth_rules"} {
		testkit.GoldenDocument(t, s, began, collection, collection, "")
	}
}
