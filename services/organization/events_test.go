package organization_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// life does all that makes events.
func life(t *testing.T, s *testkit.Service, c *testkit.Client) {
	tick := func() { s.Clock.Advance(time.Second) }
	do := func(a *testkit.Answer) object { t.Helper(); tick(); return a.Object() }
	o := addObject(t, c, "company", object{"name": "集团 <&>"})
	project := addObject(t, c, "project")
	tick()
	do(c.With("X-Payload-Origin", "hr-sync").Patch(objectPath(o), object{"name": "集团", "sys_ext_props": object{"a": 1}}))
	a, b := addNode(t, c, "company", "", "a", object{"sys_ext_props": object{"a": 1}}), addNode(t, c, "company", "", "b")
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
	// Of different records' events any may be first.
	slices.SortStableFunc(events, func(a, b bus.Event) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), strings.Compare(a.Subject, b.Subject))
	})
	types := map[string]bool{}
	form := map[string][]string{} // the members of a record
	var list []object
	for _, e := range events {
		types[strings.TrimPrefix(e.Type, "idp.")] = true
		require.NotEmpty(t, e.ID)
		require.NotEmpty(t, e.RequestID)
		members := slices.Sorted(maps.Keys(data(t, e)["record"].(object)))
		kind := strings.Split(e.Type, ".")[1] + " of " + e.Source
		if form[kind] == nil {
			form[kind] = members
		}
		require.Equal(t, form[kind], members, "%s carries the whole record", e.Type)
		list = append(list, object{
			"type": e.Type, "source": e.Source, "subject": e.Subject, "time": e.Time, "tenantid": e.Tenant, "actor": e.Actor,
			"payloadorigin": e.PayloadOrigin, "sequence": strconv.FormatInt(e.Sequence, 10), "data": e.Data,
		})
	}
	require.Equal(t, []string{
		"association.created", "association.deleted", "core_object.created", "core_object.deleted", "core_object.updated", "membership.created", "membership.deleted",
		"membership.updated", "node.created", "node.deleted", "node.disabled", "node.enabled", "node.moved", "node.updated",
	}, slices.Sorted(maps.Keys(types)))
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(list))
	testkit.Golden(t, "testdata/events.json.golden", testkit.Since(t, began, text.Bytes()))
}
