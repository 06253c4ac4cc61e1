package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// moreOfAcme are answers of the platform of acme that do not depend on the request.
var moreOfAcme = answers{
	"GET /v1/tree-users": `[{"id":"51","node_id":"21","object_code":"company","is_primary":"1","role":"lead","version":2},
		{"id":"52","node_id":"22","object_code":"company","is_primary":"0","role":"member","dynamic":true}]`,
	"GET /v1/tree-nodes/21/users":          `{"items":[{"id":"51","user_id":"7","node_id":"21","is_primary":"1","role":"lead"}]}`,
	"POST /v1/batch/tree-users":            `{"items":[{"id":"51","user_id":"7","node_id":"21","role":"lead"}]}`,
	"DELETE /v1/tree-users/51":             `{"id":"51"}`,
	"PATCH /v1/tree-users/51":              `{"id":"51"}`,
	"POST /v1/users/7/change-organization": `{"memberships":[{"id":"53","node_id":"22","is_primary":"1","role":"member"}]}`,
	"GET /v1/auth-units":                   `{"items":[{"id":"61","identity_type":"group","identity_id":"auditors","rule_count":1}]}`,
	"GET /v1/auth-units/61/members":        `{"items":[{"id":"62","user_id":"7"}]}`,
	"POST /v1/auth-units/61/members":       `{"items":[{"id":"62","user_id":"7"}]}`,
	"DELETE /v1/auth-units/61/members":     `{"removed":1}`,
	"POST /v1/tree-nodes":                  `{"id":"23","code":"platform"}`,
	"DELETE /v1/tree-nodes/21":             `{"id":"21"}`,
	"GET /v1/tree-associations":            `{"items":[{"id":"71","source_node_id":"21","target_node_id":"22","type":"supports"}]}`,
	"POST /v1/tree-associations":           `{"id":"71"}`,
	"DELETE /v1/tree-associations/71":      `{"id":"71"}`,
	"POST /v1/core-objects":                `{"id":"19","code":"lab"}`,
	"GET /v1/core-objects/19":              `[{"id":"19","code":"company","name":"Acme","status":"0"}]`,
}

// step is a command, what it asks for last, and what it leaves.
type step struct {
	command string // words
	code    int
	request string // method and target
	body    string // JSON
	out     string // is contained
	err     string // is contained
}

// play runs commands one after another.
func (p *play) play(steps []step) {
	p.t.Helper()
	for _, s := range steps {
		got := p.run(wordsOf(s.command)...)
		require.Equal(p.t, s.code, got.code, "%s: %s%s", s.command, got.out, got.err)
		assert.Contains(p.t, got.out, s.out, s.command)
		assert.Contains(p.t, got.err, s.err, s.command)
		if s.request != "" {
			assert.Equal(p.t, s.request, p.last().method+" "+p.last().target, s.command)
		}
		if s.body != "" {
			assert.JSONEq(p.t, s.body, p.last().body, s.command)
		}
	}
}

func TestOrganization(t *testing.T) {
	t.Parallel()
	newPlay(t, acme).play([]step{
		{command: "orgs list", out: "19  company  Acme"},
		{command: "orgs get company", request: "GET /v1/core-objects/19?code=company", out: "disabled"},
		{command: "orgs get compan", code: 3, err: "near it: company"},
		{command: "orgs create lab", request: "POST /v1/core-objects", body: `{"code":"lab","name":"lab"}`},
		{command: "nodes list company", request: "GET /v1/tree-nodes?object_code=company&page_size=200"},
		{command: "nodes list company/rd",
			request: "GET /v1/tree-nodes?object_code=company&page_size=200&parent_id=21"},
		{command: "nodes create company/platform --under company/rd --tag t", request: "POST /v1/tree-nodes",
			body: `{"object_code":"company","code":"platform","name":"platform","parent_id":"21","tag":"t"}`},
		{command: "nodes create company/platform --under company", body: `{"object_code":"company","code":"platform",
			"name":"platform","parent_id":"20"}`},
		{command: "nodes create platform", code: 2, err: "such as company/rd"},
		{command: "nodes delete company/rd", code: 2, err: "--yes is needed"},
		{command: "nodes delete company/rd --yes", request: "DELETE /v1/tree-nodes/21?object_code=company"},
		{command: "nodes links company/rd", out: "71  company/rd  supports  company/sales"},
		{command: "nodes link company/rd --to company/sales", body: `{"source_node_id":"21","target_node_id":"22"}`},
		{command: "nodes link company/rd", code: 2, err: "--to is needed"},
		{command: "nodes unlink company/rd --from company/sales --yes", request: "DELETE /v1/tree-associations/71"},
	})
}

