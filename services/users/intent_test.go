package users_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/users"
)

// openChanges counts the changes of organization whose outcome is not recorded.
func openChanges(t testing.TB, s *testkit.Service, tenant string) int64 {
	t.Helper()
	type anything struct{ docstore.Meta }
	n, err := docstore.Define(docstore.Schema[anything]{Name: "organization_changes"}).
		Count(request.System(t.Context(), tenant), s.Deps.Store, docstore.Filter{})
	require.NoError(t, err)
	return n
}

// replica is another replica's task that finishes changes of organization.
func replica(t testing.TB, s *testkit.Service) func() error {
	t.Helper()
	app, err := users.Spec(cheap()).New(t.Context(), s.Deps)
	require.NoError(t, err)
	for _, task := range app.Tasks {
		if task.Name == "finish organization changes" {
			return func() error {
				for {
					if n, err := task.Do(context.Background()); n == 0 || err != nil {
						return err
					}
				}
			}
		}
	}
	t.Fatal("there is no such task")
	return nil
}

// organization answers as that service does: it makes a change only once, and never after it has answered that it was
// not made.
type organization struct {
	sync.Mutex
	changes map[string]bool // by id: made, or answered as not made
	settled int             // questions about outcomes
	lost    error           // the error that the asker gets although the change was made
	refused error           // the error that the asker gets instead of the change
	mute    string          // the change whose outcome is not answered
	asked   func()          // called after a change was made

	everything bool // every change counts as made
}

var nodes = object{"memberships": []any{object{"node_id": "32"}}}

// listen starts to answer questions about changes and, if settle is set, about their outcomes.
func (o *organization) listen(t testing.TB, s *testkit.Service, settle bool) *organization {
	t.Helper()
	o.Lock()
	o.changes = map[string]bool{}
	o.Unlock()
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "organization", "change-membership",
		func(_ context.Context, q object) (object, error) {
			o.Lock()
			defer o.Unlock()
			id := q["change_id"].(string)
			if made, known := o.changes[id]; known && !made {
				return nil, apperr.New(apperr.InvalidState, "the change was given up")
			}
			if o.refused != nil {
				return nil, o.refused
			}
			o.changes[id] = true
			if o.asked != nil {
				o.Unlock()
				o.asked()
				o.Lock()
			}
			return nodes, o.lost
		}))
	if settle {
		o.settle(t, s)
	}
	return o
}

func (o *organization) settle(t testing.TB, s *testkit.Service) {
	t.Helper()
	require.NoError(t, testkit.AnswerFor(s.Deps.Bus, "organization", "settle-change",
		func(_ context.Context, q object) (object, error) {
			o.Lock()
			defer o.Unlock()
			o.settled++
			id := q["change_id"].(string)
			if id == o.mute {
				return nil, apperr.New(apperr.Internal, "the change can't be read")
			}
			if o.changes[id] || o.everything {
				return object{"applied": true, "memberships": nodes["memberships"]}, nil
			}
			o.changes[id] = false
			return object{"applied": false}, nil
		}))
}

var move = object{"object_code": "company", "from_node_id": "31", "to_node_id": "32"}

// If the answer leaves open whether the change was made, the outcome is asked for.
func TestChangeOrganizationWithoutClearAnswer(t *testing.T) {
	t.Parallel()
	for kind, status := range map[apperr.Kind]int{
		apperr.Unavailable: http.StatusServiceUnavailable, apperr.Internal: http.StatusInternalServerError,
	} {
		for _, made := range []bool{true, false} {
			t.Run(fmt.Sprint(kind, made), func(t *testing.T) {
				t.Parallel()
				s, c := acme(t)
				user := addUser(t, c, "li.wei")
				o := &organization{}
				want, status := []string{"created", "deleted"}, status
				if made {
					o.lost = apperr.New(kind, "the answer is lost")
					want, status = []string{"created", "organization_changed", "deleted"}, http.StatusOK
				} else {
					o.refused = apperr.New(kind, "the answer is lost")
				}
				o.listen(t, s, true)
				answer := c.Post(path(user, "change-organization"), move)
				require.Equal(t, status, answer.Status, string(answer.Body))
				if made {
					require.Equal(t, nodes, answer.Object())
				}
				require.Equal(t, 1, o.settled)
				require.Zero(t, openChanges(t, s, "acme"))
				s.Clock.Advance(20 * time.Minute)
				require.NoError(t, replica(t, s)())
				require.Equal(t, want, actions(t, s, c, user))
			})
		}
	}
}

