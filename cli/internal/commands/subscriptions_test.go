package commands

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hr is a platform with a subscription, a credential and entries of the audit log.
func hr(w http.ResponseWriter, r *http.Request) {
	known := answers{
		"GET /v1/event-subscriptions": `{"items":[{"id":"71","name":"HR","state":"failing","event_types":["user.*"],
			"delivery":{"type":"webhook","url":"https://hr.acme.test"},"counters":{"pending":4}}]}`,
		"POST /v1/event-subscriptions":          `{"id":"72","name":"new","delivery":{"secret":"whsec_s3cret"}}`,
		"PATCH /v1/event-subscriptions/71":      `{"id":"71"}`,
		"POST /v1/event-subscriptions/71/pause": `{"id":"71"}`,
		"POST /v1/event-subscriptions/71/reset": `{"id":"71","delivery":{"secret":"whsec_s3cret"}}`,
		"POST /v1/event-subscriptions/71/test":  `{"delivered":false,"response_code":500,"error":"refused"}`,
		"GET /v1/event-subscriptions/71/events": `{"items":[{"event_id":"e1","event_type":"idp.user.created",
			"status":"failed","tries":9,"response_code":500}]}`,
		"POST /v1/event-subscriptions/71/events/e1/redeliver": `{"event_id":"e1","status":"retrying"}`,
		"GET /v1/user-stored-credentials":                     `{"items":[{"id":"81","user_id":7,"id1":"o6x","username":"wei"}]}`,
		"GET /v1/user-stored-credentials/81":                  `{"id":"81","id1":"o6x"}`,
		"POST /v1/user-stored-credentials":                    `{"id":"82"}`,
		"PATCH /v1/user-stored-credentials/81":                `{"id":"81"}`,
		"POST /v1/users/7/reset-password":                     `{"password":"s3cret"}`,
		"POST /v1/users/7/change-password":                    `{}`,
		"POST /v1/thin/login-verification":                    `{"verified":false,"reason":"locked"}`,
		"GET /v1/audit-logs/91":                               `{"id":"91"}`,
		"GET /v1/audit-logs/export":                           `{"id":"91"}`,
		"GET /v1/audit-logs": `{"items":[{"id":"91","time":"2026-01-31T09:30:00.123Z","actor":"user:7","entity":"user",
			"record":"7","action":"updated","outcome":"done","count":1,"changes":[
				{"member":"email","before":"a@acme.test","after":"b@acme.test"},
				{"member":"props","before":{"a":1,"b":2},"after":{"a":1,"b":3,"c":[4]}},
				{"member":"mobile","before":"1","after":null},{"member":"locked","before":null,"after":true}]},
			{"id":"92","time":"2026-01-31T09:30:01Z","actor":"client:c9c9c9c9c9","entity":"access","record":"","action":"get-user",
			"outcome":"denied","reason":"the scope is missing","count":3,"changes":[]}]}`,
	}
	if _, has := known[r.Method+" "+r.URL.Path]; has {
		known.serve(w, r)
		return
	}
	crm(w, r)
}