func TestMemberships(t *testing.T) {
	t.Parallel()
	newPlay(t, acme).play([]step{
		{command: "members list company/rd", out: "li.wei  李伟          company/rd  lead         yes\n"},
		{command: "members list company/rd -o name", out: "7\n", request: "GET /v1/tree-nodes/21/users?page_size=200"},
		{command: "members list group:auditors", out: "li.wei  李伟\n"},
		{command: "members list group:auditors --role lead", code: 2, err: "--role is for nodes"},
		{command: "members list group:auditor", code: 3, err: "near it: auditors"},
		{command: "members of li.wei", out: "company/rd"},
		{command: "members add company/rd li.wei wang.fang --role lead --primary -o json",
			request: "POST /v1/batch/tree-users", body: `{"items":[
				{"user_id":"7","node_id":"21","role":"lead","is_primary":"1"},
				{"user_id":"8","node_id":"21","role":"lead","is_primary":"1"}]}`},
		{command: "members add company/rd", code: 2, err: "idp members add NODE|group:NAME USER..."},
		{command: "members add company/rd nobody", code: 3, err: "near it: li.wei"},
		{command: "members add group:auditors li.wei -o name", body: `{"user_ids":["7"]}`, out: "7\n"},
		{command: "members update company/rd li.wei --title x --if-version 2", request: "PATCH /v1/tree-users/51",
			body: `{"title":"x"}`},
		{command: "members update company/sales li.wei --title x", code: 2, err: "by the node's condition"},
		{command: "members move li.wei --to company/sales", out: "company/sales",
			request: "POST /v1/batch/tree-nodes-check"},
		{command: "members move li.wei --to company/sales -o json", request: "POST /v1/users/7/change-organization",
			body: `{"from_node_id":"21","object_code":"company","to_node_id":"22"}`},
		{command: "members move li.wei", code: 2, err: "--to is needed"},
		{command: "members remove company li.wei --yes", code: 3, err: "not a member"},
		{command: "members remove company/rd li.wei", code: 2, err: "--yes is needed"},
		{command: "members remove company/rd li.wei --yes", request: "DELETE /v1/tree-users/51"},
		{command: "members remove group:auditors li.wei --yes", body: `{"user_ids":["7"]}`, out: "removed  1"},
	})
}

// TestOrganizationStory builds a company by hand, on the real platform.
func TestOrganizationStory(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	p.play([]step{
		{command: "users create wang.fang -o name", out: "wang.fang"},
		{command: "orgs create company --name Acme -o name", out: "company"},
		{command: "orgs create project -o name", out: "project"},
		{command: "orgs create company", code: 5, err: "already_exists"},
		{command: "orgs update company --description 总公司 --if-version 9", code: 6},
		{command: "orgs update company --description 总公司 --dry-run", out: "+ description: 总公司\n"},
		{command: "orgs update company --description 总公司"},
		{command: "nodes create company/rd --name 研发中心"},
		{command: "nodes create company/platform --under company/rd --dry-run", out: "+ code: platform\n"},
		{command: "nodes create company/platform --name 平台组 --under company/rd"},
		{command: "nodes create company/rd", code: 5, err: "already_exists"},
		{command: "nodes create project/apollo"},
		{command: "nodes list company/rd -o name", out: "platform\n"},
		{command: "nodes list companie", code: 3, err: "near it: company"},
		{command: "nodes link project/apollo --to company/rd --type supports"},
		{command: "nodes links company/rd", out: "project/apollo  supports  company/rd"},
		{command: "nodes unlink project/apollo --from company/rd --dry-run", out: "- type: supports\n"},
		{command: "nodes unlink project/apollo --from company/rd --yes"},
		{command: "nodes links company/rd -o name"},
		{command: "nodes disable company/rd --recursive"},
		{command: "nodes list company", out: "disabled"},
		{command: "nodes enable company/rd --recursive"},
		{command: "members add company/rd li.wei wang.fang --role lead --title 架构师"},
		{command: "members add company/platform li.wei --dry-run", out: "平台组"},
		{command: "members list company --recursive", out: "wang.fang"},
		{command: "members list company/rd --role lead --keyword 架", out: ""},
		{command: "members of li.wei", out: "company/rd  Acme, 研发中心  lead  架构师  yes"},
		{command: "members move li.wei --to company/platform --dry-run"},
		{command: "members move li.wei --to company/platform", out: "company/platform"},
		{command: "members of li.wei -o jsonl --jq length", out: "1\n"},
		{command: "members update company/platform li.wei --role member --dry-run", out: "+ role: member\n"},
		{command: "members remove company/platform li.wei --dry-run", out: "- role:"},
		{command: "members remove company/platform li.wei --yes"},
		{command: "members remove company/platform li.wei --yes", code: 3, err: "not a member"},
		{command: "members move li.wei --to company/rd", code: 3, err: "no primary node"},
		{command: "groups create auditors --description audits"},
		{command: "groups list", out: "auditors  audits"},
		{command: "members add group:auditors li.wei", out: "li.wei"},
		{command: "members list group:auditors", out: "li.wei"},
		{command: "members remove group:auditors li.wei --yes", out: "removed  1"},
		{command: "groups delete auditors --yes"},
		{command: "groups delete auditors --yes", code: 3},
		{command: "orgs delete company --yes", code: 5, err: "has_children"},
		{command: "nodes delete company/platform --dry-run", out: "- code: platform\n"},
		{command: "nodes delete company/platform --yes"},
		{command: "nodes delete company/platform --yes", code: 3},
		{command: "nodes delete project/apollo --yes"},
		{command: "orgs delete project --yes"},
		{command: "orgs list -o name", out: "company\n"},
	})
}
