package organization_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every POST that is repeated with its key gets the first answer again and changes nothing.
func TestEveryPostIsIdempotent(t *testing.T) {
	t.Parallel()
	s, c, p := withPeople(t, 9)
	addObject(t, c, "company")
	addObject(t, c, "project")
	n, project := addNode(t, c, "company", "", "n"), addNode(t, c, "project", "", "p")
	join(t, c, n, "9")
	for name, row := range map[string]struct {
		url  string
		body any
	}{
		"core object":          {objectsPath, object{"code": "new", "name": "New"}},
		"core object, taken":   {objectsPath, object{"code": "company", "name": "New"}},
		"node":                 {nodesPath, object{"object_code": "company", "name": "x", "parent_id": ""}},
		"node, refused":        {nodesPath, object{"object_code": "company", "name": "x", "parent_id": "404"}},
		"nodes":                {nodesBatch, object{"object_code": "company", "items": chain(7)}},
		"nodes, refused":       {nodesBatch, object{"object_code": "company", "items": chain(40)}},
		"check":                {"/v1/batch/tree-nodes-check", object{"type": "id", "ids": []any{n["id"], "404"}}},
		"disable":              {node(project, "disable"), nil},
		"enable":               {node(n, "enable?recursive=true"), nil},
		"member":               {membersPath, object{"node_id": n["id"], "user_id": "1"}},
		"member already":       {membersPath, object{"node_id": n["id"], "user_id": "9"}},
		"members":              {membersBatch, object{"node_id": n["id"], "user_ids": []string{"2", "3"}}},
		"members as items":     {membersBatch, object{"items": []object{{"node_id": n["id"], "user_id": "4"}}}},
		"members, refused":     {membersBatch, object{"node_id": n["id"], "user_ids": []string{"5", "404"}}},
		"association":          {linksPath, object{"source_node_id": n["id"], "target_node_id": project["id"]}},
		"association, refused": {linksPath, object{"source_node_id": n["id"], "target_node_id": n["id"]}},
	} {
		keyed := c.With("Idempotency-Key", name)
		first := keyed.Post(row.url, row.body)
		require.Empty(t, first.Header.Get("Idempotent-Replayed"), name)
		before, events, asked := whole(t, c), len(history(t, s)), p.asked
		again := keyed.Post(row.url, row.body)
		require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"), name)
		require.Equal(t, first.Status, again.Status, name)
		require.Equal(t, first.Header.Get("Etag"), again.Header.Get("Etag"), name)
		if first.Status == http.StatusOK {
			require.Equal(t, string(first.Body), string(again.Body), name)
		}
		require.Equal(t, before, whole(t, c), name)
		require.Len(t, history(t, s), events, name)
		require.Equal(t, asked, p.asked, name)
		keyed.Post(objectsPath, object{"code": "other", "name": name}).Problem(http.StatusUnprocessableEntity,
			"idempotency_key_reused")
	}
}
