package organization_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/organization/internal/link"
	"github.com/idplatform/idplatform/services/organization/internal/member"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// addMany posts n items to a batch operation, a thousand at a time, and returns the ids of the created records.
func addMany(t testing.TB, c *testkit.Client, url string, n int, item func(i int) object) []any {
	t.Helper()
	var ids []any
	for len(ids) < n {
		items := make([]object, min(1000, n-len(ids)))
		for i := range items {
			items[i] = item(len(ids) + i)
		}
		body := object{"items": items}
		if url == nodesBatch {
			body["object_code"] = "company"
		}
		ids = append(ids, members(c.Post(url, body).Object()["items"], "id")...)
	}
	return ids
}

func TestMaxObjects(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	var last object
	for i := range tree.MaxObjects {
		last = addObject(t, c, fmt.Sprint("tree-", i))
	}
	more := object{"code": "more", "name": "More"}
	c.Post(objectsPath, more).Problem(http.StatusConflict, "invalid_state")
	c.Delete(objectsPath+"/"+id(last), nil).OK(nil)
	c.Post(objectsPath, more).OK(nil)
	c.Post(objectsPath, object{"code": "another", "name": "Another"}).Problem(http.StatusConflict, "invalid_state")
}

func TestMaxDynamic(t *testing.T) {
	t.Parallel()
	_, c, _ := withPeople(t, 0)
	addObject(t, c, "company")
	dynamic := object{"is_dynamic": "1", "condition": "user.id == '1'"}
	ids := addMany(t, c, nodesBatch, tree.MaxDynamic, func(i int) object {
		return with(object{"name": fmt.Sprint(i)}, []object{dynamic})
	})
	plain := addNode(t, c, "company", "", "plain")
	more := with(object{"object_code": "company", "name": "more", "parent_id": ""}, []object{dynamic})
	c.Post(nodesPath, more).Problem(http.StatusConflict, "invalid_state")
	c.Patch(node(plain), dynamic).Problem(http.StatusConflict, "invalid_state")
	c.Patch(nodesPath+"/"+ids[0].(string), object{"condition": "user.id == '2'"}).OK(nil)
	c.Patch(nodesPath+"/"+ids[0].(string), object{"is_dynamic": "0", "condition": ""}).OK(nil)
	c.Post(nodesPath, more).OK(nil)
	c.Patch(node(plain), dynamic).Problem(http.StatusConflict, "invalid_state")
}

func TestMaxOfUser(t *testing.T) {
	t.Parallel()
	_, c, _ := withPeople(t, 2)
	addObject(t, c, "company")
	ids := addMany(t, c, nodesBatch, member.MaxOfUser+1, func(i int) object { return object{"name": fmt.Sprint(i)} })
	addMany(t, c, membersBatch, member.MaxOfUser, func(i int) object {
		return object{"node_id": ids[i], "user_id": "1"}
	})
	var all []object
	c.Get(membersPath + "?user_id=1").OK(&all)
	require.Len(t, all, member.MaxOfUser)
	last := object{"id": ids[member.MaxOfUser]}
	body := object{"node_id": id(last), "user_id": "1"}
	c.Post(membersPath, body).Problem(http.StatusConflict, "invalid_state")
	c.Post(membersBatch, object{"items": []object{{"node_id": id(last), "user_id": "2"}, body}}).
		Problem(http.StatusConflict, "invalid_state")
	require.Equal(t, []any{}, c.Items(node(last, "users"), "id"))
	c.Delete(membersPath+"/"+id(all[0]), nil).OK(nil)
	c.Post(membersPath, body).OK(nil)
}

func TestMaxAssociations(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	addObject(t, c, "project")
	addObject(t, c, "company")
	p := addNode(t, c, "project", "", "p")
	ids := addMany(t, c, nodesBatch, link.MaxOfNode+1, func(i int) object { return object{"name": fmt.Sprint(i)} })
	var first object
	for i, to := range ids[:link.MaxOfNode] {
		from, to := p, object{"id": to}
		if i%2 == 0 {
			from, to = to, from // at either end
		}
		if link := associate(t, c, from, to); i == 0 {
			first = link
		}
	}
	more := object{"source_node_id": ids[link.MaxOfNode], "target_node_id": id(p)}
	c.Post(linksPath, more).Problem(http.StatusConflict, "invalid_state")
	c.Delete(linksPath+"/"+id(first), nil).OK(nil)
	c.Post(linksPath, more).OK(nil)
}
