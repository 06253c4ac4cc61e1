package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/cli/internal/output"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// everything is a plan with a step of each sort.
func everything() *Plan {
	long := strings.Repeat("request.ip.startsWith('10.') || ", 6)
	actual := &Actual{names: map[string]map[string]string{application: {"1": "crm", "2": "报销"}}}
	p := &Plan{actual: actual, Unchanged: 1, Orphaned: 2, Steps: []*Step{
		{Action: Create, Ref: Ref{application, "crm"}, Place: "config/crm.yaml:1", Changes: []Change{
			{Member: "name", After: "crm"}, {Member: "redirect_url", After: "https://crm.acme.test/callback"},
			{Member: "scopes", After: []any{"users:read", "organization:read"}},
		}},
		{Action: Create, Ref: Ref{subscription, "HR"}, Place: "config/hr.yaml:1", Changes: []Change{
			{Member: "delivery.secret", After: Secret("env:HR_SECRET")}, {Member: "name", After: "HR"},
		}},
		{Action: Create, Ref: Ref{resource, "crm:data:合同"}, Place: "config/crm.yaml:9", DependsOn: &Ref{application,
			"crm"},
			Changes: []Change{
				{Member: "code", After: "合同"}, {Member: "description", After: strings.Repeat("所有客户的合同，", 8)},
				{Member: "actions", After: []any{
					map[string]any{"code": "read"}, map[string]any{"code": "sign", "description": "签署"},
				}},
			}},
		{Action: Update, Ref: Ref{node, "company/platform"}, Place: "config/company.yaml:4",
			Changes: []Change{{"parent", "rd", "sales"}, {"name", "平台组", "平台与基础架构组"}}},
		{Action: Update, Ref: Ref{rule, "everyone may use crm:app"}, Place: "config/rules.yaml:30",
			Changes: []Change{{"condition", long + "false", long + "true"}},
			Drift:   []string{`description was "intern"`}},
		{Action: Create, Ref: Ref{rule, "node company/a.very.long.code.of.a.node may use crm:data:invoice"},
			Place: "config/a-folder-with-a-long-name/rules.yaml:44", Changes: []Change{{Member: "actions", After: []any{"fly"}}},
			want: &Desired{File: "config/a-folder-with-a-long-name/rules.yaml", Line: 44},
			Problem: &idp.Problem{Status: 400, Code: idp.CodeInvalidParameters, Errors: []idp.Fault{
				{Location: "body.rules[0].actions[0]", Message: "is not an action of the resource"},
			}}},
		{Action: Create, Ref: Ref{connection, "ldap/Acme"}, Place: "config/ldap.yaml:1", Changes: []Change{},
			Problem: errors.New("nobody answers")},
		{Action: Delete, Ref: Ref{resource, "crm:data:old"}, Changes: []Change{}},
		{Action: Delete, Ref: Ref{application, "old"}, Changes: []Change{}, DependsOn: &Ref{resource, "old:data:x"}},
	}}
	for i := range 200 {
		p.Steps = append(p.Steps, &Step{
			Action: Create, Ref: Ref{rule, fmt.Sprintf("user u%d may use crm:data:invoice", i)},
			Place:   fmt.Sprintf("config/rules.yaml:%d", 50+i),
			Changes: []Change{{Member: "actions", After: []any{"read"}}},
		})
	}
	p.Impact = &Impact{
		AccessImpact: &idp.AccessImpact{
			Gained: 31, Lost: 1, IdentitiesGaining: 3, IdentitiesLosing: 1, Undecided: 1, Complete: true, More: true,
			ByType: map[string]idp.IdentitiesReached{"user": {Gaining: 2, Losing: 1}, "application": {Gaining: 1}},
			Items: []idp.ChangedDecision{
				{IdentityType: "user", IdentityID: "7", IdentityName: "李伟", ApplicationID: "1", ObjectType: "data",
					ObjectCode: "invoice", Action: "read", Change: "gained"},
				{IdentityType: "user", IdentityID: "8", IdentityName: "wang.fang", ApplicationID: "1",
					ObjectType: "app", Change: "lost"},
				{IdentityType: "application", IdentityID: "2", ApplicationID: "1", ObjectType: "api",
					ObjectCode: "orders", Action: "GET", Change: "gained", Conditional: true},
			},
		},
		NotTried: []string{"Resource crm:data:old: only rules, moves and statuses of nodes are compared"},
	}
	return p
}

// TestGoldenPlan compares a plan as people and programs get it with testdata. plan.json is a format that others rely
// on: members may be added, never taken away. IDP_TEST_UPDATE=1 writes the files.
func TestGoldenPlan(t *testing.T) {
	t.Parallel()
	golden := func(name string, is []byte) {
		t.Helper()
		file := filepath.Join("testdata", name)
		if os.Getenv("IDP_TEST_UPDATE") != "" {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(file, is, 0o644))
			return
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(is), "%s: IDP_TEST_UPDATE=1 writes it", name)
	}
	print := func(v View) []byte {
		var out bytes.Buffer
		everything().Print(&out, v)
		return out.Bytes()
	}
	plain := print(View{})
	golden("plan.txt", plain)
	golden("plan-80-colours.txt", print(View{Width: 80, Style: true}))
	assert.Greater(t, bytes.Count(print(View{All: true}), []byte("\n")), 200, "every step")
	for line := range strings.Lines(string(plain)) {
		cut := !strings.Contains(line, ": is not an action") && !strings.Contains(line, "REFUSED")
		assert.True(t, !cut || output.Columns(line) <= usualWidth, line)
	}
	short := everything()
	short.Steps = short.Steps[:9]
	text, err := json.MarshalIndent(short, "", "  ")
	require.NoError(t, err)
	golden("plan.json", append(text, '\n'))
}
