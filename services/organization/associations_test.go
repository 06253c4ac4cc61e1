package organization_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
)

const linksPath = "/v1/tree-associations"

func associate(t testing.TB, c *testkit.Client, source, target object, more ...object) object {
	t.Helper()
	return c.Post(linksPath, with(object{"source_node_id": source["id"], "target_node_id": target["id"]}, more)).
		Object()
}

func TestAssociations(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	addObject(t, c, "company")
	addObject(t, c, "project")
	theirs := in(s, "globex")
	addObject(t, theirs, "company")
	foreign := addNode(t, theirs, "company", "", "x")
	d1, d2 := addNode(t, c, "company", "", "d1"), addNode(t, c, "company", "", "d2")
	p1, p2 := addNode(t, c, "project", "", "p1"), addNode(t, c, "project", "", "p2")
	nodes := whole(t, c)["nodes of company"]

	answer := c.Post(linksPath, object{"source_node_id": p1["id"], "target_node_id": d1["id"], "type": "主",
		"description": "d"})
	first := answer.Object()
	require.Equal(t, `"1"`, answer.Header.Get("Etag"))
	require.Equal(t, object{
		"id": first["id"], "tenant_id": "acme", "version": 1.0, "time_created": now(s), "time_modified": now(s),
		"source_node_id": p1["id"], "target_node_id": d1["id"], "type": "主", "description": "d",
	}, first)
	require.Equal(t, first, c.Get(linksPath+"/"+id(first)).Object())
	require.Equal(t, nodes, whole(t, c)["nodes of company"], "nodes do not change with their associations")
	s.Clock.Advance(time.Second)
	// with another type
	other := associate(t, c, p1, d1, object{"type": strings.Repeat("x", 64), "description": strings.Repeat("述", 2000)})
	// without a type
	plain := associate(t, c, p1, d1)
	// in the other direction
	back := associate(t, c, d1, p1, object{"type": "主"})
	wide := associate(t, c, p1, d2, object{"type": "主", "id": "1", "version": 7})
	far := associate(t, c, p2, d2)
	dry := c.Post(linksPath+"?dry_run=true", object{"source_node_id": p2["id"], "target_node_id": d1["id"]})
	require.Equal(t, "true", dry.Header.Get("Dry-Run"))
	all := []any{first["id"], other["id"], plain["id"], back["id"], wide["id"], far["id"]}

	for query, want := range map[string][]any{
		"": all, "&page_sort=time_created[desc],type": {plain["id"], far["id"], other["id"], back["id"], wide["id"],
			first["id"]},
		"&node_id=" + id(p1): all[:5], "&node_id=" + id(d2): all[4:], "&source_node_id=" +
			id(p1): {all[0], all[1], all[2], all[4]}, "&target_node_id=" + id(p1): {all[3]},
		"&source_node_id=" + id(p1) + "&target_node_id=" + id(d1): all[:3], "&type=" +
			"%E4%B8%BB": {all[0], all[3], all[4]},
		"&node_id=" + id(d2) + "&type=%E4%B8%BB": {all[4]}, "&node_id=404": {}, "&node_id=" + id(foreign): {},
		"&page_size=2&page_num=2": all[2:4], "&page_size=4&page_num=3": {},
	} {
		require.Equal(t, want, c.Items(linksPath+"?x=1"+query, "id"), query)
		if !strings.Contains(query, "page_size") {
			require.EqualValues(t, len(want), c.Get(linksPath + "?page_size=1" + query).Object()["total"], query)
			require.Len(t, walk(t, c, linksPath+"?x=1"+query, 1), len(want), query)
		}
	}
	require.Equal(t, []any{}, theirs.Items(linksPath, "id"))

	create := func(source, target any, more ...object) ask {
		return post(linksPath, with(object{"source_node_id": source, "target_node_id": target}, more))
	}
	refused(t, s, c, map[string]refusal{
		"nothing":          bad(post(linksPath, object{}), "body.source_node_id", "body.target_node_id"),
		"empty":            bad(create("", ""), "body.source_node_id", "body.target_node_id"),
		"unknown":          bad(create("404", "405"), "body.source_node_id", "body.target_node_id"),
		"unknown target":   bad(create(p1["id"], "404"), "body.target_node_id"),
		"another tenant's": bad(create(foreign["id"], d1["id"]), "body.source_node_id"),
		"of one tree":      bad(create(p1["id"], p2["id"]), "body.target_node_id"),
		"itself":           bad(create(p1["id"], p1["id"]), "body.target_node_id"),
		"type":             bad(create(p2["id"], d1["id"], object{"type": strings.Repeat("x", 65)}), "body.type"),
		"description": bad(create(p2["id"], d1["id"], object{"description": strings.Repeat("x", 2001)}),
			"body.description"),
		"numbers":          bad(create(1, 2), "body.source_node_id", "body.target_node_id"),
		"again":            taken(create(p1["id"], d1["id"], object{"type": "主"}), "body.target_node_id"),
		"again of no type": taken(create(p1["id"], d1["id"]), "body.target_node_id"),
		"get unknown":      missing(get(linksPath + "/404")),
		"delete unknown":   missing(remove(linksPath+"/404", nil)),
		"delete outdated":  outdated(ifMatch(`"2"`, remove(linksPath+"/"+id(first), nil))),
		"delete nothing":   bad(remove(linksPath, nil), "query.id"),
		"delete none":      bad(remove(linksPath, object{"ids": []string{}}), "body.ids"),
		"delete 1001":      bad(remove(linksPath, object{"ids": make([]string, 1001)}), "body.ids"),
		"sort":             bad(get(linksPath+"?page_sort=description"), "query.page_sort"),
	})
	theirs.Get(linksPath+"/"+id(first)).Problem(http.StatusNotFound, "not_found")
	theirs.Delete(linksPath+"/"+id(first), nil).Problem(http.StatusNotFound, "not_found")
	require.Equal(t, object{"removed": 0.0}, theirs.Delete(linksPath, object{"ids": []any{first["id"]}}).Object())

	// The forms of a delete.
	events := len(history(t, s))
	require.Equal(t, object{"id": first["id"]}, c.Delete(linksPath+"/"+id(first)+"?dry_run=true", nil).Object())
	require.Equal(t, object{"id": first["id"]}, c.With("If-Match", `"1"`).Delete(linksPath+"/"+id(first), nil).Object())
	require.Equal(t, object{"removed": 1.0}, c.Delete(linksPath+"?id="+id(other), nil).Object())
	require.Equal(t, object{"removed": 0.0}, c.Delete(linksPath+"?id="+id(other), nil).Object())
	require.Equal(t, object{"removed": 2.0}, c.Delete(linksPath+"?id="+id(plain),
		object{"ids": []any{back["id"], "404", back["id"], plain["id"]}}).Object())
	require.Equal(t, []any{wide["id"], far["id"]}, c.Items(linksPath, "id"))
	require.ElementsMatch(t, []string{
		"association.deleted " + id(first), "association.deleted " + id(other), "association.deleted " + id(plain),
		"association.deleted " + id(back),
	}, told(history(t, s)[events:]))

	// They end with either node.
	c.Delete(node(p1)+"?object_code=project", nil).OK(nil)
	require.Equal(t, []any{far["id"]}, c.Items(linksPath, "id"))
	c.Delete(node(d2)+"?object_code=company", nil).OK(nil)
	require.Equal(t, []any{}, c.Items(linksPath, "id"))
	associate(t, c, p2, d1) // an ended association can be created again
}
