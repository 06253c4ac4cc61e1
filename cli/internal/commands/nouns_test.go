package commands

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// people answers users-exist for the usernames, emails and numbers of three users.
func people(w http.ResponseWriter, body string) {
	known := map[string]string{
		`"username":"li.wei"`: "7", `"email":"li@acme.test"`: "7", `"username":"wang.fang"`: "8", `"id":"7"`: "7",
		`"username":"both"`: "7", `"employee_number":"both"`: "8", `"username":"DESK@acme.test"`: "8",
	}
	var items []string
	for item := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(body, `{"items":[{`), "}]}"), "},{") {
		if strings.EqualFold(item, `"email":"desk@acme.test"`) {
			items = append(items, `{"exists":true,"several":true}`)
		} else if id, ok := known[item]; ok {
			items = append(items, fmt.Sprintf(`{"exists":true,"user_id":%q}`, id))
		} else {
			items = append(items, `{"exists":false}`)
		}
	}
	fmt.Fprintf(w, `{"items":[%s]}`, strings.Join(items, ","))
}

// acme is a platform with some records.
func acme(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch r.Method + " " + r.URL.Path {
	case "POST /v1/batch/users-exist":
		people(w, string(body))
	case "GET /v1/users":
		_, _ = io.WriteString(w,
			`{"items":[{"id":"7","username":"li.wei","display_name":"李伟","status":"1","locked":true`)
		if strings.EqualFold(r.URL.Query().Get("keyword"), "desk@acme.test") {
			_, _ = io.WriteString(w, `,"email":"desk@acme.test"`)
		}
		_, _ = io.WriteString(w, `}]}`)
	case "POST /v1/batch/tree-nodes-check":
		_, _ = io.WriteString(w, `{"company/rd":{"id":"21","object_code":"company","code":"rd"},"company/none":null,
			"21":{"id":"21","object_code":"company","code":"rd"},
			"22":{"id":"22","object_code":"company","code":"sales"},
			"company/sales":{"id":"22","object_code":"company","code":"sales"}}`)
	case "GET /v1/core-objects":
		_, _ = io.WriteString(w, `[{"id":"19","code":"company","name":"Acme","root_node_id":"20","status":"1"}]`)
	case "GET /v1/tree-nodes":
		_, _ = io.WriteString(w, `{"items":[{"id":"21","code":"rd","name":"研发","path":["20","21"]}]}`)
	case "GET /v1/tree-nodes/20/tree", "GET /v1/tree-nodes/21/tree":
		_, _ = io.WriteString(w, `{"code":"company","name":"Acme","status":"1","member_count":2,"children":[
			{"code":"rd","name":"研发","status":"1","member_count":5,"is_dynamic":"1","children":[
				{"code":"x","name":"X","status":"0","child_count":3,"children":[]}]},
			{"code":"sales","name":"销售","status":"1","children":[]}]}`)
	case "GET /v1/applications":
		_, _ = io.WriteString(w, `{"items":[{"id":"30","name":"CRM"},{"id":"31","name":"crm2"},
			{"id":"32","name":"twice"},{"id":"33","name":"Twice"}]}`)
	case "POST /v1/auth-check":
		allowed := strings.Contains(string(body), `"identity_id":"8"`)
		fmt.Fprintf(w, `{"allowed":%t,"affect":"","rule_id":"","via":[],"reason":"no_rule","considered":[{"rule_id":"5",
			"affect":"affect","via":[{"type":"node","id":"21","name":"研发"}],"applies":false,"why":"not a member"}],
			"nearest_miss":{"kind":"membership","text":"li.wei\u001b would have to be in 研发",
			"identity":{"type":"node","id":"21","name":"研发"}}}`, allowed)
	case "GET /v1/auth-check/identities":
		_, _ = io.WriteString(w, `{"items":[{"identity_id":"7","identity_type":"user","identity_name":"li.wei"}]}`)
	case "GET /v1/auth-check/objects":
		_, _ = io.WriteString(w, `{"items":[{"application_id":"30","object_type":"data","object_code":"invoice",
			"object_name":"发票","actions":["read","write"]}]}`)
	case "POST /v1/users/7/invite", "POST /v1/invitations/7/resend", "DELETE /v1/invitations/7":
		_, _ = io.WriteString(w, `{"id":"7","email":"li@acme.test","status":"pending"}`)
	case "POST /v1/users/7/recovery-codes":
		_, _ = io.WriteString(w, `{"codes":["BCDF-GHJK-MN","PQRT-VWXY-34"]}`)
	case "GET /v1/factors":
		_, _ = io.WriteString(w, `{"items":[{"id":"90","type":"otp","name":"Work phone","user_id":"7"}]}`)
	case "DELETE /v1/factors/90", "GET /v1/factors/90":
		_, _ = io.WriteString(w, `{"id":"90"}`)
	case "GET /v1/users/7", "PATCH /v1/users/7", "POST /v1/users/7/resign", "PATCH /v1/tree-nodes/21":
		_, _ = io.WriteString(w, `{"id":"7","username":"li.wei"}`)
	default:
		if body, ok := moreOfAcme[r.Method+" "+r.URL.Path]; ok {
			_, _ = io.WriteString(w, body)
			return
		}
		refuse(w, http.StatusNotFound, "not_found")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	p := newPlay(t, acme)
	for name, code := range map[string]int{
		"li.wei": 0, "li@acme.test": 0, "7": 0, "both": 2, "nobody": 3, "+86138": 3, "desk@acme.test": 2,
	} {
		got := p.run("users", "get", name)
		assert.Equal(t, code, got.code, "%s: %s", name, got.err)
	}
	got := p.run("users", "get", "both")
	assert.Contains(t, got.err, "7  by username")
	assert.Contains(t, got.err, "8  by employee number")
	assert.Contains(t, p.run("users", "get", "nobody").err, "near it: li.wei 李伟")
	assert.Contains(t, p.run("users", "get", "desk@acme.test").err, "7  li.wei 李伟")
	assert.Contains(t, p.run("users", "get", "DESK@acme.test").err, "8  by username\n  7  li.wei 李伟")

	got = p.run("nodes", "get", "company/none")
	assert.Equal(t, 3, got.code)
	assert.Contains(t, got.err, `there is no node "company/none"`)
	assert.NotContains(t, got.err, "near it")
	assert.Contains(t, p.run("nodes", "get", "company/rdd").err, "near it: company/rd\n")
	assert.Contains(t, p.run("check", "li.wei", "read", "crmm:invoice").err, "near it: CRM, crm2\n")
	assert.Equal(t, 2, p.run("nodes", "get", "rd").code)
	assert.Equal(t, 3, p.run("check", "li.wei", "read", "nothing:invoice").code)
	assert.Equal(t, 2, p.run("check", "li.wei", "read", "crm:").code)
	got = p.run("check", "li.wei", "read", "twice:invoice")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "32  twice")
}

