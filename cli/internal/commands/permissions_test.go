package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// granting is a platform with an application that has resources, a set and rules.
func granting(t *testing.T) *play {
	t.Helper()
	all := answers{
		"GET /v1/applications":    `{"items":[{"id":"30","name":"crm"}]}`,
		"GET /v1/applications/30": `{"id":"30","name":"crm"}`,
		"GET /v1/resources": `{"items":[{"id":"31","type":"data","code":"invoice","actions":[{"code":"read","description":"See"}]},
			{"id":"32","type":"api","code":"orders"},{"id":"33","type":"data","code":"orders"}]}`,
		"POST /v1/resources": `{"id":"34"}`, "PATCH /v1/resources/31": `{"id":"31"}`,
		"GET /v1/resources/31": `{"id":"31","type":"data","code":"invoice"}`, "DELETE /v1/resources/31": `{"id":"31"}`,
		"GET /v1/resource-sets":  `{"items":[{"id":"41","code":"finance","name":"F","is_global":"0","version":3}]}`,
		"POST /v1/resource-sets": `{"id":"41"}`, "PUT /v1/resource-sets/41": `{}`,
		"GET /v1/resource-sets/41": `{"id":"41","code":"finance","name":"F","is_global":"0","version":3}`,
		"GET /v1/resource-sets/41/members": `{"items":[{"id":"42","resource_id":"31","resource_type":"data",
			"resource_code":"invoice","actions":["*"]}]}`,
		"POST /v1/resource-sets/41/members":      `{"items":[{"id":"42","resource_code":"invoice"}]}`,
		"DELETE /v1/resource-sets/41/members/42": `{"id":"42"}`,
		"GET /v1/auth-rules": `{"items":[{"id":"5","auth_unit_id":"61","application_id":"30","type":"data","code":"invoice",
			"actions":["read"],"affect":"deny","condition":"true","valid_to":"2026-12-31T00:00:00.000Z"}]}`,
		"GET /v1/auth-units/61": `{"id":"61","identity_type":"node","identity_id":"21"}`,
		"GET /v1/privileges": `{"items":[{"identity_type":"user","identity_id":"7","identity_name":"li.wei","object_type":"data",
			"object_code":"invoice","actions":["read"],"affect":"affect","rule_id":"5","inherited_from":"61"}]}`,
		"POST /v1/batch/auth-unit-rules": `{}`, "DELETE /v1/batch/auth-unit-rules": `{}`,
	}
	return newPlay(t, all.or(acme))
}

func TestResources(t *testing.T) {
	t.Parallel()
	granting(t).play([]step{
		{command: "resources list", code: 2, err: "--app is needed"},
		{command: "resources list --app crm", out: "31  data  invoice        read",
			request: "GET /v1/resources?application_id=30&page_size=200"},
		{command: "resources get crm:invoice", request: "GET /v1/resources/31?application_id=30"},
		{command: "resources get invoice", code: 2, err: "such as crm:invoice"},
		{command: "resources get crm:invoic", code: 3, err: "near it: crm:invoice\n"},
		{command: "resources get crm:orders", code: 2, err: "crm:32  api orders"},
		{command: "resources create crm:offer --actions read,write --name 报价",
			request: "POST /v1/resources", body: `{"application_id":"30","type":"data","code":"offer","name":"报价","actions":[{"code":"read"},{"code":"write"}]}`},
		{command: "resources update crm:invoice --actions read,write", request: "PATCH /v1/resources/31",
			body: `{"actions":[{"code":"read","description":"See"},{"code":"write"}]}`},
		{command: "resources delete crm:invoice", code: 2, err: "--yes is needed"},
		{command: "resources delete crm:invoice --yes", request: "DELETE /v1/resources/31"},
		{command: "sets list --app crm", out: "41  finance  F"},
		{command: "sets create crm:finance --name F", body: `{"application_id":"30","code":"finance","name":"F"}`},
		{command: "sets update crm:finance --name G", request: "PUT /v1/resource-sets/41",
			body: `{"code":"finance","is_global":"0","name":"G"}`},
		{command: "sets members crm:finance", out: "42  data           invoice        *"},
		{command: "sets add crm:finance crm:invoice --actions read",
			body: `{"members":[{"resource_id":"31","actions":["read"]}]}`},
		{command: "sets remove crm:finance crm:invoice --yes", request: "DELETE /v1/resource-sets/41/members/42"},
		{command: "sets get crm:financ", code: 3, err: "near it: crm:finance"},
	})
}