// A refusal is an answer: no intent is left, and the outcome is not asked for. A dry run never leaves an intent.
func TestChangeOrganizationRefused(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	o := (&organization{refused: apperr.Invalid("body.to_node_id", "is no node")}).listen(t, s, true)
	keyed := c.With("Idempotency-Key", "key-1")
	first := keyed.Post(path(user, "change-organization"), move)
	first.Problem(http.StatusBadRequest, "invalid_parameters", "body.to_node_id")
	require.JSONEq(t, string(first.Body), string(keyed.Post(path(user, "change-organization"), move).Body),
		"the refusal is what is kept with the key")
	require.Zero(t, openChanges(t, s, "acme"))
	o.refused = apperr.New(apperr.Unavailable, "the users service does not answer")
	c.Post(path(user, "change-organization?dry_run=true"), move).Problem(http.StatusServiceUnavailable, "unavailable")
	require.Zero(t, openChanges(t, s, "acme"))
	require.Zero(t, o.settled)
}

// A change that a request left open is ended as soon as the organization service tells the outcome: with one event in
// the request's name, or with none.
func TestOrganizationChangeLeftOpen(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{true, false} {
		t.Run(fmt.Sprint(made), func(t *testing.T) {
			t.Parallel()
			s, c := acme(t)
			user, finish := addUser(t, c, "li.wei"), replica(t, s)
			o := &organization{lost: apperr.New(apperr.Unavailable, "the answer is lost")}
			if !made {
				o.lost, o.refused = nil, o.lost
			}
			o.listen(t, s, false)
			require.Equal(t, "it is not known whether the change was made", c.With("X-Request-Id", "request-7").
				With("X-Payload-Origin", "hr").
				Post(path(user, "change-organization"), move).Problem(http.StatusBadGateway, "outcome_unknown").Detail)
			require.EqualValues(t, 1, openChanges(t, s, "acme"))

			s.Clock.Advance(10 * time.Second)
			_ = finish() // still nobody answers
			require.EqualValues(t, 1, openChanges(t, s, "acme"))
			s.Clock.Advance(30 * time.Second)
			o.settle(t, s)
			require.NoError(t, finish())
			require.Zero(t, openChanges(t, s, "acme"))
			s.Clock.Advance(20 * time.Minute)
			require.NoError(t, finish())

			if !made {
				require.Equal(t, []string{"created", "deleted"}, actions(t, s, c, user))
				return
			}
			e := untilAction(s, user, "organization_changed")
			require.Equal(t, []string{"test#tester", "request-7", "hr", "acme"},
				[]string{e.Actor, e.RequestID, e.PayloadOrigin, e.Tenant})
			data := members(t, e.Data)
			require.JSONEq(t, `"company"`, string(data["object_code"]))
			require.JSONEq(t, `"31"`, string(data["from_node_id"]))
			require.JSONEq(t, `"32"`, string(data["to_node_id"]))
			require.Equal(t, []string{"created", "organization_changed", "deleted"}, actions(t, s, c, user))
		})
	}
}

// A running request is left alone.
func TestOrganizationChangeIsNotSettledEarly(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	o := (&organization{lost: apperr.New(apperr.Unavailable, "the answer is lost")}).listen(t, s, false)
	c.Post(path(user, "change-organization"), move).Problem(http.StatusBadGateway, "outcome_unknown")
	o.settle(t, s)
	s.Clock.Advance(10*time.Second - time.Millisecond)
	require.NoError(t, replica(t, s)())
	require.Zero(t, o.settled)
	require.EqualValues(t, 1, openChanges(t, s, "acme"))
}

