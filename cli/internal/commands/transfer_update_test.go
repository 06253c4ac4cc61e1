package commands

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// updates are files that make records and files that change them, what is there afterwards, and what fails and why.
var updates = []struct {
	kind, first, second string
	members             []string
	want, failed        []string
}{
	{"nodes", "tree,ref,parent_ref,name,tag\ncompany,a,,A,x\ncompany,b,,B,x\ncompany,c,b,C,x\n",
		"tree,ref,parent_ref,name,tag\ncompany,new,,New,\ncompany,c,new,C2,\ncompany,b,,,y\ncompany,a,none,A2,\n" +
			"company,b,c,,\ncompany,c,b,C3,\n",
		[]string{"ref", "parent_ref", "name", "tag"},
		[]string{"a <nil> A x", "new <nil> New <nil>", "b c B y", "c new C2 x"},
		[]string{`parent_ref: there is no node ""company/none"" before it`, "company,c,b,C3,"}},
	{"members", "node,user,role,title\ncompany/a,li.wei,member,one\ncompany/a,wang.fang,member,two\n",
		"node,user,role,title\ncompany/a,wang.fang,leader,\ncompany/b,li.wei,member,new\ncompany/a,li.wei,!,\n",
		[]string{"node", "user", "role", "title"},
		[]string{"company/a li.wei member one", "company/a wang.fang leader two", "company/b li.wei member new"},
		[]string{"company/a,li.wei,!,"}},
	{"accounts", "application,user,account,display_name,status\none,li.wei,liwei,Li,1\none,wang.fang,wf,Wang,1\n",
		"application,user,account,display_name,status\none,li.wei,LIWEI,李,0\none,li.wei,wf,,\n" +
			"one,o'hara,oh,O,\none,o'hara,other,,\n",
		[]string{"user", "account", "display_name", "status"},
		[]string{"li.wei LIWEI 李 0", "wang.fang wf Wang <nil>", "o'hara oh O <nil>"},
		[]string{`user_id: can't be changed`, `user: has another sub-account`}},
}

// TestImportUpdates checks that --on-conflict update changes what is there, leaves what the file does not have as it
// is, makes what is new, and survives kills at each step.
func TestImportUpdates(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.frame()
	p.done("apps", "create", "one")
	p.done("users", "import", fileOf(t, "users"))
	for _, c := range updates {
		p.done(c.kind, "import", writeFile(t, c.kind+".csv", c.first))
		path := writeFile(t, c.kind+".csv", c.second)
		k := p.killedBy(everyStep)
		got := p.until(k, c.kind, "import", path, "--on-conflict", "update", "-o", "json")
		require.Equal(t, 9, got.code, "%s: %s", c.kind, got.err)
		t.Logf("%s, %d kills: %s", c.kind, k.kills, got.out)
		lines := strings.Count(c.second, "\n") - 1
		assert.Contains(t, got.out, fmt.Sprintf(`"failed": %d`, len(c.failed)))
		assert.Contains(t, got.out, fmt.Sprintf(`"updated": %d`, lines-1-len(c.failed)))
		assert.ElementsMatch(t, c.want, p.exported(c.kind, c.members...))
		content, err := os.ReadFile(strings.TrimSuffix(path, ".csv") + ".failed.csv")
		require.NoError(t, err)
		for _, want := range c.failed {
			assert.Contains(t, string(content), want)
		}
	}
}

// TestConflictsInBatches checks that the sub-accounts of users who have one already cost no request each.
func TestConflictsInBatches(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.done("apps", "create", "one")
	users, first := []string{"username"}, []string{"application,user,account"}
	second := first
	for i := range 300 {
		users = append(users, fmt.Sprintf("user%d", i))
		second = append(second, fmt.Sprintf("one,user%d,other%d", i, i))
		if i%2 == 0 {
			first = append(first, fmt.Sprintf("one,user%d,first%d", i, i))
		}
	}
	second = append(second, "one,user1,third1") // of whom the line before makes one
	file := func(name string, lines []string) string { return writeFile(t, name, strings.Join(lines, "\n")) }
	p.done("users", "import", file("users.csv", users))
	p.done("accounts", "import", file("first.csv", first))
	sent := 0
	proxy := httptest.NewServer(p.killedBy(func(k *killer, w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/batch/") {
			sent++
		}
		k.platform.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	p.env["IDPCLI_URL"] = proxy.URL
	path := file("second.csv", second)
	got := p.run("accounts", "import", path, "--jq", ".created, .failed")
	require.Equal(t, 9, got.code, got.err)
	assert.Equal(t, "150\n151\n", got.out)
	assert.Equal(t, 1, sent)
	got = p.done("accounts", "import", filepath.Join(filepath.Dir(path), "second.failed.csv"), "--on-conflict", "skip",
		"--jq", ".skipped")
	assert.Equal(t, "151\n", got.out)
	assert.Equal(t, 1, sent)
}
