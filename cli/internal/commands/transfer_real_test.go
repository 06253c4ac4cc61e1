package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// transferred are all kinds, in an order in which what they need comes before.
var transferred = []string{"users", "nodes", "members", "accounts", "grants", "kv"}

// files has something of every kind, with what is easily lost: formulas, quotation marks, large integers, empty texts.
var files = map[string]string{
	"users.csv": "username,display_name,email,status,email_verified,free_ext_props.team,sys_ext_props\n" +
		"li.wei,李伟,li.wei@acme.test,1,true,=1+1," +
		"\"{\"\"big\"\":12345678901234567890,\"\"a\"\":[1,{\"\"b\"\":null}]}\"\n" +
		"wang.fang,\"Wang \"\"F\"\" \",,0,false,\"@SUM(A1)\",\n" +
		"o'hara,\"O, Hara\",o.hara@acme.test,,,<b>&,{}\n",
	"nodes.jsonl": `{"tree":"company","ref":"rd","name":"研发","tag":"x","free_ext_props":{"big":12345678901234567890}}
{"tree":"company","ref":"link","name":"Link","pointer":"company/deep"}
{"tree":"company","ref":"platform","parent_ref":"rd","name":"Platform","seq":2,"status":"0"}
{"tree":"company","ref":"deep","parent_ref":"platform","name":"Deep"}
{"tree":"company","ref":"on","name":"On","is_dynamic":"1","condition":"user.status == \"1\""}
{"tree":"projects","ref":"p1","name":"One","description":"a, \"b\""}
`,
	"members.csv": "node,user,role,title,seq,is_primary\n" +
		"company/rd,li.wei,leader,架构师,,\ncompany/rd,wang.fang,,,7,\ncompany/platform,li.wei@acme.test,,,,1\n" +
		"projects/p1,o'hara,,,,\n",
	"accounts.csv": "application,user,account,display_name,is_default,password,free_ext_props\n" +
		"crm,li.wei,liwei,李伟,,s3cret,\ncrm,li.wei,liwei2,,1,,\"{\"\"k\"\":1}\"\n报销,wang.fang,wf,,,,\n",
	"grants.csv": "to,object,type,actions,affect,condition,valid_to,resource_application\n" +
		"user:li.wei,crm:invoice,data,\"read,write\",,,,\nnode:company/rd,crm:invoice,data,read,,,,\n" +
		"everyone,crm,app,*,,,,\nwang.fang,crm:invoice,data,read,,,,\n" +
		"core_object:company,crm:invoice,data,read,deny,context.hour > 8,2099-01-31T00:00:00Z,\n" +
		"application:报销,crm:invoice,data,read,,,,\nnode:company/platform,报销:invoice,data,read,,,,crm\n" +
		"group:auditors,crm:invoice,data,read,,,,\nuser:li.wei,crm:all,res_set,read,,,,\n" +
		`everyone,a\:b\\c /d,app,*,,,,` + "\n" + `app:a:b\c /d,a\:b\\c /d:invoice,data,read,,,,` + "\n" +
		`user:li.wei,a\:b\\c /d:invoice,data,read,,,,crm` + "\n",
	"kv.jsonl": `{"bucket":"settings","key":"console/theme","value":{"dark":true,"big":12345678901234567890}}
{"bucket":"settings","key":"=cmd()","value":null,"content_type":"text/plain"}
{"bucket":"a","key":"x","value":""}
`,
}

// fileOf writes one of files and returns its path.
func fileOf(t testing.TB, kind string) string {
	t.Helper()
	for name, content := range files {
		if strings.HasPrefix(name, kind+".") {
			path := filepath.Join(t.TempDir(), name)
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			return path
		}
	}
	t.Fatal(kind)
	return ""
}

func (p *play) done(args ...string) ended {
	p.t.Helper()
	got := p.run(args...)
	require.Equal(p.t, 0, got.code, "%v: %s%s", args, got.out, got.err)
	return got
}

