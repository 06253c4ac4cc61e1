package outbox_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
)

var update = flag.Bool("update", false, "write the golden files")

// engine keeps appended messages. The other methods of an engine are not needed here.
type engine struct {
	docstore.Engine
	tx transaction
}

type transaction struct {
	docstore.EngineTx
	messages []docstore.Message
}

func (e *engine) Prepare(context.Context, []*docstore.Def) error { return nil }

func (e *engine) Write(_ context.Context, fn func(docstore.EngineTx) error) error { return fn(&e.tx) }

func (tx *transaction) Append(_ context.Context, m docstore.Message) error {
	tx.messages = append(tx.messages, m)
	return nil
}

type fixed struct{}

func (fixed) Now() clock.Time { return clock.FromMillis(1769851800123) }

// appended is the message that Append makes from e.
func appended(ctx context.Context, e outbox.Event) (docstore.Message, error) {
	var kept engine
	store, err := docstore.Open(ctx, &kept, fixed{})
	if err != nil {
		return docstore.Message{}, err
	}
	_, err = docstore.Write(ctx, store, func(tx *docstore.Tx) (any, error) { return nil, outbox.Append(ctx, tx, e) })
	if err != nil {
		return docstore.Message{}, err
	}
	return kept.tx.messages[0], nil
}

func caller(ctx context.Context) context.Context {
	return request.With(ctx, request.Info{ID: "req-7", Tenant: "acme", Actor: "1048577", PayloadOrigin: "hr <人事> & co"})
}

func moved() outbox.Event {
	return outbox.Event{
		Entity: "user", Action: "updated", Source: "/users", Subject: "1048576", Revision: 900719925474099,
		Record: json.RawMessage(
			`{"id":"1048576","name":"山田 <太郎>","free_ext_props":{"big":123456789012345678901234567890}}`),
		Previous: map[string]json.RawMessage{"name": json.RawMessage(`"鈴木"`), "age": json.RawMessage(`null`)},
		Extra:    map[string]any{"reason": "a & b", "cascade": true},
	}
}

var someID = regexp.MustCompile(`"id":"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"`)

func TestEnvelope(t *testing.T) {
	t.Parallel()
	trace1, err := trace.TraceIDFromHex("0af7651916cd43dd8448eb211c80319c")
	require.NoError(t, err)
	span, err := trace.SpanIDFromHex("b7ad6b7169203331")
	require.NoError(t, err)
	traced := trace.ContextWithSpanContext(caller(t.Context()),
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace1, SpanID: span, TraceFlags: trace.FlagsSampled}))
	for name, c := range map[string]struct {
		ctx   context.Context
		event outbox.Event
	}{
		"full": {traced, moved()},
		"least": {request.With(t.Context(), request.Info{Tenant: "acme"}),
			outbox.Event{Entity: "node", Action: "created", Source: "/nodes", Subject: "1", Revision: 1,
				Record: json.RawMessage(`{}`)}},
	} {
		m, err := appended(c.ctx, c.event)
		require.NoError(t, err)
		got := someID.ReplaceAllString(string(m.Payload), `"id":"…"`) + "\n"
		file := "testdata/" + name + ".json"
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), got)
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	before := time.Now().Truncate(time.Millisecond)
	m, err := appended(caller(t.Context()), moved())
	require.NoError(t, err)
	require.Equal(t, "idp.events.acme.user.updated", m.Subject)
	require.Equal(t, "acme/users/1048576", m.Record)
	id, err := uuid.Parse(m.ID)
	require.NoError(t, err)
	require.Equal(t, uuid.Version(7), id.Version())
	sec, nsec := id.Time().UnixTime()
	require.False(t, time.Unix(sec, nsec).Before(before))

	// The bus can read what the outbox writes, and both mean the same record.
	e, err := stream.Decode(m.Subject, m.Payload)
	require.NoError(t, err)
	require.Equal(t, m.ID, e.ID)
	require.Equal(t, m.Record, e.Record())
	require.Equal(t, moved().Revision*10, e.Sequence)
	require.Equal(t, "2026-01-31T09:30:00.123Z", e.Time.String())
	require.Equal(t, "hr <人事> & co", e.PayloadOrigin)
	var data struct {
		Record   json.RawMessage
		Previous map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(e.Data, &data))
	require.Equal(t, string(moved().Record), string(data.Record), "byte for byte")
	require.Equal(t, moved().Previous, data.Previous)
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*outbox.Event){
		"an entity of two tokens":     func(e *outbox.Event) { e.Entity = "user.x" },
		"a wildcard action":           func(e *outbox.Event) { e.Action = "*" },
		"no action":                   func(e *outbox.Event) { e.Action = "" },
		"a source that is not a path": func(e *outbox.Event) { e.Source = "users" },
		"no subject":                  func(e *outbox.Event) { e.Subject = "" },
		"no revision":                 func(e *outbox.Event) { e.Revision = 0 },
		"no record":                   func(e *outbox.Event) { e.Record = nil },
		"a record that is not JSON":   func(e *outbox.Event) { e.Record = json.RawMessage(`{`) },
		"a previous that is not JSON": func(e *outbox.Event) { e.Previous["name"] = json.RawMessage(`"`) },
		"a second record":             func(e *outbox.Event) { e.Extra["record"] = 1 },
		"a second previous":           func(e *outbox.Event) { e.Extra["previous"] = 1 },
		"an invalid member":           func(e *outbox.Event) { e.Extra[`a"b`] = 1 },
		"a member that is not JSON":   func(e *outbox.Event) { e.Extra["f"] = func() {} },
		"more than MaxSize":           func(e *outbox.Event) { e.Extra["big"] = strings.Repeat("x", outbox.MaxSize) },
	} {
		e := moved()
		change(&e)
		_, err := appended(caller(t.Context()), e)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "鈴木", name)
	}
	for _, tenant := range []string{"", "a.b", "a b", "*", ">", "Acme", "-a", "テナント", strings.Repeat("a", 64)} {
		_, err := appended(request.With(t.Context(), request.Info{Tenant: tenant}), moved())
		require.Error(t, err, tenant)
	}
}

