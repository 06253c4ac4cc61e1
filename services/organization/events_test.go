package organization_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// life causes every kind of event.
func life(t *testing.T, s *testkit.Service, c *testkit.Client) {
	tick := func() { s.Clock.Advance(time.Second) }
	do := func(a *testkit.Answer) object { t.Helper(); tick(); return a.Object() }
	o := addObject(t, c, "company", object{"name": "集团 <&>"})
	project := addObject(t, c, "project")
	tick()
	do(c.With("X-Payload-Origin", "hr-sync").Patch(objectPath(o),
		object{"name": "集团", "sys_ext_props": object{"a": 1}}))
	a, b := addNode(t, c, "company", "", "a", object{"sys_ext_props": object{"a": 1}}),
		addNode(t, c, "company", "", "b")
	below := addNode(t, c, "company", id(a), "below", object{"code": "below"})
	do(c.Patch(node(a), object{"name": "A <&>", "sys_ext_props": object{"b": 2}}))
	do(c.Patch(node(a), object{"parent_id": b["id"]}))
	do(c.Patch(node(below), object{"parent_id": b["id"], "tag": "t"}))
	do(c.Post(node(a, "disable"), nil))
	do(c.Post(node(a, "enable"), nil))
	first := do(c.Post(membersPath, object{"node_id": a["id"], "user_id": "1", "title": "架构师"}))
	second := do(c.Post(membersPath, object{"node_id": b["id"], "user_id": "1", "is_primary": "1"}))
	do(c.Patch(membersPath+"/"+id(first), object{"role": "leader"}))
	do(c.Delete(membersPath+"/"+id(second), nil))
	do(c.Post(membersBatch, object{"node_id": a["id"], "user_ids": []string{"2", "3"}}))
	do(c.Post(linksPath, object{"source_node_id": project["root_node_id"], "target_node_id": a["id"], "type": "owner"}))
	for _, n := range []object{a, below, b} {
		do(c.Delete(node(n)+"?object_code=company", nil))
	}
	do(c.Delete(objectPath(o), nil))
}

func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 3)
	began := s.Clock.Now()
	life(t, s, c)
	events := history(t, s)
	// Events of different records come in any order.
	slices.SortStableFunc(events, func(a, b stream.Event) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), strings.Compare(a.Subject, b.Subject))
	})
	testkit.GoldenEvents(t, began, events, "association.created", "association.deleted", "core_object.created",
		"core_object.deleted", "core_object.updated", "membership.created", "membership.deleted", "membership.updated",
		"node.created", "node.deleted", "node.disabled", "node.enabled", "node.moved", "node.updated")
	testkit.EventTypes(t, s, "organization", began, events, map[string]string{
		"association": "TreeAssociation", "core_object": "CoreObject", "membership": "Membership", "node": "TreeNode",
	})
}
