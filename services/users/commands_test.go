package users_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// writes describe what the service writes; see testkit.Writes.
var writes = testkit.Writes{
	Service: "users",
	Start: func(t testing.TB) (*testkit.Service, *testkit.Client) {
		s := start(t)
		require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "organization", "change-membership",
			func(_ context.Context, q object) (object, error) {
				return object{"memberships": []any{object{"node_id": q["to_node_id"]}}}, nil
			}))
		require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "organization", "change-memberships",
			func(context.Context, object) (object, error) { return object{}, nil }))
		return s, s.As("acme", auth.PlatformAdmin)
	},
	Commands: func(t testing.TB, _ *testkit.Service, c *testkit.Client) []testkit.Commands {
		p := &prepared{t, c, testkit.Names()}
		rows := append(p.ofUsers(), p.ofStates()...)
		return append(append(rows, p.ofPasswords()...), p.ofCredentials()...)
	},
	Changes: changes,
}

func TestCommands(t *testing.T)         { writes.TestCommands(t) }
func TestAtOnce(t *testing.T)           { writes.TestAtOnce(t) }
func BenchmarkConnections(b *testing.B) { writes.BenchmarkConnections(b) }

// prepared makes the records that operations change. Its own requests are not counted.
type prepared struct {
	t     testing.TB
	c     *testkit.Client
	fresh func() string
}

// user makes a user with a password, and returns its path.
func (p *prepared) user() string {
	return path(addUser(p.t, p.c, p.fresh(), object{"password": password}))
}

// ids makes the body of a batch for 100 new users, after what operations have done to each.
func (p *prepared) ids(after ...string) func() any {
	return func() any {
		ids := make([]string, 100)
		for i := range ids {
			user := addUser(p.t, p.c, p.fresh())
			for _, operation := range after {
				p.c.Post(path(user, operation), nil).OK(nil)
			}
			ids[i] = user["id"].(string)
		}
		return object{"ids": ids}
	}
}

func (p *prepared) ofUsers() []testkit.Commands {
	user := testkit.Path(p.user)
	there := user()
	records := func(n int) string {
		var body strings.Builder
		of := p.fresh()
		for i := range n {
			fmt.Fprintf(&body, `{"username":"%s-%d","email":"%[1]s-%[2]d@acme.test"}`+"\n", of, i)
		}
		return body.String()
	}
	picture := pngOf(p.t, 32, 24)
	shown := func() string {
		path := user() + "/avatar"
		p.c.With("Content-Type", "image/png").Do(http.MethodPut, path, picture).OK(nil)
		return path
	}
	return []testkit.Commands{
		testkit.Takes("get a user", http.MethodGet, there, nil),
		testkit.Takes("a page of users with their number", http.MethodGet, "/v1/users?page_size=20", nil),
		testkit.Takes("create a user with a password", http.MethodPost, "/v1/users",
			func() any { return object{"username": p.fresh(), "password": password} }),
		testkit.Takes("check whether 1,000 users exist", http.MethodPost, "/v1/batch/users-exist", func() any {
			items := []object{{"employee_number": "A-17"}, {"id": there[len("/v1/users/"):]}}
			for len(items) < 1000 {
				items = append(items, object{"username": p.fresh()})
			}
			return object{"items": items}
		}),
		{Operation: "import 1,000 users", Do: func(c *testkit.Client) *testkit.Answer {
			return send(c, ndjson, "", records(1000))
		}},
		testkit.Takes("create a user with a shared email", http.MethodPost, "/v1/users", func() any {
			p.c.Patch(settings, object{"shared_contacts": true}).OK(nil)
			email := addUser(p.t, p.c, p.fresh(), object{"email": p.fresh() + "@acme.test"})["email"]
			return object{"username": p.fresh(), "email": email}
		}),
		testkit.Takes("change the settings of users", http.MethodPatch, settings, object{"shared_contacts": true}),
		testkit.Takes("change a user", http.MethodPatch, there,
			func() any { return object{"display_name": p.fresh(), "email": p.fresh() + "@acme.test"} }),
		testkit.Takes("move a user to another node", http.MethodPost, there+"/change-organization",
			object{"object_code": "company", "from_node_id": "31", "to_node_id": "32"}),
		testkit.Takes("move 100 users to another node", http.MethodPost, "/v1/batch/users-change-organization",
			func() any {
				move := p.ids()().(object)
				move["object_code"], move["from_node_id"], move["to_node_id"] = "company", "31", "32"
				return move
			}),
		testkit.Takes("verify a real name", http.MethodPost, user.Below("/real-name-verification"),
			func() any { return object{"real_name": "李伟", "id_number": p.residentNumber()} }),
		{Operation: "upload an avatar", Do: func(c *testkit.Client) *testkit.Answer {
			return c.With("Content-Type", "image/png").Do(http.MethodPut, user()+"/avatar", picture)
		}},
		testkit.Takes("remove an avatar", http.MethodDelete, shown, nil),
		testkit.Takes("delete a user", http.MethodDelete, user, nil),
		testkit.Takes("delete 100 users", http.MethodDelete, "/v1/batch/users", p.ids()),
	}
}

