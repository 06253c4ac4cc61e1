package questions_test

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/questions"
)

// example is one request and answer, in the form of the files in testdata.
type example struct {
	Request any `json:"request"`
	Answer  any `json:"answer"`
}

func of[Req, Resp any](q bus.Question[Req, Resp], request Req, answer Resp) (string, func(*testing.T)) {
	return q.Service + "." + q.Name, func(t *testing.T) {
		t.Parallel()
		body, err := json.MarshalIndent(example{request, answer}, "", "  ")
		require.NoError(t, err)
		testkit.Golden(t, "testdata/"+q.Service+"."+q.Name+".json", append(body, '\n'))
		var back struct {
			Request Req  `json:"request"`
			Answer  Resp `json:"answer"`
		}
		require.NoError(t, json.Unmarshal(body, &back))
		again, err := json.MarshalIndent(example{back.Request, back.Answer}, "", "  ")
		require.NoError(t, err)
		require.Equal(t, string(body), string(again), "one side must be able to read what the other writes")
	}
}

// Services of different versions exchange these forms.
func TestGoldenQuestions(t *testing.T) {
	t.Parallel()
	raw := func(text string) []json.RawMessage { return []json.RawMessage{json.RawMessage(text)} }
	cases := map[string]func(*testing.T){}
	add := func(name string, run func(*testing.T)) { cases[name] = run }
	add(of(questions.ExistingUsers, questions.UserIDs{IDs: []string{"1048577", "1048578"}},
		questions.UserIDs{IDs: []string{"1048577"}}))
	add(of(questions.UserRecords, questions.RecordsPage{After: "…", Limit: 500},
		questions.Records{Users: raw(`{"id":"1048577","username":"li.wei"}`), Sequences: []int64{30}, Next: "…"}))
	add(of(questions.MatchingUsers, questions.Search{Keyword: "伟", Limit: 1000},
		questions.Found{IDs: []string{"1048577"}, More: true}))
	add(of(questions.CredentialsOfConnection, questions.ConnectionNumber{ID: 1048577},
		questions.Count{Count: 3}))
	add(of(questions.ChangeMembership,
		questions.MembershipChange{
			ID: "1", UserID: "2", ObjectCode: "company", FromNodeID: "3", ToNodeID: "4", DryRun: true,
		},
		questions.Memberships{Memberships: raw(`{"id":"5"}`)}))
	add(of(questions.SettleChange, questions.ChangeID{ID: "1"},
		questions.ChangeOutcome{Applied: true, Memberships: questions.Memberships{Memberships: raw(`{"id":"5"}`)}}))
	add(of(questions.GrantsOfNode, questions.GrantedNode{ObjectCode: "company", NodeID: "3"},
		questions.Count{Count: 2}))
	add(of(questions.NextUsersTenant, questions.TenantName{}, questions.TenantName{Tenant: "acme"}))
	add(of(questions.NextOrganizationTenant, questions.TenantName{Tenant: "acme"},
		questions.TenantName{Tenant: "globex"}))
	add(of(questions.CoreObjectRecords, questions.RecordsPage{Limit: 500},
		questions.CoreObjects{CoreObjects: []questions.CoreObject{{ID: "1", Code: "company", Name: "Acme",
			Sequence: 10}}}))
	add(of(questions.NodeRecords, questions.RecordsPage{After: "…", Limit: 500},
		questions.Nodes{Nodes: []questions.Node{{ID: "3", Name: "Platform", ParentID: "2", ObjectCode: "company",
			Sequence: 20}}, Next: "…"}))
	add(of(questions.MembershipRecords, questions.RecordsPage{Limit: 500},
		questions.MembershipPage{Memberships: []questions.Membership{{ID: "5", NodeID: "3", UserID: "1048577",
			Sequence: 10}}}))
	add(of(questions.ConnectionExists, questions.ConnectionID{ID: "1048577"}, questions.Exists{Exists: true}))
	add(of(questions.GrantsOfApplication, questions.ApplicationID{ID: "1048577"}, questions.Count{Count: 2}))
	add(of(questions.ExistingConnections, questions.ConnectionIDs{IDs: []string{"31", "32"}},
		questions.Connections{Connections: []questions.Connection{{ID: "31", ProviderCode: "wechat_scan_qr"}}}))
	add(of(questions.NextApplicationsTenant, questions.TenantName{}, questions.TenantName{Tenant: "acme"}))
	add(of(questions.ApplicationRecords, questions.RecordsPage{Limit: 500},
		questions.Applications{Applications: []questions.Application{{ID: "2001", Name: "Shop", Sequence: 10}}}))
	add(of(questions.ApplicationsOfConnection, questions.ConnectionID{ID: "1048577"}, questions.Count{Count: 3}))
	add(of(questions.IsSubscriber, questions.Subscriber{ID: "1048577", Password: "whsec_bm90IGEgc2VjcmV0"},
		questions.Admission{Admitted: true}))
	for name, run := range cases {
		t.Run(name, run)
	}
	require.Len(t, cases, declared(t), "every declared question must have an example")
}

// declared counts the questions declared in the package's source.
func declared(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	declaration := regexp.MustCompile(`(?m)^var \w+ = bus\.Question\[`)
	n := 0
	for _, file := range files {
		if file.IsDir() {
			continue
		}
		source, err := os.ReadFile(file.Name())
		require.NoError(t, err)
		n += len(declaration.FindAll(source, -1))
	}
	return n
}