// frame makes what imports need in a tenant: trees, applications, resources.
func (p *play) frame() {
	p.t.Helper()
	for _, code := range []string{"company", "projects"} {
		p.done("api", "create-core-object", "--code", code, "--name", code, "--create-tenant")
	}
	for _, name := range []string{"crm", "报销", `a:b\c /d`} {
		id := strings.TrimSpace(p.done("api", "create-application", "--name", name, "--jq", ".id").out)
		p.done("api", "enable-multi-accounts", id)
		resource := strings.TrimSpace(p.done("api", "create-resource", "--application-id", id, "--type", "data",
			"--code", "invoice", "--is-global", "1", "--actions", `[{"code":"read"},{"code":"write"}]`,
			"--jq", ".id").out)
		p.done("api", "create-resource-set", "--application-id", id, "--code", "all", "--name", "All",
			"--data", fmt.Sprintf(`{"description":%q}`, resource))
	}
	p.done("api", "create-auth-unit", "--identity-type", "group", "--identity-id", "auditors")
}

// TestTransferRoundTrip imports files of every kind, exports them, imports what was exported into another tenant, and
// exports that: the same bytes.
func TestTransferRoundTrip(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.frame()
	for _, kind := range transferred {
		got := p.done(kind, "import", fileOf(t, kind), "--jq", ".failed")
		require.Equal(t, "0\n", got.out)
	}
	p.importAgain()
	for _, format := range []string{"csv", "jsonl"} {
		p.env["IDPCLI_TENANT"] = "acme"
		folder := t.TempDir()
		for _, kind := range transferred {
			p.done(kind, "export", filepath.Join(folder, kind+"."+format))
		}
		p.env["IDPCLI_TENANT"] = "globex-" + format
		p.frame()
		for _, kind := range transferred {
			exported := filepath.Join(folder, kind+"."+format)
			want, err := os.ReadFile(exported)
			require.NoError(t, err)
			require.NotEmpty(t, want)
			p.done(kind, "import", exported, "--dry-run")
			p.done(kind, "import", exported)
			again := p.done(kind, "export", "-o", format)
			require.Equal(t, string(want), again.out, kind)
			require.NoFileExists(t, exported+".progress")
		}
	}
}

// importAgain imports what is there already: it is left out, or fails, or is written again.
func (p *play) importAgain() {
	p.t.Helper()
	before := map[string]string{}
	for _, kind := range transferred {
		before[kind] = p.done(kind, "export").out
	}
	for _, kind := range transferred {
		file := fileOf(p.t, kind)
		if kind == "grants" {
			require.Equal(p.t, "0\n", p.done(kind, "import", file, "--jq", ".failed").out)
			continue
		}
		got := p.done(kind, "import", file, "--on-conflict", "skip", "--jq", ".lines - .skipped")
		require.Equal(p.t, "0\n", got.out, kind)
		got = p.run(kind, "import", file, "--jq", ".lines - .failed")
		require.Equal(p.t, 9, got.code, kind)
		require.Equal(p.t, "0\n", got.out, "%s: %s", kind, got.err)
		got = p.run(kind, "import", file, "--dry-run", "--jq", ".lines - .failed")
		require.Equal(p.t, 9, got.code, kind)
		require.Equal(p.t, "0\n", got.out, "%s: %s", kind, got.err)
	}
	for _, kind := range transferred {
		require.Equal(p.t, before[kind], p.done(kind, "export").out, kind)
	}
	for _, kind := range []string{"users", "nodes", "members", "accounts", "kv"} {
		require.Equal(p.t, "0\n", p.done(kind, "import", fileOf(p.t, kind), "--on-conflict", "update", "--dry-run",
			"--jq", ".lines - .updated").out, kind)
		got := p.done(kind, "import", fileOf(p.t, kind), "--on-conflict", "update", "--jq", ".lines - .updated")
		require.Equal(p.t, "0\n", got.out, kind)
		require.Equal(p.t, before[kind], p.done(kind, "export").out, kind)
	}
	got := p.run("grants", "import", fileOf(p.t, "grants"), "--on-conflict", "update")
	require.Equal(p.t, 2, got.code)
	require.Contains(p.t, got.err, "There is no update: grants have no names")
}

