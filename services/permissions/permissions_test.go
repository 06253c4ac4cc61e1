package permissions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/permissions"
	"github.com/idplatform/idplatform/services/questions"
)

func TestMain(m *testing.M) { basic.Main(m) }

// object is a JSON object.
type object = map[string]any

// company is what the users and the organization service answer in a test.
type company struct {
	users       []object
	objects     []questions.CoreObject
	nodes       []questions.Node
	memberships []questions.Membership
	callers     []questions.Application
	page        int          // records per page; 0 means one
	fail        func() error // the answer to a question for memberships, if not nil
}

// acme: alice (20) belongs to Payroll (12), which is below Finance (11) in the tree company (1); bob (21) to nothing.
var acme = company{
	users: []object{
		{"id": "20", "username": "alice", "status": "1", "free_ext_props": object{"level": 3}},
		{"id": "21", "username": "bob", "status": "1", "free_ext_props": object{}},
		{"id": "22", "username": "carol", "status": "resigned"},
		{"id": "23", "username": "dave", "status": "0", "locked": true},
		{"id": "24", "username": "erin", "status": "1", "locked": true},
	},
	objects: []questions.CoreObject{{ID: "1", Code: "company", Name: "Company", Sequence: 10}},
	nodes: []questions.Node{
		{ID: "10", Name: "Company", ObjectCode: "company", Sequence: 10},
		{ID: "11", Name: "Finance", ParentID: "10", ObjectCode: "company", Sequence: 10},
		{ID: "12", Name: "Payroll", ParentID: "11", ObjectCode: "company", Sequence: 10},
	},
	memberships: []questions.Membership{{ID: "30", NodeID: "12", UserID: "20", Sequence: 10}},
	callers:     []questions.Application{{ID: "2002", Name: "Shop", Sequence: 10}},
}

// answer answers for the three services with the company that now returns, which is in the tenant acme.
func answer(t testing.TB, s *testkit.Service, now func() company) {
	b := s.Deps.Bus
	next := func(ctx context.Context, q questions.TenantName) (questions.TenantName, error) {
		require.Equal(t, request.Platform, request.Tenant(ctx))
		return questions.TenantName{Tenant: map[string]string{"": "acme"}[q.Tenant]}, nil
	}
	require.NoError(t, testkit.AnswerFor(b, "users", "next-tenant", next))
	require.NoError(t, testkit.AnswerFor(b, "organization", "next-tenant", next))
	require.NoError(t, testkit.AnswerFor(b, "applications", "next-tenant", next))
	require.NoError(t, testkit.AnswerFor(b, "applications", "records",
		func(_ context.Context, q questions.RecordsPage) (questions.Applications, error) {
			page, after := pageOf(now().page, now().callers, q)
			return questions.Applications{Applications: page, Next: after}, nil
		}))
	require.NoError(t, testkit.AnswerFor(b, "users", "records",
		func(_ context.Context, q questions.UsersPage) (questions.Records, error) {
			users := recordsAfter(now().users, q.AfterID, func(u object) string { return u["id"].(string) })
			page, after := pageOf(now().page, users, q.RecordsPage)
			records := questions.Records{Next: after}
			for _, u := range page {
				asked := maps.Clone(u)
				maps.DeleteFunc(asked, func(name string, _ any) bool { return !slices.Contains(q.Members, name) })
				raw, err := json.Marshal(asked)
				if err != nil {
					return records, err
				}
				records.Users, records.Sequences = append(records.Users, raw), append(records.Sequences, 10)
			}
			return records, nil
		}))
	require.NoError(t, testkit.AnswerFor(b, "users", "places",
		func(_ context.Context, q questions.PartsOf) (questions.Places, error) {
			return places(now().users, q, func(u object) string { return u["id"].(string) }), nil
		}))
	require.NoError(t, testkit.AnswerFor(b, "organization", "membership-places",
		func(_ context.Context, q questions.PartsOf) (questions.Places, error) {
			return places(now().memberships, q, func(m questions.Membership) string { return m.ID }), nil
		}))
	require.NoError(t, testkit.AnswerFor(b, "organization", "core-object-records",
		func(_ context.Context, q questions.RecordsPage) (questions.CoreObjects, error) {
			page, after := pageOf(now().page, now().objects, q)
			return questions.CoreObjects{CoreObjects: page, Next: after}, nil
		}))
	require.NoError(t, testkit.AnswerFor(b, "organization", "node-records",
		func(_ context.Context, q questions.RecordsPage) (questions.Nodes, error) {
			page, after := pageOf(now().page, now().nodes, q)
			return questions.Nodes{Nodes: page, Next: after}, nil
		}))
	require.NoError(t, testkit.AnswerFor(b, "organization", "membership-records",
		func(_ context.Context, q questions.MembershipsPage) (questions.MembershipPage, error) {
			if fail := now().fail; fail != nil {
				return questions.MembershipPage{}, fail()
			}
			rest := recordsAfter(now().memberships, q.AfterID, func(m questions.Membership) string { return m.ID })
			page, after := pageOf(now().page, rest, q.RecordsPage)
			return questions.MembershipPage{Memberships: page, Next: after}, nil
		}))
}