// A user who is deleted before the outcome is known gets no event after user.deleted, which ends the membership.
func TestOrganizationChangeOfDeletedUser(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	o := (&organization{lost: apperr.New(apperr.Unavailable, "the answer is lost")}).listen(t, s, false)
	c.Post(path(user, "change-organization"), move).Problem(http.StatusBadGateway, "outcome_unknown")
	c.Delete(path(user), nil).OK(nil)
	o.settle(t, s)
	s.Clock.Advance(10 * time.Second)
	require.NoError(t, replica(t, s)())
	require.Zero(t, openChanges(t, s, "acme"))
	last := addUser(t, c, "last")
	for _, e := range s.EventsUntil(func(e stream.Event) bool { return e.Subject == last["id"] }) {
		require.NotEqual(t, "idp.user.organization_changed", e.Type)
	}
}

// Any number of replicas end each change once.
func TestReplicasFinishOrganizationChangesOnce(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	o := (&organization{lost: apperr.New(apperr.Unavailable, "the answer is lost")}).listen(t, s, false)
	var moved []object
	for n := range 12 {
		user := addUser(t, c, fmt.Sprint("user", n))
		c.Post(path(user, "change-organization"), move).Problem(http.StatusBadGateway, "outcome_unknown")
		moved = append(moved, user)
	}
	o.settle(t, s)
	s.Clock.Advance(10 * time.Second)
	replicas := []func() error{replica(t, s), replica(t, s), replica(t, s), replica(t, s)}
	failed := basic.AtOnce(len(replicas), func(i int) int {
		if replicas[i]() != nil {
			return 1
		}
		return 0
	})
	require.Equal(t, map[int]int{0: len(replicas)}, failed)
	require.Zero(t, openChanges(t, s, "acme"))
	for _, user := range moved {
		require.Equal(t, []string{"created", "organization_changed", "deleted"}, actions(t, s, c, user))
	}
}

// A change whose outcome is not answered does not delay the others.
func TestOrganizationChangesBehindABadOne(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	bad, good, finish := addUser(t, c, "bad"), addUser(t, c, "good"), replica(t, s)
	o := (&organization{lost: apperr.New(apperr.Unavailable, "the answer is lost")}).listen(t, s, false)
	c.Post(path(bad, "change-organization"), move).Problem(http.StatusBadGateway, "outcome_unknown")
	for id := range o.changes {
		o.mute = id
	}
	s.Clock.Advance(time.Millisecond)
	c.Post(path(good, "change-organization"), move).Problem(http.StatusBadGateway, "outcome_unknown")
	o.settle(t, s)
	s.Clock.Advance(10 * time.Second)
	_ = finish()
	require.NoError(t, finish())
	require.EqualValues(t, 1, openChanges(t, s, "acme"))
	untilAction(s, good, "organization_changed")
	o.Lock()
	o.mute = ""
	o.Unlock()
	s.Clock.Advance(30 * time.Second)
	require.NoError(t, finish())
	require.Zero(t, openChanges(t, s, "acme"))
	require.Equal(t, []string{"created", "organization_changed", "deleted"}, actions(t, s, c, bad))
}

// If a request is so slow that its change is finished for it, it still succeeds, and sends no event twice.
func TestOrganizationChangeFinishedMeanwhile(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user, finish := addUser(t, c, "li.wei"), replica(t, s)
	o := &organization{asked: func() {
		s.Clock.Advance(10 * time.Second)
		if err := finish(); err != nil {
			t.Error(err)
		}
	}}
	o.listen(t, s, true)
	require.Equal(t, nodes, c.Post(path(user, "change-organization"), move).Object())
	require.Equal(t, []string{"created", "organization_changed", "deleted"}, actions(t, s, c, user))
}

// A request that dies after its change, or that only looks dead as here, leaves the change to the next one with its
// key, which asks for no change of its own.
func TestOrganizationChangeWithoutItsRequest(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	keyed := c.With("Idempotency-Key", "key-1").With("X-Payload-Origin", "first")
	var again atomic.Bool
	o := &organization{}
	o.asked = func() {
		if !again.Swap(true) {
			s.Clock.Advance(time.Minute)
			keyed.With("X-Payload-Origin", "second").Post(path(user, "change-organization"), move).OK(nil)
		}
	}
	o.listen(t, s, true)
	keyed.Post(path(user, "change-organization"), move).Problem(http.StatusConflict, "request_in_progress")
	require.NoError(t, replica(t, s)())
	require.Zero(t, openChanges(t, s, "acme"))
	require.Equal(t, "true", keyed.Post(path(user, "change-organization"), move).
		OK(nil).Header.Get("Idempotent-Replayed"))
	c.Delete(path(user), nil).OK(nil)
	told := map[string]int{}
	for _, e := range s.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.user.deleted" }) {
		if strings.HasSuffix(e.Type, ".organization_changed") {
			told[e.PayloadOrigin]++
		}
	}
	require.Equal(t, map[string]int{"second": 1}, told)
}

