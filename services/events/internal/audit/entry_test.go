package audit

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/events/internal/catalogue"
)

// AppendJSON writes each member itself: none must be missing.
func TestJSONOfAnEntry(t *testing.T) {
	t.Parallel()
	now := clock.FromMillis(1_769_851_800_123)
	for _, entry := range []*Entry{
		{Changes: []Change{}},
		{
			Meta: docstore.Meta{ID: "1099511627777", TenantID: "acme", Version: 1, TimeCreated: now, TimeModified: now},
			Time: now, Actor: "山田 \"a\"\n<b>", RequestID: "r", Origin: "o\x00", Entity: "user", Record: "7",
			Action: "updated", Outcome: Done, Reason: "why", Address: "192.0.2.1", Count: 9, EventID: "e",
			Changes: []Change{
				{Member: "email", Before: null, After: jsontext.Value(`"a@b"`)},
				{Member: "山", Before: jsontext.Value(`{"a":[1.0]}`), After: null},
			},
		},
	} {
		want, err := json.Marshal(entry)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(entry.AppendJSON(nil)))
		require.Equal(t, "[", string(entry.AppendJSON([]byte("["))[:1]))
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	const meta = `"id":"7","tenant_id":"acme","version":2,"time_created":"x","time_modified":"y"`
	for _, c := range []struct{ name, action, data, want string }{
		{"of a creation: all that is set, in the order of names", "created",
			`{"record":{` + meta + `,"b":"x","a":1,"empty":"","none":null,"list":[],"object":{}}}`,
			`[{"member":"a","before":null,"after":1},{"member":"b","before":null,"after":"x"}]`},
		{"of a deletion", "deleted", `{"record":{` + meta + `,"a":1}}`, `[{"member":"a","before":1,"after":null}]`},
		{"of a change: what changed", "updated",
			`{"record":{` + meta + `,"a":2,"b":[ 1 ],"c":0},"previous":{"a":1,"b":[]}}`,
			`[{"member":"a","before":1,"after":2},{"member":"b","before":[],"after":[ 1 ]}]`},
		{"members that came and went", "moved", `{"record":{` + meta + `,"a":2},"previous":{"b":1,"a":null}}`,
			`[{"member":"a","before":null,"after":2},{"member":"b","before":1,"after":null}]`},
		{"nothing was set before or after", "updated", `{"record":{"a":null},"previous":{"a":""}}`, `[]`},
		{"further members of data", "ended", `{"reason":{"record":{"a":1}},"record":{"a":2},"previous":{"a":1}}`,
			`[{"member":"a","before":1,"after":2}]`},
		{"a record that its first change made", "updated", `{"record":{"version":1,"a":2}}`,
			`[{"member":"a","before":null,"after":2}]`},
		{"a later change that tells no previous members", "updated", `{"record":{"version":2,"a":2}}`, `[]`},
		{"no previous members", "touched", `{"record":{"a":2}}`, `[]`},
		{"no JSON", "created", `{"record":{"a":`, `[]`},
		{"no object", "created", `[{"record":{"a":1}}]`, `[]`},
		{"a record that is no object", "created", `{"record":["a","b"]}`, `[]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(changesOf(c.action, []byte(c.data)))
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(got))
		})
	}
}

func TestLargeValuesAreReplacedByTheirSize(t *testing.T) {
	t.Parallel()
	value, err := json.Marshal(make([]byte, maxValue))
	require.NoError(t, err)
	changes := changesOf("created", []byte(`{"record":{"a":`+string(value)+`}}`))
	require.JSONEq(t, `"(10926 bytes)"`, string(changes[0].After))
}

func TestDeniedAttemptIsAnEntry(t *testing.T) {
	t.Parallel()
	entry := entryOf(&stream.Event{
		Type: "idp.access.denied", Subject: "5", Actor: "system", ID: "e", Data: json.RawMessage(`{"record":{` +
			`"operation":"create-user","actor":"ann","address":"192.0.2.1","reason":"forbidden: x","count":3}}`),
	})
	require.Equal(t, &Entry{
		Actor: "ann", Entity: "access", Action: "create-user", Outcome: Denied, Reason: "forbidden: x",
		Address: "192.0.2.1", Count: 3, Changes: []Change{}, EventID: "e",
	}, entry)
	failed := entryOf(&stream.Event{
		Type: "idp.user.login_failed", Subject: "7", Data: json.RawMessage(`{"record":{"id":"7"}}`),
	})
	require.Equal(t, []any{Denied, "login failed", "7"}, []any{failed.Outcome, failed.Reason, failed.Record})
	refused := entryOf(&stream.Event{
		Type: "idp.sign_in.refused", Subject: "5", Actor: "iss#7", Data: json.RawMessage(`{"record":{"user_id":"7",` +
			`"address":"192.0.2.1","reason":"not_granted"},"previous":{"applications":[]}}`),
	})
	require.Equal(t, &Entry{
		Actor: "iss#7", Entity: "sign_in", Record: "5", Action: "refused", Outcome: Denied, Reason: "not_granted",
		Address: "192.0.2.1", Count: 1, Changes: []Change{{"user_id", null, jsontext.Value(`"7"`)}},
	}, refused)
	entered := entryOf(&stream.Event{
		Type: "idp.sign_in.completed", Subject: "5", Data: json.RawMessage(`{"record":{"user_id":"7",` +
			`"address":"192.0.2.1","reason":""},"previous":{"applications":[]}}`),
	})
	require.Equal(t, &Entry{
		Entity: "sign_in", Record: "5", Action: "completed", Outcome: Done, Address: "192.0.2.1", Count: 1,
		Changes: []Change{{"user_id", null, jsontext.Value(`"7"`)}},
	}, entered)
	client := entryOf(&stream.Event{
		Type: "idp.client.authentication_failed", Subject: "9", Data: json.RawMessage(`{"record":{"client_id":"c",` +
			`"address":"192.0.2.1","reason":"wrong_secret","count":12},"previous":{"count":11}}`),
	})
	require.Equal(t, &Entry{
		Entity: "client", Record: "9", Action: "authentication_failed", Outcome: Denied, Reason: "wrong_secret",
		Address: "192.0.2.1", Count: 1, Changes: []Change{},
	}, client)
}

// Each type of events that tells of an attempt is one whose entries are denied. A mail that
// could not be sent is a failure of the platform, and no attempt of a caller.
func TestAttemptsAreInTheCatalogue(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, kind := range catalogue.All() {
		isMail := strings.HasPrefix(kind.Type, "message.")
		if !isMail && regexp.MustCompile(`(failed|refused|denied)$`).MatchString(kind.Type) {
			found[kind.Type] = true
		}
	}
	require.Equal(t, attempts, found)
}