func TestSubscriptions(t *testing.T) {
	t.Parallel()
	p := newPlay(t, hr)
	assert.Equal(t, "ID  NAME  STATE    EVENTS  TO                    WAITING\n"+
		"71  HR    failing  user.*  https://hr.acme.test  4\n", p.run("subscriptions", "list").out)
	p.play([]step{
		{command: "subscriptions create new --url https://new.test --type user.*,node.moved -F delivery.headers.A=b",
			request: "POST /v1/event-subscriptions",
			body: `{"name":"new","event_types":["user.*","node.moved"],
			"delivery":{"type":"webhook","url":"https://new.test","headers":{"A":"b"}}}`},
		{command: "subscriptions create new --nats --type *",
			request: "POST /v1/event-subscriptions",
			body:    `{"name":"new","event_types":["*"],"delivery":{"type":"nats"}}`},
		{command: "subscriptions update HR --type user.*",
			request: "PATCH /v1/event-subscriptions/71",
			body:    `{"event_types":["user.*"]}`},
		{command: "subscriptions disable HR", request: "POST /v1/event-subscriptions/71/pause"},
		{command: "subscriptions rotate HR",
			request: "POST /v1/event-subscriptions/71/reset",
			body:    `{"rotate_secret":true}`},
		{command: "subscriptions reset HR --to now",
			request: "POST /v1/event-subscriptions/71/reset",
			body:    `{"to":"now"}`},
		{command: "subscriptions reset HR --to 2026-01-31",
			request: "POST /v1/event-subscriptions/71/reset",
			body:    `{"to":"2026-01-31T00:00:00Z"}`},
		{command: "subscriptions deliveries redeliver HR e1",
			request: "POST /v1/event-subscriptions/71/events/e1/redeliver"},
	})
	require.Equal(t, 0, p.run("subscriptions", "reset", "HR", "--to", "1h").code)
	var body struct{ To time.Time }
	require.NoError(t, json.Unmarshal([]byte(p.last().body), &body))
	assert.WithinDuration(t, time.Now().Add(-time.Hour), body.To, time.Minute)
	assert.Equal(t, 10, p.run("subscriptions", "test", "HR").code)
	assert.Contains(t, p.run("subscriptions", "deliveries", "list", "HR").out, "e1        user.created  failed")
	assert.Contains(t, p.run("subscriptions", "deliveries", "get", "HR", "e1", "-o", "json").out, `"tries": 9`)
	p.play([]step{
		{command: "subscriptions reset HR", code: 2, err: "--to is needed"},
		{command: "subscriptions create x --url https://x.test --nats", code: 2, err: "exclude"},
		{command: "subscriptions deliveries redo", code: 2, err: "subscriptions deliveries has no command"},
	})
	p.play([]step{
		{command: "subscriptions get H", code: 3, err: "near it: HR"},
		{command: "subscriptions deliveries get HR e2", code: 3, err: "deliveries list HR"},
	})
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	p := newPlay(t, hr)
	assert.Equal(t, "ID  USER    PROVIDER  MARKER  NAME THERE  STATUS\n81  li.wei            o6x     wei\n",
		p.run("credentials", "list").out)
	p.play([]step{
		{command: "credentials get o6x", request: "GET /v1/user-stored-credentials/81"},
		{command: "credentials list --user li.wei --source Our -o json",
			request: "GET /v1/user-stored-credentials?idp_config_id=61&page_size=200&user_id=7"},
		{command: "credentials create --user li.wei --source Our --provider-code github --id1 9",
			request: "POST /v1/user-stored-credentials",
			body:    `{"user_id":7,"idp_config_id":61,"provider_code":"github","id1":"9"}`},
		{command: "credentials disable o6x", request: "PATCH /v1/user-stored-credentials/81", body: `{"status":"0"}`},
		{command: "credentials reset-password li.wei", request: "POST /v1/users/7/reset-password", body: `{}`},
	})
	p.input = "old\nnew\n"
	p.play([]step{
		{command: "credentials change-password li.wei",
			request: "POST /v1/users/7/change-password",
			body:    `{"old_password":"old","new_password":"new"}`},
		{command: "credentials reset-password li.wei --choose",
			request: "POST /v1/users/7/reset-password",
			body:    `{"new_password":"old"}`},
	})
	got := p.run("credentials", "verify", "li.wei", "-v")
	assert.Equal(t, 10, got.code)
	assert.JSONEq(t, `{"login_name":"li.wei","password":"old"}`, p.last().body)
	assert.NotContains(t, got.err+got.out, "old")
	assert.NotContains(t, p.run("credentials", "verify", "li.wei", "--curl").out, "old")
	p.input = ""
	p.play([]step{
		{command: "credentials create", code: 2, err: "--user is needed"},
		{command: "credentials verify li.wei", code: 2, err: "standard input ended"},
	})
	p.play([]step{
		{command: "credentials get o6", code: 3, err: "near it: o6x"},
	})
}

func TestAudit(t *testing.T) {
	t.Parallel()
	p := newPlay(t, hr)
	got := p.run("audit", "list", "-o", "wide")
	assert.Contains(t, got.out, "li.wei            user updated     li.wei  "+
		"email: a@acme.test → b@acme.test; props.b: 2 → 3; props.c: 4; mobile: 1 → nothing; locked: true")
	assert.Contains(t, got.out, "client:c9c9c9c9…  denied get-user          the scope is missing (3 times)")
	list := func(more string) string {
		return "GET /v1/audit-logs?" + more + "page_size=200&page_sort=time%5Bdesc%5D"
	}
	p.play([]step{
		{command: "audit list --until 2026-01-31 -o json", request: list("") + "&time_to=2026-01-31T00%3A00%3A00Z"},
		{command: "audit list --actor li.wei -o json", request: list("actor=user%3A7&")},
		{command: "audit list --actor CRM -o json", request: list("actor=client%3Ac30&")},
		{command: "audit list --actor system -o json", request: list("actor=system&")},
		{command: "audit user li.wei -o json", request: list("entity=user&") + "&record=7"},
		{command: "audit app crm -o json", request: list("entity=application&") + "&record=30"},
		{command: "audit protocol crm saml -o json", request: list("entity=protocol&") + "&record=44"},
		{command: "audit source Our -o json", request: list("entity=connection&") + "&record=61"},
		{command: "audit subscription HR -o json", request: list("entity=event_subscription&") + "&record=71"},
		{command: "audit denied -o json", request: list("outcome=denied&")},
		{command: "audit get 91", request: "GET /v1/audit-logs/91"},
		{command: "audit export --entity user", request: "GET /v1/audit-logs/export?entity=user"},
	})
	p.play([]step{
		{command: "audit list --since soon", code: 2, err: "--since must be like"},
		{command: "audit list --until 0d", code: 2, err: "--until"},
	})
	p.play([]step{
		{command: "audit user nobody", code: 3, err: "near it"},
		{command: "audit list --actor nobody", code: 3, err: "nobody"},
	})
}