func TestGrants(t *testing.T) {
	t.Parallel()
	const to = `{"identities":[{"identity_id":"21","identity_type":"node"}],"rules":[`
	granting(t).play([]step{
		{command: "grants list --app crm", out: "5   node:company/rd  deny    data  crm:invoice  read     " +
			"on a condition, until 2026-12-31\n"},
		{command: "grants list --of li.wei -o name", out: "5\n",
			request: "GET /v1/auth-rules?identity_id=7&identity_type=user&page_size=200"},
		{command: "grants list --on crm:invoice --affect deny -o json",
			request: "GET /v1/auth-rules?affect=deny&application_id=30&code=invoice&page_size=200&type=data"},
		{command: "grants list --of nobody", code: 3, err: "near it: li.wei"},
		{command: "grants list --of hat:x", code: 3, err: `no user "hat:x"`},
		{command: "grants effective --app crm --of li.wei",
			out: "user:li.wei  allow   data         invoice      read     5        node:company/rd\n"},
		{command: "grants add --to node:company/rd crm:invoice read,write list",
			request: "POST /v1/batch/auth-unit-rules", body: to + `{"application_id":"30","type":"data","code":"invoice","actions":["read","write","list"]}]}`},
		{command: "grants add --to node:company/rd crm:inv* read --deny",
			body: to +
				`{"application_id":"30","type":"res","code":"inv*","actions":["read"],"affect":"deny"}]}`},
		{command: "grants add --to node:company/rd crm:* '*' --condition true", body: to + `{"application_id":"30",
			"type":"res","resource_match_all_resources":"1","actions":["*"],"condition":"true"}]}`},
		{command: "grants add --to node:company/rd crm:finance read --type set",
			body: to + `{"application_id":"30","type":"res_set","code":"finance","actions":["read"]}]}`},
		{command: "grants add --to li.wei --to app:crm --to tree:company --to group:auditors --to everyone crm",
			body: `{"identities":[{"identity_id":"7","identity_type":"user"},
				{"identity_id":"30","identity_type":"application"},{"identity_id":"19","identity_type":"core_object"},
				{"identity_id":"auditors","identity_type":"group"},{"identity_id":"*","identity_type":"everyone"}],
				"rules":[{"application_id":"30","type":"app"}]}`},
		{command: "grants add crm:invoice read", code: 2, err: "--to is needed"},
		{command: "grants add --to li.wei crm:invoice", code: 2, err: "name the actions"},
		{command: "grants add --to li.wei crm read", code: 2, err: "has no actions"},
		{command: "grants add --to node:company/rdd crm:invoice read", code: 3, err: "near it: company/rd"},
		{command: "grants revoke 5 --yes", request: "DELETE /v1/batch/auth-unit-rules", body: `{"rule_ids":["5"]}`},
		{command: "grants revoke --from node:company/rd crm:invoice", code: 2, err: "Delete rules 5: --yes is needed"},
		{command: "grants revoke --from node:company/rd crm:invoice read --dry-run", out: "- rule_ids: 5\n"},
		{command: "grants revoke --from node:company/rd crm:invoice write", code: 3, err: "5 has read"},
		{command: "grants revoke crm:invoice", code: 2, err: "--from WHO"},
	})
}

// TestNearestMissStory runs the command that a denied check suggests, as it is, until the answer is yes.
func TestNearestMissStory(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	p.play([]step{
		{command: "orgs create company"}, {command: "nodes create company/rd --name 研发中心"},
		{command: "groups create auditors"}, {command: "api create-application --name crm"},
		{command: "resources create crm:invoice --actions read,write"},
		{command: "resources create crm:orders --type api --uri /orders --actions GET"},
		{command: "grants add --to node:company/rd crm:invoice read"},
		{command: "grants add --to group:auditors crm:invoice write"},
	})
	mend := func(ask, want string) {
		t.Helper()
		got := p.run(wordsOf(ask)...)
		require.Equal(t, 10, got.code, got.out+got.err)
		lines := strings.Split(strings.TrimSpace(got.out), "\n")
		suggested := strings.TrimSpace(lines[len(lines)-1])
		assert.Equal(t, want, suggested)
		got = p.run(append(wordsOf(strings.TrimPrefix(suggested, "idp ")), "--yes")...)
		require.Equal(t, 0, got.code, got.out+got.err)
		got = p.run(wordsOf(ask)...)
		assert.Equal(t, 0, got.code, got.out+got.err)
	}
	mend("check li.wei read crm:invoice --explain", "idp members add company/rd li.wei")
	mend("check li.wei write crm:invoice --explain", "idp members add group:auditors li.wei")
	mend("check li.wei GET crm:orders --type api --explain",
		"idp grants add --to user:li.wei crm:orders GET --type api")
	mend("check li.wei - crm --explain", "idp grants add --to user:li.wei crm")
	mend("check node:company/rd write crm:invoice --explain", "idp grants add --to node:company/rd crm:invoice write")
	p.play([]step{{command: "grants add --to everyone crm:invoice read --deny"}})
	rule := strings.TrimSpace(p.run("grants", "list", "--of", "everyone", "-o", "name").out)
	mend("check li.wei read crm:invoice --explain", "idp grants revoke "+rule)
	p.play([]step{
		{command: "check who read crm:invoice -o name", out: "li.wei\n"},
		{command: "check what li.wei --app crm", out: "invoice"},
		{command: "check what li.wei", out: "crm"},
	})
}