func TestUsers(t *testing.T) {
	t.Parallel()
	p := newPlay(t, acme)
	got := p.run("users", "list", "--keyword", "li")
	assert.Equal(t, "ID  USERNAME  DISPLAY NAME  EMAIL  MOBILE  STATUS\n"+
		"7   li.wei    李伟                         locked\n", got.out)
	require.Equal(t, 0, p.run("users", "resign", "li.wei", "--successor", "wang.fang", "--reason", "away").code)
	assert.Equal(t, "/v1/users/7/resign", p.last().target)
	assert.JSONEq(t, `{"successor_id":"8","reason":"away"}`, p.last().body)
	assert.Equal(t, 3, p.run("users", "resign", "li.wei", "--successor", "nobody").code)
	require.Equal(t, 0, p.run("users", "update", "li.wei", "-F", "mobile=null", "--if-version", "3").code)
	assert.JSONEq(t, `{"mobile":null}`, p.last().body)
	assert.Equal(t, `"3"`, p.last().header.Get("If-Match"))

	got = p.run("users", "invite", "li.wei", "--application", "crm", "--expires-hours", "48", "-o", "name")
	assert.Equal(t, "li@acme.test\n", got.out, got.err)
	assert.JSONEq(t, `{"application_id":"30","expires_hours":48}`, p.last().body)
	require.Equal(t, 0, p.run("users", "invite", "li@acme.test").code)
	require.Equal(t, 0, p.run("invitations", "resend", "li.wei").code)
	assert.Equal(t, "/v1/invitations/7/resend", p.last().target)
	assert.Equal(t, 2, p.run("invitations", "revoke", "li.wei").code, "--yes is needed")
	require.Equal(t, 0, p.run("invitations", "revoke", "li.wei", "--yes").code)
	assert.Equal(t, "/v1/invitations/7", p.last().target)
}

