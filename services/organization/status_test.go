package organization_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEnableAndDisable(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	n := forest(t, c)
	a, theirs := n["a"], in(s, "globex")
	addObject(t, theirs, "company")
	s.Clock.Advance(time.Second)
	events := len(history(t, s))

	answer := c.With("If-Match", `"1"`).Post(node(a, "disable"), nil)
	require.Equal(t, `"2-0"`, answer.Header.Get("Etag"))
	a = changed(a, object{"status": "0", "version": 2.0, "time_modified": now(s)})
	require.Equal(t, a, answer.Object())
	require.Equal(t, a, nodeNow(t, c, a))
	require.Equal(t, n["a2"], nodeNow(t, c, n["a2"]), "nodes below do not change")
	require.Equal(t, a, c.Post(node(a, "disable"), nil).Object(), "the node is disabled already")
	require.Equal(t, []string{"node.disabled " + id(a)}, told(history(t, s)[events:]))

	// With recursive, only the nodes that change have events: a1 and a11.
	before := whole(t, c)
	require.Equal(t, a, c.Post(node(a, "disable?recursive=true&dry_run=true"), nil).Object())
	require.Equal(t, before, whole(t, c))
	require.Equal(t, a, c.Post(node(a, "disable?recursive=true"), nil).Object())
	all := history(t, s)[events+1:]
	require.ElementsMatch(t, []string{"node.disabled " + id(n["a2"]), "node.disabled " + id(n["a12"])}, told(all))
	for _, e := range all {
		require.Equal(t, object{"status": "1"}, data(t, e)["previous"].(object))
	}
	require.Equal(t, []any{"a12", "a2", "a1", "a11", "a"}, names(t, c, companyNodes+"&status=0"))

	// It works in the other direction, with a form body, and for a root.
	root := c.Get(nodesPath + "/" + a["parent_id"].(string)).Object()
	require.Equal(t, "1", c.With("Content-Type", "application/x-www-form-urlencoded").Post(node(a, "enable"), "").
		Object()["status"])
	require.Equal(t, []any{"a12", "a2", "a1", "a11"}, names(t, c, companyNodes+"&status=0"))
	c.Post(node(root, "enable?recursive=1"), nil).OK(nil)
	require.Equal(t, []any{}, names(t, c, companyNodes+"&status=0"))
	c.Post(node(root, "disable?recursive=true"), nil).OK(nil)
	require.Len(t, names(t, c, companyNodes+"&status=0"), 8)
	require.Equal(t, []any{"a"}, names(t, c, nodesPath+"?object_code=other&status=1&tag=red"),
		"another tree does not change")

	rows := map[string]refusal{}
	for _, word := range []string{"enable", "disable"} {
		rows[word+" unknown"] = missing(post(nodesPath+"/404/"+word, nil))
		rows[word+" unknown, recursive"] = missing(post(nodesPath+"/404/"+word+"?recursive=true", nil))
		rows[word+" outdated"] = outdated(ifMatch(`"1"`, post(node(a, word), nil)))
		rows[word+" flag"] = bad(post(node(a, word)+"?recursive=yes", nil), "query.recursive")
	}
	refused(t, s, c, rows)
	for _, word := range []string{"enable", "disable"} {
		theirs.Post(node(a, word), nil).Problem(404, "not_found")
	}
}