// places divides records into parts, as the services do, and recordsAfter are those after an id.
func places[T any](all []T, q questions.PartsOf, id func(T) string) (p questions.Places) {
	for i := 1; i < min(q.Parts, len(all)); i++ {
		p.IDs = append(p.IDs, id(all[i*len(all)/q.Parts]))
	}
	return questions.Places{IDs: slices.Compact(p.IDs)}
}

func recordsAfter[T any](all []T, last string, id func(T) string) []T {
	if last == "" {
		return all
	}
	return all[1+slices.IndexFunc(all, func(v T) bool { return id(v) == last }):]
}

func pageOf[T any](size int, all []T, q questions.RecordsPage) (page []T, next string) {
	i := 0
	if q.After != "" {
		_, _ = fmt.Sscan(q.After, &i)
	}
	to := min(i+max(size, 1), len(all))
	if to < len(all) {
		next = fmt.Sprint(to)
	}
	return all[i:to], next
}

// start runs the service beside users and organization services that have acme's people, and waits until its index is
// complete.
func start(t testing.TB) *testkit.Service {
	s := testkit.Start(t, permissions.Spec(permissions.DefaultConfig()))
	answer(t, s, func() company { return acme })
	ready(t, s)
	return s
}

// ready waits until checks are answered.
func ready(t testing.TB, s *testkit.Service) {
	t.Helper()
	c := in(s, "acme")
	wait.Until(t, func() bool {
		return c.Post("/v1/auth-check", reading("20")).Status == 200
	})
}

// in is a client of a tenant with all scopes and headers that the operations of this service require.
func in(s *testkit.Service, tenant string) *testkit.Client {
	return s.As(tenant, auth.PermissionsRead, auth.PermissionsWrite, auth.PermissionsCheck).With("X-Tenant-Id", tenant)
}

// reading is the check whether a user may read the data resource ledger.
func reading(user string) object {
	return object{"identity_id": user, "identity_type": "user", "application_id": "9", "object_type": "data",
		"object_code": "ledger", "action": "read"}
}

func TestConventions(t *testing.T) {
	t.Parallel()
	testkit.Conventions(t, start, testkit.Resource{
		Collection: "/v1/auth-units",
		Body: func(n int) any {
			return object{"identity_id": fmt.Sprint(1000 + n), "identity_type": "user",
				"identity_name": fmt.Sprint("User ", n)}
		},
		Change: object{"description": "另一个"},
		Faulty: object{"identity_id": "*", "identity_type": "user", "description": "a\x00b"},
		Faults: []string{"body.identity_id", "body.description"},
		Unique: []string{"identity_id"},
		Open:   []string{"get-authzen-configuration"},
		Read:   auth.PermissionsRead, Write: auth.PermissionsWrite, Unrelated: auth.KVRead,
	})
}

func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	testkit.Document(t, start(t), "api/openapi.yaml")
}