func TestFactors(t *testing.T) {
	t.Parallel()
	p := newPlay(t, acme)
	got := p.run("factors", "list", "--user", "li.wei")
	assert.Contains(t, got.out, "Work phone", got.err)
	assert.Contains(t, p.last().target, "user_id=7")
	assert.Equal(t, 2, p.run("factors", "delete", "90").code, "--yes is needed")
	require.Equal(t, 0, p.run("factors", "delete", "90", "--yes").code)
	assert.Equal(t, "/v1/factors/90", p.last().target)
	got = p.run("factors", "recovery-codes", "li.wei")
	assert.Contains(t, got.out, "BCDF-GHJK-MN", got.err)
	assert.Contains(t, got.out, "PQRT-VWXY-34")
}

func TestNodes(t *testing.T) {
	t.Parallel()
	p := newPlay(t, acme)
	got := p.run("nodes", "tree", "company", "--depth", "2")
	assert.Equal(t, `Acme  company (2)
├── 研发  rd (5, dynamic)
│   └── X  x (0, disabled, 3 below)
└── 销售  sales (0)
`, got.out)
	assert.Equal(t, "/v1/tree-nodes/20/tree?depth=2", p.last().target)
	require.Equal(t, 0, p.run("nodes", "tree", "company/rd", "-o", "json").code)
	require.Equal(t, 0, p.run("nodes", "move", "company/rd", "--to", "company/sales").code)
	assert.JSONEq(t, `{"parent_id":"22"}`, p.last().body)
	require.Equal(t, 0, p.run("nodes", "move", "company/rd", "--to", "company").code)
	assert.JSONEq(t, `{"parent_id":""}`, p.last().body)
	assert.Equal(t, 2, p.run("nodes", "move", "company/rd").code)
	got = p.run("nodes", "move", "company/rd", "--to", "sales")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "such as company/sales")
	got = p.run("nodes", "create", "company/rd/platform")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "idp nodes create company/platform --under company/rd")
	require.Equal(t, 0, p.run("nodes", "create", "company/rd/platform", "--under", "company/rd", "--dry-run").code)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	p := newPlay(t, acme)
	got := p.run("check", "li.wei", "read", "crm:invoice", "--explain")
	assert.Equal(t, 10, got.code)
	assert.Equal(t, `no: no rule
  rule 5 (allows), through node 研发: does not apply: not a member
  nearest: li.wei  would have to be in 研发
  idp members add company/rd li.wei
`, got.out)
	asked := p.asked()[2]
	assert.Equal(t, "/v1/auth-check?explain=true", asked.target)
	assert.JSONEq(t, `{"identity_id":"7","identity_type":"user","application_id":"30","object_type":"data",
		"object_code":"invoice","action":"read"}`, asked.body)
	assert.Equal(t, 0, p.run("check", "wang.fang", "read", "crm:invoice").code)
	assert.Contains(t, p.run("check", "wang.fang", "read", "crm:invoice", "-o", "json").out, `"allowed": true`)

	got = p.run("check", "who", "read", "crm:invoice", "-o", "name")
	assert.Equal(t, "li.wei\n", got.out)
	assert.Contains(t, p.last().target, "application_id=30")
	got = p.run("check", "what", "li.wei", "--app", "crm")
	assert.Contains(t, got.out, "read, write")
	require.Equal(t, 0, p.run("check", "what", "li.wei", "--app", "crm", "-o", "json").code)
	assert.Contains(t, p.last().target, "object_type=data")
	got = p.run("check", "what", "li.wei", "--type", "data")
	require.Equal(t, 0, got.code, got.err)
	assert.Equal(t, 1, strings.Count(got.out, "read, write"), got.out)
	var about []string
	for _, a := range p.asked() {
		if query, ok := strings.CutPrefix(a.target, "/v1/auth-check/objects?"); ok {
			values, err := url.ParseQuery(query)
			require.NoError(t, err)
			about = append(about, values.Get("application_id")+" "+values.Get("object_type"))
		}
	}
	assert.Equal(t, []string{" app", "30 data"}, about[:2])
	require.Equal(t, 0, p.run("check", "what", "li.wei", "--curl").code)
}