// TestPermissionsStory grants and revokes on the real platform.
func TestPermissionsStory(t *testing.T) {
	t.Parallel()
	p := realPlay(t)
	p.inTenant("acme")
	p.play([]step{
		{command: "orgs create company"}, {command: "nodes create company/rd"},
		{command: "api create-application --name crm"},
		{command: "resources create crm:invoice --actions read,write --dry-run", out: "+ code: invoice"},
		{command: "resources create crm:invoice --actions read,write"},
		{command: "resources create crm:invoice", code: 5, err: "already_exists"},
		{command: "resources create crm:offer --actions read"},
		{command: "resources list --app crm", out: "invoice        read, write"},
		{command: "resources update crm:invoice --actions read,write,approve --dry-run", out: "- actions:"},
		{command: "resources update crm:invoice --actions read,write,approve"},
		{command: "resources update crm:invoice --name x --if-version 1", code: 6},
		{command: "sets create crm:finance"},
		{command: "sets add crm:finance crm:invoice crm:offer --actions read", out: "offer"},
		{command: "sets update crm:finance --name 财务 --dry-run", out: "+ name: 财务"},
		{command: "sets update crm:finance --name 财务"},
		{command: "sets list --app crm", out: "财务"},
		{command: "sets remove crm:finance crm:offer --dry-run", out: "- resource_code: offer"},
		{command: "sets remove crm:finance crm:offer --yes"},
		{command: "sets remove crm:finance crm:offer --yes", code: 3, err: "is not in"},
		{command: "grants add --to node:company/rd --to li.wei crm:invoice approve --dry-run", out: `"approve"`},
		{command: "grants list --app crm -o name"},
		{command: "grants add --to node:company/rd --to li.wei crm:invoice approve --valid-to 2099-01-01T00:00:00Z"},
		{command: "grants list --app crm",
			out: "node:company/rd  allow   data  crm:invoice  approve  until 2099-01-01"},
		{command: "grants list --on crm:invoice --of node:company/rd", out: "node:company/rd"},
		{command: "resources update crm:invoice --actions read", code: 5, err: "in_use"},
		{command: "grants add --to tree:company crm:finance read --type set"},
		{command: "members add company/rd li.wei"},
		{command: "grants effective --app crm --of li.wei --expand", out: "tree:company"},
		{command: "grants revoke --from li.wei crm:invoice read --yes", code: 3, err: "has approve"},
		{command: "grants revoke --from li.wei crm:invoice approve --yes"},
		{command: "grants revoke --from li.wei crm:invoice --yes", code: 3, err: "no rule of its own"},
		{command: "grants revoke 1048577 77 --yes", code: 3,
			err: "there is no rule 1048577, 77; nothing is revoked"},
		{command: `api create-application --name 'a:b\c'`},
		{command: `resources create 'a\:b\\c:x' --actions read`},
		{command: `grants add --to li.wei 'a\:b\\c:x' read`},
		{command: "grants list --of li.wei", out: `a\:b\\c:x`},
		{command: `check li.wei read 'a\:b\\c:x'`, out: "yes"},
		{command: "grants add --to li.wei crm:invoice nothing", code: 5, err: "actions"},
		{command: "sets delete crm:finance --yes"},
		{command: "resources delete crm:offer --dry-run", out: "- code: offer"},
		{command: "resources delete crm:offer --yes"},
		{command: "resources get crm:offer", code: 3, err: `no resource "crm:offer"`},
	})
}