// A request that is repeated with its key after 502 has the first one's change as its answer, if that was made: the
// organization service would refuse to move the user once more. If it was not made, it is now.
func TestOrganizationChangeRepeated(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{true, false} {
		for _, finished := range []bool{true, false} { // before the request is repeated
			t.Run(fmt.Sprint("made ", made, ", finished ", finished), func(t *testing.T) {
				t.Parallel()
				s, c := acme(t)
				user, finish := addUser(t, c, "li.wei"), replica(t, s)
				lost := apperr.New(apperr.Unavailable, "the answer is lost")
				o := &organization{refused: lost}
				if made {
					o.lost, o.refused = lost, nil
				}
				o.listen(t, s, false)
				keyed := c.With("Idempotency-Key", "key-1")
				for range 2 {
					keyed.Post(path(user, "change-organization"), move).
						Problem(http.StatusBadGateway, "outcome_unknown")
				}
				o.settle(t, s)
				if finished {
					s.Clock.Advance(40 * time.Second)
					require.NoError(t, finish())
					require.Zero(t, openChanges(t, s, "acme"))
				}
				o.Lock()
				if o.lost, o.refused = nil, nil; made {
					o.refused = apperr.Invalid("from_node_id", "is not a node of which the user is a member")
				}
				o.Unlock()
				for range 2 {
					require.Equal(t, nodes, keyed.Post(path(user, "change-organization"), move).Object())
				}
				require.Zero(t, openChanges(t, s, "acme"))
				s.Clock.Advance(20 * time.Minute)
				require.NoError(t, finish())
				require.Equal(t, []string{"created", "organization_changed", "deleted"}, actions(t, s, c, user))
			})
		}
	}
}

// A client that disconnects stops nothing.
func TestOrganizationChangeWithoutItsClient(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	ctx, leave := context.WithCancel(t.Context())
	(&organization{asked: leave}).listen(t, s, false)
	body, err := json.Marshal(move)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, path(user, "change-organization"), bytes.NewReader(body)).WithContext(ctx)
	r.Header.Set("Authorization", "Bearer "+s.Token("acme", auth.UsersWrite, auth.OrganizationWrite))
	r.Header.Set("Content-Type", "application/json")
	s.Handler.ServeHTTP(httptest.NewRecorder(), r)
	require.Error(t, ctx.Err())

	require.Zero(t, openChanges(t, s, "acme"))
	require.Equal(t, []string{"created", "organization_changed", "deleted"}, actions(t, s, c, user))
}

var ids = regexp.MustCompile(`"(id|user_id)": "\d+"`)

// What one version leaves open, the next must be able to finish.
func TestGoldenOrganizationChange(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	began := s.Clock.Now()
	user := addUser(t, c, "li.wei")
	(&organization{lost: apperr.New(apperr.Unavailable, "the answer is lost")}).listen(t, s, false)
	s.Clock.Advance(time.Second)
	c.With("X-Request-Id", "request-7").With("X-Payload-Origin", "hr").
		Post(path(user, "change-organization"), move).Problem(http.StatusBadGateway, "outcome_unknown")
	open := testkit.Stored(t, s, "acme", "organization_changes")
	require.Len(t, open, 1)
	for id, document := range open {
		require.NotEqual(t, user["id"], id)
		require.Equal(t, fmt.Sprintf("%q", user["id"]), string(members(t, []byte(document))["user_id"]))
		var text bytes.Buffer
		require.NoError(t, json.Indent(&text, []byte(document), "", "  "))
		text.WriteByte('\n')
		basic.Golden(t, "testdata/organization_change.json.golden",
			ids.ReplaceAll(basic.Since(t, began, text.Bytes()), []byte(`"$1": "…"`)))
	}
}
