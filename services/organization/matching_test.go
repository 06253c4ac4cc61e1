package organization_test

import (
	"fmt"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

func TestEveryOperationHonoursIfMatch(t *testing.T) {
	t.Parallel()
	s, c, _ := withPeople(t, 50)
	addObject(t, c, "company")
	addObject(t, c, "project")
	root := func(c *testkit.Client, n int) object { return addNode(t, c, "company", "", fmt.Sprint("N", n)) }
	testkit.Matching(t, s, s.As("acme", auth.PlatformAdmin), testkit.Records{
		Make: map[string]func(c *testkit.Client, n int) string{
			"/v1/core-objects/{id}": func(c *testkit.Client, n int) string {
				return "/v1/core-objects/" + id(addObject(t, c, fmt.Sprint("o", n)))
			},
			"/v1/tree-nodes/{id}": func(c *testkit.Client, n int) string {
				return node(root(c, n)) + "?object_code=company"
			},
			linksPath + "/{id}": func(c *testkit.Client, n int) string {
				project := addNode(t, c, "project", "", fmt.Sprint("P", n))
				return linksPath + "/" + id(associate(t, c, root(c, n), project))
			},
			"/v1/tree-users/{id}": func(c *testkit.Client, n int) string {
				return "/v1/tree-users/" + id(join(t, c, root(c, n), fmt.Sprint(n)))
			},
		},
	})
}
