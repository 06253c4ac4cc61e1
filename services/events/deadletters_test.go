package events_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/events"
)

const deadLettersPath = "/v1/dead-letters"

// park keeps an event as a consumer does that could not handle it.
func park(t testing.TB, s *testkit.Service, consumer, record string) {
	t.Helper()
	publishParked(t, s, "idp.deadletters.parked."+consumer+".globex", "globex", fmt.Appendf(nil,
		`{"specversion":"1.0","id":"e%s","source":"/things","type":"idp.component.created","subject":%q,`+
			`"time":"2026-01-31T09:30:00.000Z","datacontenttype":"application/json","tenantid":"globex",`+
			`"sequence":"1","data":{"record":{"id":%q}}}`, record, record, record))
}

// publishParked publishes what a consumer does to keep an event that it could not handle.
func publishParked(t testing.TB, s *testkit.Service, subject, tenant string, event []byte) {
	t.Helper()
	m := nats.NewMsg(subject)
	m.Header.Set("Idp-Original-Subject", "idp.events."+tenant+".component.created")
	m.Header.Set("Idp-Reason", "it does not fit")
	m.Header.Set("Idp-Tries", "10")
	m.Data = event
	_, err := s.Deps.Bus.JetStream().PublishMsg(t.Context(), m)
	require.NoError(t, err)
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin := s.As("root", auth.PlatformAdmin)
	require.Equal(t, object{"items": []any{}, "total": 0.0, "page_num": 1.0, "page_size": 20.0},
		admin.Get(deadLettersPath).Object())
	for n := range 7 {
		park(t, s, "users-a", fmt.Sprint(n))
	}
	park(t, s, "jobs-b", "7")
	list := func(query string) (subjects []string) {
		for _, item := range admin.Get(deadLettersPath + "?" + query).Object()["items"].([]any) {
			subjects = append(subjects, item.(object)["event"].(object)["subject"].(string))
		}
		return subjects
	}
	require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "7"}, list(""))
	require.Equal(t, []string{"7"}, list("consumer=jobs-b"))
	require.Equal(t, []string{"5", "6"}, list("consumer=users-a&page_size=5&page_num=2"))
	require.Empty(t, list("page_num=9"))
	require.Empty(t, list("time_from=2100-01-01"))
	require.Len(t, list("time_from=2020-01-01"), 8)
	page := admin.Get(deadLettersPath + "?consumer=users-a&page_size=3").Object()
	require.EqualValues(t, 7, page["total"])
	token := page["next_page_token"].(string)
	require.Equal(t, []string{"3", "4", "5"}, list("consumer=users-a&page_size=3&page_token="+token))
	for query, location := range map[string]string{
		"page_token=" + token: "query.page_token", "page_token=x": "query.page_token", "time_from=x": "query.time_from",
		"page_sort=name": "query.page_sort", "consumer=*": "query.consumer",
	} {
		admin.Get(deadLettersPath+"?"+query).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}

	first := page["items"].([]any)[0].(object)
	for member, want := range map[string]any{"tenant_id": "globex", "consumer": "users-a", "error": "it does not fit",
		"tries": 10.0} {
		require.Equal(t, want, first[member], member)
	}
	path := deadLettersPath + "/" + id(first)
	require.Equal(t, first, admin.Get(path).Object())
	require.Equal(t, object{"id": id(first)}, admin.Delete(path+"?dry_run=true", nil).Object())
	require.Equal(t, object{"id": id(first)}, admin.Delete(path, nil).Object())
	for _, gone := range []string{path, deadLettersPath + "/1", deadLettersPath + "/x", deadLettersPath + "/0"} {
		admin.Get(gone).Problem(http.StatusNotFound, "not_found")
		admin.Delete(gone, nil).Problem(http.StatusNotFound, "not_found")
		admin.Post(gone+"/replay", nil).Problem(http.StatusNotFound, "not_found")
	}
	require.Len(t, list("consumer=users-a"), 6)
	entry := awaitEntries(t, s.As("root", read), "entity=dead_letter", 1)[0]
	require.Equal(t, []any{"deleted", id(first)}, []any{entry["action"], entry["record"]})
	s.As("root", read, write).Get(deadLettersPath).Problem(http.StatusForbidden, "forbidden")
}

