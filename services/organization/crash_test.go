package organization_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/rounds"
	"github.com/idplatform/idplatform/services/organization"
)

// crashFile tells a copy of the test program that it is the process to be killed.
const crashFile = "ORGANIZATION_TEST_CRASH_FILE"

const (
	crashNodes   = 10_000
	crashMembers = 50
)

// crashing is a working child process. It prints what it is about to do and what it has done.
type crashing struct {
	cmd   *exec.Cmd
	lines chan string
}

func startCrashing(t *testing.T, file string) *crashing {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestCrashingProcess$")
	cmd.Env = append(os.Environ(), crashFile+"="+file, "TMPDIR="+t.TempDir())
	return startChild(t, cmd)
}

func startChild(t *testing.T, cmd *exec.Cmd) *crashing {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &crashing{cmd, make(chan string, 100_000)}
	go func(out io.Reader) {
		defer close(c.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.lines <- lines.Text()
		}
	}(out)
	return c
}

// until reads the child's lines up to one with this beginning.
func (c *crashing) until(t *testing.T, beginning string) (said []string) {
	t.Helper()
	for line := range c.lines {
		if said = append(said, line); strings.HasPrefix(line, beginning) {
			return said
		}
	}
	require.Fail(t, "the child ended by itself", "%v", said)
	return nil
}

// kill kills the child and reads its remaining lines.
func (c *crashing) kill(t *testing.T) (said []string) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Kill())
	for line := range c.lines {
		said = append(said, line)
	}
	require.Error(t, c.cmd.Wait())
	return said
}

// If a process is killed while it moves 10,000 nodes, or adds members and nodes, each change is made completely or not
// at all.
func TestCrash(t *testing.T) {
	t.Parallel()
	if os.Getenv("IDP_TEST_MONGO_URI") != "" {
		t.Skip("the database does not die with the process")
	}
	file := t.TempDir() + "/crash.db"
	var said []string
	moves := 500 * time.Millisecond // about as long as a move takes
	for round := range rounds.Of(2, 5) {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			child := startCrashing(t, file)
			said = append(said, child.until(t, "moving")...)
			within := moves
			if round%2 == 1 { // the work after a move, which is less
				begun := time.Now()
				said = append(said, child.until(t, "moved")...)
				moves = time.Since(begun)
				within /= 4
			}
			<-time.After(rand.N(within + 1))
			said = append(said, child.kill(t)...)

			s := testkit.Start(t, organization.Spec(), testkit.Options{File: file})
			(&rules{}).answer(t, s.Deps.Bus)
			nodes := verify(t, s)
			moving, moved := "left", "left" // where the branch is at first
			added := map[string]bool{}
			for _, line := range said {
				switch what, of, _ := strings.Cut(line, " "); what {
				case "moving":
					moving = of
				case "moved":
					moved = of
				case "added":
					added[of] = true
				}
			}
			names := map[string]treeNode{}
			batches := map[string]int{}
			for _, n := range nodes {
				names[n.Name] = n
				if batch, ok := strings.CutPrefix(n.Name, "batch "); ok {
					batches[batch]++
				}
			}
			top := names["top"]
			require.Contains(t, []string{names[moving].ID, names[moved].ID}, top.ParentID)
			below := 0
			for _, n := range nodes {
				if n.Depth > 2 {
					require.Equal(t, []string{top.ParentID, top.ID}, n.Path[1:3])
					below++
				}
			}
			require.Equal(t, crashNodes, below)

			members := map[string]int{}
			for _, m := range storedMembers(t, s, "acme") {
				batch, _, _ := strings.Cut(m.UserID, "-")
				members[batch]++
			}
			for batch := range added {
				require.Equal(t, crashMembers, members[batch], "acknowledged")
			}
			for _, n := range members {
				require.Equal(t, crashMembers, n, "all or nothing")
			}
			for _, n := range batches {
				require.Equal(t, crashMembers, n, "all or nothing")
			}
			require.GreaterOrEqual(t, len(batches), len(added))
			require.LessOrEqual(t, len(batches), len(added)+round+1, "one unacknowledged batch a round at most")
			t.Log("a move takes", moves, "moved", moved, "moving", moving, "is", nodes[top.ParentID].Name, "batches",
				len(added), len(batches), len(members))
		})
	}
}

// TestCrashingProcess is the process that is killed. Run alone it does nothing.
func TestCrashingProcess(t *testing.T) {
	file := os.Getenv(crashFile)
	if file == "" {
		t.Skip("runs as a child of TestCrash")
	}
	s := testkit.Start(t, organization.Spec(), testkit.Options{File: file})
	(&rules{}).answer(t, s.Deps.Bus)
	c := in(s, "acme")
	p := &people{users: map[string]object{}}
	p.answer(t, s.Deps.Bus)
	find := func(name string) object {
		return c.Get("/v1/tree-nodes?object_code=company&name=" + name).Object()["items"].([]any)[0].(object)
	}
	if c.Get("/v1/tree-nodes?object_code=company").Status != 200 {
		addObject(t, c, "company")
		left := addNode(t, c, "company", "", "left")
		addNode(t, c, "company", "", "right")
		plant(t, c, addNode(t, c, "company", id(left), "top"))
	}
	top := find("top")
	sides := []object{find("left"), find("right")}
	if top["parent_id"] == sides[0]["id"] {
		sides[0], sides[1] = sides[1], sides[0]
	}
	for n := 0; ; n++ {
		side := sides[n%2]
		fmt.Println("moving", side["name"])
		c.Patch(node(top), object{"parent_id": side["id"]}).OK(nil)
		fmt.Println("moved", side["name"])

		for range 20 {
			batch := fmt.Sprint(time.Now().UnixNano())
			var users []string
			var nodes []object
			for i := range crashMembers {
				users = append(users, fmt.Sprint(batch, "-", i))
				nodes = append(nodes, object{"name": "batch " + batch, "parent_id": ""})
				p.put(users[i], object{})
			}
			c.Post("/v1/batch/tree-users", object{"node_id": sides[0]["id"], "user_ids": users}).OK(nil)
			c.Post("/v1/batch/tree-nodes", object{"object_code": "company", "items": nodes}).OK(nil)
			fmt.Println("added", batch)
		}
	}
}

// plant puts many nodes below one, ten below each.
func plant(t testing.TB, c *testkit.Client, top object) {
	t.Helper()
	parents := []string{id(top)}
	for planted := 0; planted < crashNodes; {
		n := min(1000, 10*len(parents), crashNodes-planted)
		items := make([]object, n)
		for i := range items {
			items[i] = object{"name": "n", "parent_id": parents[i/10]}
		}
		added := idsOf(c.Post("/v1/batch/tree-nodes", object{"object_code": "company", "items": items}))
		require.Len(t, added, n)
		planted += n
		parents = append(parents[(n+9)/10:], added...)
	}
}