// faultyRecords are files with records that cannot be sent or are refused, and lines of the file of failures.
var faultyRecords = []struct {
	kind, content string
	want          []string // of the file of failures
}{
	{"nodes", `tree,ref,parent_ref,name,seq,pointer
company,a,,A,1,
none,b,,B,,
company,a,,Again,,
company,c,missing,C,,
company,d,c,D,,
company,e,a,E,x,
company,f,,F,,company/nobody
company,g,e,G,,
company,p,,P,,company/a
company,h,a,H,,
`, []string{
		`"tree: there is no tree ""none""",none,b,,B,,`,
		`"ref: is the ref of another item, too",company,a,,Again,,`,
		`"parent_ref: there is no node ""company/missing"" before it",company,c,missing,C,,`,
		`"parent_ref: there is no node ""company/c"" before it",company,d,c,D,,`,
		`seq: expected integer,company,e,a,E,x,`,
		`"pointer: there is no node ""company/nobody"" before it",company,f,,F,,company/nobody`,
		`"parent_ref: there is no node ""company/e"" before it",company,g,e,G,,`,
	}},
	{"members", `node,user,role
company/a,li.wei,
company/zzz,nobody,
company/a,wang.fang,!
company/a,li.wei,
company/a,o'hara,
`, []string{
		`"there is no node ""company/zzz""; there is no user ""nobody""",company/zzz,nobody,`,
		`user_id: is given twice,company/a,li.wei,`, `,company/a,wang.fang,!`,
	}},
	{"accounts", `application,user,account
crm,li.wei,one
none,li.wei,two
crm,nobody,three
crm,wang.fang,ONE
报销,li.wei,four
crm,wang.fang,
`, []string{
		`"there is no application ""none""",none,li.wei,two`, `"there is no user ""nobody""",crm,nobody,three`,
		`,crm,wang.fang,ONE`, `,crm,wang.fang,`,
	}},
	{"grants", `to,object,type,actions,condition
user:li.wei,crm:invoice,data,read,
user:nobody,crm:invoice,data,read,
dept:li.wei,crm:invoice,data,read,
user:li.wei,none:invoice,data,read,
user:li.wei,crm:none,data,read,
user:li.wei,crm:invoice,data,fly,
user:li.wei,crm:invoice,data,read,((
everyone,crm,app,*,
`, []string{
		`"there is no user ""nobody""",user:nobody,crm:invoice,data,read,`,
		`"there is no application ""none""",user:li.wei,none:invoice,data,read,`,
		`,user:li.wei,crm:none,data,read,`, `,user:li.wei,crm:invoice,data,fly,`,
		`,user:li.wei,crm:invoice,data,read,((`, `,dept:li.wei,crm:invoice,data,read,`,
	}},
	{"kv", `bucket,key,value
s,a,1
s,b,{
s,,1
!,c,1
s,d,
s,e,2
`, []string{
		`value: is not JSON,s,b,{`, `key: is missing,s,,1`, `,!,c,1`, `,s,d,`,
	}},
}

// TestImportFaultsOfRecords checks what is said of records that cannot be sent, or that the platform refuses, and that
// all others are imported.
func TestImportFaultsOfRecords(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.frame()
	p.done("users", "import", fileOf(t, "users"))
	for _, c := range faultyRecords {
		path := writeFile(t, c.kind+".csv", c.content)
		got := p.run(c.kind, "import", path, "--jq", ".created")
		require.Equal(t, 9, got.code, "%s: %s", c.kind, got.err)
		content, err := os.ReadFile(strings.TrimSuffix(path, ".csv") + ".failed.csv")
		require.NoError(t, err)
		t.Logf("%s: %s%s", c.kind, got.out, content)
		for _, want := range c.want {
			require.Contains(t, string(content), want+"\n", c.kind)
		}
	}
	require.Len(t, p.exported("nodes", "ref"), 3)
	require.Len(t, p.exported("members", "user"), 2)
	require.Len(t, p.exported("accounts", "user"), 2)
	require.Len(t, p.exported("grants", "to"), 2)
	require.Equal(t, []string{"a", "e"}, p.exported("kv", "key"))
}
