package httpapi

import (
	"encoding/json"
	"strings"
)

var exampleNewApplication = map[string]any{
	"name": "Expenses", "category": "1", "login_url": "https://expenses.acme.test/login",
	"redirect_url": "https://expenses.acme.test/callback",
}

const (
	exampleMeta = `"id":"1048577","tenant_id":"acme","version":1,"time_created":"2026-01-31T09:30:00.000Z",` +
		`"time_modified":"2026-01-31T09:30:00.000Z"`
	exampleConfigText = `{"mfa_enabled":"0","sso_enabled":"1"}`
	examplePropText   = `{"lifetime_in_seconds":3600,"signature_algorithm":"RS256"}`
)

var (
	exampleConfig      = json.RawMessage(exampleConfigText)
	exampleApplication = json.RawMessage(`{` + exampleMeta +
		`,"name":"Expenses","type":"1","domain_sn":"","template_id":"",` +
		`"category":"1","descr":"","logo":"","login_url":"https://expenses.acme.test/login",` +
		`"redirect_url":"https://expenses.acme.test/callback","logout_url":"","sub_account_policy":"0","protocol_type":"oidc",` +
		`"protocol_prop":` + examplePropText + `,"config_prop":` + exampleConfigText +
		`,"scopes":[],"sys_ext_props":{},` +
		`"free_ext_props":{},"client_id":"4mrhvkqtwz5c2d7ba3gxyun6ep","status":"1","sso_enabled":"1","mfa_enabled":"0",` +
		`"multi_account_enabled":"0","secrets":[{"id":"1048579","hint":"…a3f9","time_created":"2026-01-31T09:30:00.000Z",` +
		`"time_expires":null}],"idps":[]}`)
	exampleCreated  = json.RawMessage(strings.TrimSuffix(string(exampleApplication), "}") + `,"client_secret":"…"}`)
	exampleProtocol = json.RawMessage(`{` + exampleMeta + `,"app_id":"1048577","protocol_type":"oidc","status":"1",` +
		`"protocol_prop":` + examplePropText + `,"secret":"","secret_hint":""}`)
)
