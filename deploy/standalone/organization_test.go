package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// call sends JSON and decodes the response; any status but 200 is an error.
func call(client *http.Client, c *child, token, method, path string, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(method, "http://"+c.Addr+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %d: %s", method, path, answer.StatusCode, text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// realOrganization is the content of the file that IDP_TEST_ORGANIZATION names; the default is a file next to the
// repository.
type realOrganization struct {
	Users []string `json:"users"`
	Nodes []struct {
		Path        string `json:"path"`
		Parent      string `json:"parent"`
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"nodes"`
	Members []struct {
		Node string `json:"node"`
		User string `json:"user"`
		Role string `json:"role"`
	} `json:"members"`
}

func readRealOrganization(t testing.TB) realOrganization {
	t.Helper()
	file := cmp.Or(os.Getenv("IDP_TEST_ORGANIZATION"), "../../../shared/data/kubernetes-org.json")
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		t.Skipf("no real organization: %s does not exist", file)
	}
	require.NoError(t, err)
	var o realOrganization
	require.NoError(t, json.Unmarshal(text, &o))
	return o
}

// shownNode is a node of a tree as the API shows it.
type shownNode struct {
	ID, Code, Name, Description string
	Path                        []string
	MemberCount                 int `json:"member_count"`
	Children                    []shownNode
}

// shownMember is a membership: the node's code, the user's id and the role.
type shownMember struct{ node, user, role string }

// readTree reads the members of a node and of all nodes below it. It returns the nodes with their attributes, each as
// one text, and the memberships.
func readTree(t *testing.T, c *child, token string, n shownNode, parent string) (nodes []string, all []shownMember) {
	t.Helper()
	nodes = append(nodes, fmt.Sprint(n.Code, parent, n.Name, n.Description))
	var page struct {
		Total int
		Items []struct {
			UserID string `json:"user_id"`
			Role   string
		}
		Next string `json:"next_page_token"`
	}
	for first := true; first || page.Next != ""; first = false {
		url := "/v1/tree-nodes/" + n.ID + "/users?page_size=200&page_token=" + page.Next
		page.Next, page.Items = "", nil
		fetch(t, c, token, url, &page)
		require.Equal(t, n.MemberCount, page.Total)
		for _, m := range page.Items {
			all = append(all, shownMember{n.Code, m.UserID, m.Role})
		}
	}
	for _, child := range n.Children {
		below, members := readTree(t, c, token, child, n.Code)
		nodes, all = append(nodes, below...), append(all, members...)
	}
	return nodes, all
}

// A real organization is loaded through the API and reads back as it is in the file.
func TestRealOrganization(t *testing.T) {
	t.Parallel()
	org := readRealOrganization(t)
	c := startPlatform(t, t.TempDir())
	token := c.token("--tenant", "acme")
	start := time.Now()
	users := loadOrganization(t, c, token, org)
	t.Logf("%d users, %d nodes and %d memberships in %v",
		len(org.Users), len(org.Nodes), len(org.Members), time.Since(start))

	var objects []struct {
		RootNodeID string `json:"root_node_id"`
		NodeCount  int    `json:"node_count"`
	}
	fetch(t, c, token, "/v1/core-objects", &objects)
	require.Len(t, objects, 1)
	require.Equal(t, len(org.Nodes), objects[0].NodeCount)
	var root shownNode
	fetch(t, c, token, "/v1/tree-nodes/"+objects[0].RootNodeID+"/tree", &root)
	nodes, members := readTree(t, c, token, root, "")

	var wantNodes []string
	var wantMembers []shownMember
	for _, n := range org.Nodes {
		wantNodes = append(wantNodes, fmt.Sprint(n.Path, n.Parent, n.Name, n.Description))
	}
	for _, m := range org.Members {
		wantMembers = append(wantMembers, shownMember{m.Node, users[m.User], m.Role})
	}
	require.ElementsMatch(t, wantNodes, nodes)
	require.ElementsMatch(t, wantMembers, members)

	distinct := map[string]bool{}
	for _, m := range org.Members {
		distinct[m.User] = true
	}
	var all struct{ Total int }
	fetch(t, c, token, "/v1/tree-nodes/"+root.ID+"/users?recursive=true", &all)
	require.Equal(t, len(distinct), all.Total)
}

// loadOrganization creates the users, the tree and the memberships, and returns the users' ids by name.
func loadOrganization(t testing.TB, c *child, token string, org realOrganization) map[string]string {
	t.Helper()
	client := &http.Client{}
	defer client.CloseIdleConnections()
	var lines bytes.Buffer
	for _, name := range org.Users {
		fmt.Fprintf(&lines, "{\"username\":%q}\n", name)
	}
	importUsers(t, c, token, lines.Bytes())
	users := map[string]string{}
	var page struct {
		Items []struct{ ID, Username string }
		Next  string `json:"next_page_token"`
	}
	for first := true; first || page.Next != ""; first = false {
		url := "/v1/users?count=false&page_size=200&page_token=" + page.Next
		page.Next, page.Items = "", nil
		fetch(t, c, token, url, &page)
		for _, u := range page.Items {
			users[u.Username] = u.ID
		}
	}
	type object = map[string]any
	ids := map[string]string{}
	var items []object
	for _, n := range org.Nodes {
		if n.Parent == "" {
			var made struct {
				RootNodeID string `json:"root_node_id"`
			}
			require.NoError(t, call(client, c, token, http.MethodPost, "/v1/core-objects", object{
				"code": n.Path, "name": n.Name, "root": object{"code": n.Path, "description": n.Description},
			}, &made))
			ids[n.Path] = made.RootNodeID
			continue
		}
		item := object{"code": n.Path, "name": n.Name, "description": n.Description, "ref": n.Path}
		if ids[n.Parent] == "" {
			item["parent_ref"] = n.Parent
		}
		items = append(items, item)
	}
	var added struct{ Items []struct{ ID, Ref string } }
	require.NoError(t, call(client, c, token, http.MethodPost, "/v1/batch/tree-nodes",
		object{"object_code": org.Nodes[0].Path, "items": items}, &added))
	for _, n := range added.Items {
		ids[n.Ref] = n.ID
	}
	for part := range slices.Chunk(org.Members, 1000) {
		var err error
		var items []object
		for _, m := range part {
			items = append(items, object{"node_id": ids[m.Node], "user_id": users[m.User], "role": m.Role})
		}
		// If a busy machine keeps the users service from answering in time, nothing is changed, and the answer is 503.
		wait.Until(t, func() bool {
			err = call(client, c, token, http.MethodPost, "/v1/batch/tree-users", object{"items": items}, nil)
			return err == nil || !strings.Contains(err.Error(), `"code":"unavailable"`)
		})
		require.NoError(t, err)
	}
	return users
}

// moveUntilKilled moves a user, who is at one of two nodes, between them until a request fails. It calls acknowledged
// after each move, with the number of moves before it.
func moveUntilKilled(c *child, token, user, at string, nodes [2]string, acknowledged func(n int)) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for n := 0; ; n++ {
		to := nodes[0]
		if at == to {
			to = nodes[1]
		}
		change := map[string]any{"object_code": "company", "from_node_id": at, "to_node_id": to}
		if call(client, c, token, http.MethodPost, "/v1/users/"+user+"/change-organization", change, nil) != nil {
			return
		}
		acknowledged(n)
		at = to
	}
}

// The platform is killed while users change their organization. Afterwards each user is in exactly one node, and
// every change that was made has exactly one event of the users service.
func TestKillNineAmidChangesOfOrganization(t *testing.T) {
	t.Parallel()
	const pairs = 4
	c := startPlatform(t, t.TempDir())
	token := c.token("--tenant", "acme")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	type object = map[string]any
	type record struct {
		ID     string
		NodeID string `json:"node_id"`
	}
	add := func(path string, body object) record {
		var made record
		require.NoError(t, call(client, c, token, http.MethodPost, path, body, &made))
		return made
	}
	add("/v1/core-objects", object{"code": "company", "name": "Acme"})
	nodes := [2]string{}
	for i := range nodes {
		nodes[i] = add("/v1/tree-nodes",
			object{"object_code": "company", "parent_id": "", "name": fmt.Sprint("node ", i)}).ID
	}
	var users [pairs]string
	for i := range users {
		users[i] = add("/v1/users", object{"username": fmt.Sprint("user-", i)}).ID
		add("/v1/tree-users", object{"node_id": nodes[0], "user_id": users[i]})
	}
	memberships := func(user string) []record {
		var has []record
		fetch(t, c, token, "/v1/tree-users?user_id="+user, &has)
		return has
	}
	var acknowledged atomic.Int64
	for range 3 {
		enough := newGate()
		var writers sync.WaitGroup
		for _, user := range users {
			at := memberships(user)[0].NodeID
			writers.Go(func() {
				moveUntilKilled(c, token, user, at, nodes, func(n int) {
					acknowledged.Add(1)
					if n == 20 {
						enough.close()
					}
				})
			})
		}
		enough.wait(t)
		c.kill()
		writers.Wait()
		c = startPlatform(t, c.Dir)
		for _, user := range users {
			require.Len(t, memberships(user), 1)
		}
	}
	requireEventsOfMoves(t, c, pairs, int(acknowledged.Load()))
	c.stop()
}

// requireEventsOfMoves checks that there is one event of the users service for each membership that a move has made.
// There are also memberships that no move has made: the first ones. The platform settles interrupted moves after a
// while, so it waits until the events agree.
func requireEventsOfMoves(t *testing.T, c *child, first, acknowledged int) {
	t.Helper()
	made, reported := 0, 0
	eachEventUntil(t, c, func(subject, _ string) bool {
		switch {
		case strings.HasSuffix(subject, ".membership.created"):
			made++
		case strings.HasSuffix(subject, ".user.organization_changed"):
			reported++
		}
		return reported >= acknowledged && reported == made-first
	})
	require.Equal(t, made-first, reported)
}

// gate can be closed more than once, and waited for.
type gate struct {
	once sync.Once
	open chan struct{}
}

func newGate() *gate   { return &gate{open: make(chan struct{})} }
func (g *gate) close() { g.once.Do(func() { close(g.open) }) }
func (g *gate) wait(t *testing.T) {
	select {
	case <-g.open:
	case <-time.After(wait.Long):
		t.Error("the writers are too slow")
	}
}
