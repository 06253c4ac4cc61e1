package permissions_test

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
)

// realOrganization lies beside the repository, not in it.
const realOrganization = "../../../shared/data/kubernetes-org.json"

type kubernetes struct {
	Levels, Users, Resources []string
	Nodes                    []struct{ Path, Parent, Name string }
	Members                  []struct{ Node, User string }
	Grants                   []struct{ Node, Resource, Permission string }
}

// company is the organization as the users and the organization service would have it. An id is made of the place in
// the list of the file.
func (k *kubernetes) company() (c company, nodeID map[string]string) {
	nodeID, userID := map[string]string{}, map[string]string{}
	for i, name := range k.Users {
		userID[name] = strconv.Itoa(10_001 + i)
		c.users = append(c.users, object{"id": userID[name], "username": name, "status": "1"})
	}
	for i, n := range k.Nodes {
		nodeID[n.Path] = strconv.Itoa(1001 + i)
	}
	c.objects = []questions.CoreObject{{ID: "1", Code: "kubernetes", Name: "Kubernetes", Sequence: 10}}
	for _, n := range k.Nodes {
		c.nodes = append(c.nodes, questions.Node{ID: nodeID[n.Path], Name: n.Name, ParentID: nodeID[n.Parent],
			ObjectCode: "kubernetes", Sequence: 10})
	}
	for i, m := range k.Members {
		c.memberships = append(c.memberships, questions.Membership{ID: strconv.Itoa(20_001 + i), NodeID: nodeID[m.Node],
			UserID: userID[m.User], Sequence: 10})
	}
	return c, nodeID
}

// expected is what each user may do with each resource, as "resource level", computed from the file alone.
func (k *kubernetes) expected() map[string]map[string]bool {
	parent := map[string]string{}
	for _, n := range k.Nodes {
		parent[n.Path] = n.Parent
	}
	may := map[string]map[string]bool{}
	for _, user := range k.Users {
		may[user] = map[string]bool{}
	}
	for _, m := range k.Members {
		for node := m.Node; node != ""; node = parent[node] {
			for _, g := range k.Grants {
				if g.Node == node {
					for _, level := range k.upTo(g.Permission) {
						may[m.User][g.Resource+" "+level] = true
					}
				}
			}
		}
	}
	return may
}

// upTo are the levels that a permission includes.
func (k *kubernetes) upTo(permission string) []string {
	return k.Levels[:slices.Index(k.Levels, permission)+1]
}

// The answers for every person, repository and level of a real organization are those that follow from its file.
func TestARealOrganization(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile(realOrganization)
	if err != nil {
		t.Skip("the organization's file is not beside the repository: ", err)
	}
	var k kubernetes
	require.NoError(t, json.Unmarshal(file, &k))
	people, nodeID := k.company()
	people.page = 500
	s := testkit.Start(t, spec)
	answer(t, s, func() company { return people })
	ready(t, s)
	c := in(s, "acme")
	var levels []object
	for _, level := range k.Levels {
		levels = append(levels, object{"code": level})
	}
	for _, name := range k.Resources {
		c.Post("/v1/resources", object{"application_id": "9", "type": "data", "code": name, "actions": levels}).OK(nil)
	}
	for _, g := range k.Grants {
		give(t, c, "node/"+nodeID[g.Node], data(g.Resource, k.upTo(g.Permission)...))
	}
	want := k.expected()
	for i, user := range k.Users {
		got := map[string]bool{}
		page := c.Get("/v1/auth-check/objects?application_id=9&object_type=data&identity_type=user&page_size=200" +
			"&identity_id=" + strconv.Itoa(10_001+i)).Object()
		require.NotContains(t, page, "next_page_token")
		for _, item := range page["items"].([]any) {
			for _, level := range item.(object)["actions"].([]any) {
				got[item.(object)["object_code"].(string)+" "+level.(string)] = true
			}
		}
		require.Equal(t, want[user], got, user)
		if i%50 == 0 { // checks say the same
			k.check(t, c, strconv.Itoa(10_001+i), want[user])
		}
	}
}

// check asks for all resources and levels of one user.
func (k *kubernetes) check(t *testing.T, c *testkit.Client, user string, want map[string]bool) {
	t.Helper()
	var checks []object
	var names []string
	for _, resource := range k.Resources {
		for _, level := range k.Levels {
			names = append(names, resource+" "+level)
			checks = append(checks, object{"identity_id": user, "identity_type": "user", "application_id": "9",
				"object_type": "data", "object_code": resource, "action": level})
		}
	}
	var answers struct{ Results []struct{ Allowed bool } }
	c.Post("/v1/batch/auth-check", object{"checks": checks}).OK(&answers)
	for i, r := range answers.Results {
		require.Equal(t, want[names[i]], r.Allowed, strings.Join([]string{user, names[i]}, " "))
	}
}