type note struct {
	docstore.Meta
	Text string `json:"text"`
}

var notes = docstore.Define(docstore.Schema[note]{Name: "notes", Noun: "note"})

// The sequence grows with the events of one record, for any changes, in one transaction or several.
func opened(t *testing.T, def *docstore.Def) *docstore.Store {
	t.Helper()
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: filepath.Join(t.TempDir(), "test.db")})
	require.NoError(t, err)
	store, err := docstore.Open(t.Context(), engine, fixed{}, def)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func TestSequences(t *testing.T) {
	t.Parallel()
	ctx, store := caller(t.Context()), opened(t, notes.Def())
	kind := outbox.Kind{Entity: "note", Source: "/notes"}
	write := func(fn func(tx *docstore.Tx, tell func(doc docstore.Doc[note], err error) error) error) error {
		err := docstore.Do(ctx, store, func(tx *docstore.Tx) error {
			return fn(tx, func(doc docstore.Doc[note], err error) error {
				if err != nil {
					return err
				}
				return outbox.Tell(ctx, tx, kind, "told", &doc, nil)
			})
		})
		return err
	}
	require.NoError(t, write(func(tx *docstore.Tx, tell func(docstore.Doc[note], error) error) error {
		doc, err := notes.Insert(ctx, tx, &note{Meta: docstore.Meta{ID: "1"}})
		for range 10 {
			if err := tell(doc, err); err != nil {
				return err
			}
		}
		return nil
	}))
	eleventh := write(func(tx *docstore.Tx, tell func(docstore.Doc[note], error) error) error {
		n, err := notes.Load(ctx, tx, "1")
		require.NoError(t, err)
		doc, err := notes.Touch(ctx, tx, n)
		for range 10 {
			require.NoError(t, tell(doc, err))
		}
		return tell(doc, err)
	})
	require.ErrorContains(t, eleventh, "more than 10")
	unwritten := write(func(tx *docstore.Tx, tell func(docstore.Doc[note], error) error) error {
		return tell(notes.Find(ctx, tx, "1"))
	})
	require.ErrorContains(t, unwritten, "has not written")
	unchanged := write(func(tx *docstore.Tx, tell func(docstore.Doc[note], error) error) error {
		n, err := notes.Load(ctx, tx, "1")
		require.NoError(t, err)
		return tell(notes.Replace(ctx, tx, n))
	})
	require.ErrorContains(t, unchanged, "has not written")
	require.NoError(t, write(func(tx *docstore.Tx, tell func(docstore.Doc[note], error) error) error {
		n, err := notes.Load(ctx, tx, "1")
		require.NoError(t, err)
		require.NoError(t, tell(notes.Revise(ctx, tx, n)))
		n.Text = "new"
		require.NoError(t, tell(notes.Replace(ctx, tx, n)))
		return tell(notes.Delete(ctx, tx, n))
	}))
	pending, err := store.Pending(ctx, 0, 100)
	require.NoError(t, err)
	var sequences []int64
	for _, m := range pending {
		e, err := stream.Decode(m.Subject, m.Payload)
		require.NoError(t, err)
		sequences = append(sequences, e.Sequence)
	}
	require.Equal(t, []int64{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 30, 40}, sequences)

	// Consumers that compare sequences would drop an event about an older state after one about a newer state.
	outdated := write(func(tx *docstore.Tx, tell func(docstore.Doc[note], error) error) error {
		old, err := notes.Insert(ctx, tx, &note{Meta: docstore.Meta{ID: "2"}})
		require.NoError(t, err)
		n, err := notes.Load(ctx, tx, "2")
		require.NoError(t, err)
		require.NoError(t, tell(notes.Touch(ctx, tx, n)))
		return tell(old, nil)
	})
	require.ErrorContains(t, outdated, "later revision")
}

func TestEveryRecordArrivesAsItIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		record, err := json.Marshal(map[string]string{rapid.String().Draw(rt, "name"): rapid.String().
			Draw(rt, "value")})
		require.NoError(rt, err)
		e := moved()
		e.Record = record
		e.Subject = rapid.StringN(1, 20, -1).Filter(func(s string) bool {
			return s == strings.ToValidUTF8(s, "")
		}).Draw(rt, "subject")
		m, err := appended(caller(t.Context()), e)
		require.NoError(rt, err)
		got, err := stream.Decode(m.Subject, m.Payload)
		require.NoError(rt, err)
		require.Equal(rt, e.Subject, got.Subject)
		var data struct{ Record json.RawMessage }
		require.NoError(rt, json.Unmarshal(got.Data, &data))
		require.Equal(rt, string(record), string(data.Record))
	})
}
