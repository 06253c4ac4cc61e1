package commands

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// requests are how many requests commands have sent: questions that change nothing, changes that are only tried,
// changes, and those of the state of a set and its lock.
type requests struct{ reads, tries, writes, state int }

// counter stands between a command and the platform, and counts requests.
type counter struct {
	platform *httputil.ReverseProxy
	mu       sync.Mutex
	counted  requests
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1/kv/"):
		c.counted.state++
	case changes(r):
		c.counted.writes++
	case r.URL.Query().Get("dry_run") != "":
		c.counted.tries++
	default:
		c.counted.reads++
	}
	c.mu.Unlock()
	c.platform.ServeHTTP(w, r)
}

// take returns what was counted since the last call.
func (c *counter) take() requests {
	c.mu.Lock()
	defer c.mu.Unlock()
	counted := c.counted
	c.counted = requests{}
	return counted
}

// counted puts a counter between the command line and its platform.
func (p *play) counted(t testing.TB) *counter {
	t.Helper()
	target, err := url.Parse(p.env["IDPCLI_URL"])
	require.NoError(t, err)
	c := &counter{platform: httputil.NewSingleHostReverseProxy(target)}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	p.env["IDPCLI_URL"] = server.URL
	return c
}

// many is a file with an application, its resources of five actions, a tree of nodes, and rules: each node in turn gets
// the next action of the first twenty resources.
func many(nodes, resources, rules int) string {
	var out strings.Builder
	out.WriteString("{kind: Application, name: crm}\n")
	for i := range resources {
		fmt.Fprintf(&out, "---\n{kind: Resource, application: crm, type: data, code: r%d, "+
			"actions: [{code: a0}, {code: a1}, {code: a2}, {code: a3}, {code: a4}]}\n", i)
	}
	out.WriteString("---\nkind: Tree\ncode: company\nname: Acme\nnodes:\n")
	for i := range nodes {
		fmt.Fprintf(&out, "- {code: n%d, name: Node %d}\n", i, i)
	}
	for i := range rules {
		fmt.Fprintf(&out, "---\n{kind: Rule, application: crm, type: data, code: r%d, actions: [a%d], "+
			"identity: {type: node, name: company/n%d}}\n", i/nodes%20, i/nodes/20, i%nodes)
	}
	return out.String()
}

func (p *play) folder(text string) string {
	p.t.Helper()
	folder := p.t.TempDir()
	require.NoError(p.t, os.WriteFile(filepath.Join(folder, "all.yaml"), []byte(text), 0o600))
	return folder
}

// TestRequests counts the requests of diff and apply. Reads come in pages of 200, and what an operation takes several
// of is tried and done together.
func TestRequests(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	c := p.counted(t)
	for _, one := range []struct {
		tenant                  string
		nodes, resources, rules int
		diff, apply, again      requests
	}{
		{"few", 10, 20, 10, requests{10, 3, 0, 1}, requests{10, 3, 2, 7}, requests{8, 0, 0, 1}},
		{"rules", 10, 20, 1000, requests{10, 11, 0, 1}, requests{10, 11, 11, 7}, requests{12, 0, 0, 1}},
		{"nodes", 1000, 20, 0, requests{5, 1, 0, 1}, requests{5, 1, 1, 7}, requests{10, 0, 0, 1}},
		{"resources", 10, 1000, 0, requests{5, 2, 0, 1}, requests{5, 2, 2, 7}, requests{9, 0, 0, 1}},
	} {
		p.inTenant(one.tenant)
		c.take()
		run := func(want int, folder string, args ...string) requests {
			got := p.run(append(args, "-f", folder, "--set", "crm")...)
			require.Equal(t, want, got.code, got.err+got.out)
			return c.take()
		}
		_ = run(0, p.folder(many(1, 20, 0)), "apply", "--yes")
		folder := p.folder(many(one.nodes, one.resources, one.rules))
		assert.Equal(t, one.diff, run(10, folder, "diff"), "%s: diff", one.tenant)
		assert.Equal(t, one.apply, run(0, folder, "apply", "--yes"), "%s: apply", one.tenant)
		assert.Equal(t, one.again, run(0, folder, "diff"), "%s: diff of what is there", one.tenant)
	}
}

// TestApplyCurl prints the calls of an apply, without secrets. Nothing is changed, not even for a moment: the state and
// the lock of a set neither.
func TestApplyCurl(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("curl")
	c := p.counted(t)
	for _, set := range [][]string{nil, {"--set", "all"}} {
		got := p.run(append([]string{"apply", "-f", p.file(allKinds), "--curl", "--yes"}, set...)...)
		require.Equal(t, 0, got.code, got.err+got.out)
		for line := range strings.Lines(got.out) {
			assert.Regexp(t, "^curl -X (POST|PUT) 'http.*/v1/[^?]*' -H ", line)
		}
		assert.Contains(t, got.out, `"application_id":"{id of Application 报销}"`)
		assert.NotContains(t, got.out, "s3cret")
		counted := c.take()
		assert.Zero(t, counted.writes)
		assert.LessOrEqual(t, counted.state, 1, "the state is read")
	}
	assert.Equal(t, "0\n", p.run("api", "list-applications", "--jq", ".items | length").out)
}