// residentNumber is a well-formed number that no other user has.
func (p *prepared) residentNumber() string {
	var n int
	_, err := fmt.Sscanf(p.fresh(), "new%d", &n)
	require.NoError(p.t, err)
	digits := fmt.Sprintf("11010519%02d1231%03d", 40+n/1000%50, n%1000)
	sum := 0
	for i, weight := range []int{7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2} { // GB 11643
		sum += weight * int(digits[i]-'0')
	}
	return digits + string("10X98765432"[sum%11])
}

func (p *prepared) ofStates() []testkit.Commands {
	user := testkit.Path(p.user)
	return []testkit.Commands{
		testkit.Takes("lock a user", http.MethodPost, user.Below("/lock"), nil),
		testkit.Takes("unlock a user", http.MethodPost, user.After(p.c, "/lock").Below("/unlock"), nil),
		testkit.Takes("lock 100 users", http.MethodPost, "/v1/batch/users-lock", p.ids()),
		testkit.Takes("unlock 100 users", http.MethodPost, "/v1/batch/users-unlock", p.ids("lock")),
		testkit.Takes("resign a user", http.MethodPost, user.Below("/resign"), nil),
		testkit.Takes("reinstate a user", http.MethodPost, user.After(p.c, "/resign").Below("/reinstate"), nil),
	}
}

func (p *prepared) ofPasswords() []testkit.Commands {
	name := func() string { name := p.fresh(); addUser(p.t, p.c, name, object{"password": password}); return name }
	there := name()
	verify := func(name, password string) object { return object{"login_name": name, "password": password} }
	const logins = "/v1/thin/login-verification"
	return []testkit.Commands{
		testkit.Takes("verify a login", http.MethodPost, logins, verify(there, password)),
		testkit.Takes("verify a login with a wrong password", http.MethodPost, logins,
			func() any { return verify(name(), "wrong") }),
		testkit.Takes("reset a password", http.MethodPost, testkit.Path(p.user).Below("/reset-password"), nil),
		testkit.Takes("reset 100 passwords", http.MethodPost, "/v1/batch/users-reset-password", p.ids()),
		testkit.Takes("change a password", http.MethodPost, testkit.Path(p.user).Below("/change-password"),
			object{"old_password": password, "new_password": "another Passw0rd"}),
	}
}

func (p *prepared) ofCredentials() []testkit.Commands {
	user := addUser(p.t, p.c, p.fresh())
	body := func() any { return credentialOf(user, "wechat_scan_qr", p.fresh()) }
	credential := func() string { return credentials + "/" + p.c.Post(credentials, body()).ID() }
	return []testkit.Commands{
		testkit.Takes("bind a social identity", http.MethodPost, credentials, body),
		testkit.Takes("change a stored credential", http.MethodPatch, credential,
			func() any { return object{"id1": p.fresh()} }),
		testkit.Takes("delete a stored credential", http.MethodDelete, credential, nil),
	}
}