func TestLists(t *testing.T) {
	t.Parallel()
	p := newPlay(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("page_token") == "p2" {
			_, _ = io.WriteString(w, `{"items":[{"id":"2"}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"items":[{"id":"1"}],"total":2,"total_relation":"gte","next_page_token":"p2"}`)
	})
	got := p.run("users", "list", "-o", "name")
	assert.Equal(t, "1\n", got.out)
	assert.Equal(t, "1 of 2 or more shown; --all shows the rest\n", got.err)
	assert.Equal(t, "/v1/users?page_size=200", p.last().target)
	for format, want := range map[string]string{
		"name": "1\n2\n", "jsonl": "{\"id\":\"1\"}\n{\"id\":\"2\"}\n", "csv": "id\n1\n2\n",
		"json": "{\"items\": [\n  {\"id\":\"1\"},\n  {\"id\":\"2\"}\n]}\n", "yaml": "- id: \"1\"\n- id: \"2\"\n",
	} {
		got = p.run("users", "list", "--all", "-o", format)
		assert.Equal(t, want, got.out, format)
		assert.Empty(t, got.err)
	}
	for filter, want := range map[string][2]string{
		".items[].id": {"1\n", "1\n2\n"}, ".items | length": {"1\n", "2\n"}, ".total": {"2\n", "2\n"},
	} {
		assert.Equal(t, want[0], p.run("users", "list", "--jq", filter).out, filter)
		got = p.run("users", "list", "--all", "--jq", filter)
		assert.Equal(t, want[1], got.out, filter)
		assert.Empty(t, got.err)
	}
	assert.Equal(t, 2, p.run("users", "list", "--all", "--page-num", "2", "--jq", ".").code)
	p.terminal = true
	require.Equal(t, 0, p.run("users", "list").code)
	assert.Equal(t, "/v1/users?page_size=50", p.last().target)
	assert.Equal(t, 2, p.run("users", "list", "--all", "--page-num", "2").code)
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	p := newPlay(t, acme)
	got := p.run("__complete", "users", "get", "li")
	require.Equal(t, 0, got.code, got.err)
	assert.Contains(t, got.out, "li.wei\t李伟\n")
	assert.Len(t, p.asked(), 1)
	assert.Contains(t, p.run("__complete", "users", "get", "li").out, "li.wei")
	assert.Empty(t, p.asked(), "for half a minute it is remembered")
	assert.Contains(t, p.run("__complete", "api", "list-us").out, "list-users")
	assert.Contains(t, p.run("__complete", "users", "list", "--status", "").out, "resigned")
	p.env = nil
	got = p.run("__complete", "users", "get", "li")
	assert.Equal(t, 0, got.code, "nothing to complete is no fault")
	assert.NotContains(t, got.out, "li.wei")
}