// An event that a consumer could not handle can be replayed to it.
func TestReplayOfADeadLetter(t *testing.T) {
	t.Parallel()
	handled := make(chan stream.Event, 10)
	spec := events.Spec(events.DefaultConfig())
	newApp := spec.New
	spec.New = func(ctx context.Context, d service.Deps) (service.App, error) {
		app, err := newApp(ctx, d)
		app.Consumers = append(app.Consumers, stream.ConsumerConfig{
			Name: "test-things", Types: stream.Types{"component.*"},
			Handle: func(_ context.Context, e stream.Event) error { handled <- e; return nil },
		})
		return app, err
	}
	s := testkit.Start(t, spec)
	s.Ready()
	admin := s.As("root", auth.PlatformAdmin)
	park(t, s, "test-things", "7")
	letter := admin.Get(deadLettersPath).Object()["items"].([]any)[0].(object)
	path := deadLettersPath + "/" + id(letter)
	admin.Post(path+"/replay?dry_run=true", nil).OK(nil)
	require.Equal(t, letter, admin.Post(path+"/replay", nil).Object())
	select {
	case e := <-handled:
		require.Equal(t, []string{"e7", "globex"}, []string{e.ID, e.Tenant})
	case <-time.After(patient):
		t.Fatal("it was not replayed")
	}
	require.Empty(t, admin.Get(deadLettersPath).Object()["items"])
}

// A tenant whose dead letters use up its share of the storage loses the oldest of its longest queue. What operators
// have removed or replayed does not count, and no other tenant loses any.
func TestAFloodOfDeadLettersDropsTheTenantsOwn(t *testing.T) {
	t.Parallel()
	s := startWith(t, small())
	admin := s.As("root", auth.PlatformAdmin)
	large := []byte(`"` + strings.Repeat("x", 100<<10) + `"`)
	flood := func(consumer string, n int) {
		for range n {
			publishParked(t, s, "idp.deadletters.parked."+consumer+".acme", "acme", large)
		}
		tell(t, s, "acme", "1", 1, "created") // the sizes of streams are looked at when events come
	}
	lettersOf := func(consumer string) []any {
		return admin.Get(deadLettersPath + "?consumer=" + consumer).Object()["items"].([]any)
	}
	park(t, s, "users-a", "7") // globex's
	flood("jobs-b", 4)
	flood("users-a", 15)
	wait.Until(t, func() bool { return sizeOf(t, s, bus.DeadLetterStream) < 1<<20 })
	require.Len(t, lettersOf("jobs-b"), 4)
	kept := lettersOf("users-a")
	require.Equal(t, "globex", kept[0].(object)["tenant_id"])

	for _, item := range kept[1:] {
		admin.Delete(deadLettersPath+"/"+id(item.(object)), nil).OK(nil)
	}
	replayed, err := s.Deps.Bus.Replay(t.Context(), "jobs-b")
	require.NoError(t, err)
	require.Equal(t, 4, replayed)
	flood("users-a", 8)
	wait.Until(t, func() bool { return sizeOf(t, s, bus.DeadLetterStream) < 1<<20 })
	require.Contains(t, []int{1 + 5, 1 + 6}, len(lettersOf("users-a")))
	stream, err := s.Deps.Bus.JetStream().Stream(t.Context(), bus.DeadLetterStream)
	require.NoError(t, err)
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("idp.deadletters.replay.jobs-b.*"))
	require.NoError(t, err)
	require.EqualValues(t, 4, info.State.Subjects["idp.deadletters.replay.jobs-b.acme"])
}

// Events that do not fit into a page are left out of it, and shown one by one.
func TestLargeDeadLetters(t *testing.T) {
	t.Parallel()
	s := start(t)
	admin := s.As("root", auth.PlatformAdmin)
	large, err := json.Marshal(strings.Repeat("x", 3<<20))
	require.NoError(t, err)
	for range 2 {
		_, err := s.Deps.Bus.JetStream().Publish(t.Context(), "idp.deadletters.parked.users-a.acme", large)
		require.NoError(t, err)
	}
	items := admin.Get(deadLettersPath).Object()["items"].([]any)
	require.NotNil(t, items[0].(object)["event"])
	require.Nil(t, items[1].(object)["event"])
	require.NotNil(t, admin.Get(deadLettersPath + "/" + id(items[1].(object))).Object()["event"])
}
