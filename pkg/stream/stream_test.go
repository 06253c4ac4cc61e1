package stream

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
	"github.com/idplatform/idplatform/pkg/testkit/natstest"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const patient = wait.Long // how long a test waits for what must happen

// program is a program that reads and publishes events.
type program struct {
	*Log
	*bus.Bus
}

func connect(t testing.TB, server bus.Config) program {
	t.Helper()
	server.Name, server.Log = "test", slog.New(slog.NewTextHandler(t.Output(), nil))
	b, err := bus.Connect(t.Context(), server)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		require.NoError(t, b.Close(ctx))
	})
	l, err := New(Config{Bus: b, Log: server.Log})
	require.NoError(t, err)
	return program{l, b}
}

// open makes a program with streams, on a server of its own.
func open(t testing.TB) (program, *natstest.Server) {
	t.Helper()
	x := natstest.New(t, "", slog.New(slog.DiscardHandler))
	p := connect(t, bus.Config{InProcess: x})
	p.EnsureStreams(t.Context())
	require.NoError(t, p.Ready())
	return p, x
}

// message makes the event of one version of a record.
func message(record string, version int) docstore.Message {
	id := record + "-" + strconv.Itoa(version)
	return docstore.Message{
		ID: id, Subject: "idp.events.acme.user.updated", Record: record,
		Payload: fmt.Appendf(nil,
			`{"specversion":"1.0","id":%q,"source":"/users","type":"idp.user.updated","subject":%q,"tenantid":"acme",`+
				`"requestid":"req-1","payloadorigin":"hr","sequence":"%d","data":{"record":{}}}`, id, record, version),
	}
}

// publish publishes each message again until it is stored, as the relay does: a server that has just been started again
// may be away without the connection having noticed.
func publish(t *testing.T, p program, messages ...docstore.Message) {
	t.Helper()
	for _, m := range messages {
		wait.Until(t, func() bool { return p.Publish(t.Context(), []docstore.Message{m})[0] == nil })
	}
}

// hasRead reports whether the Log's newest event is the one with the id.
func (p program) hasRead(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastID == id
}

func (p program) lostAt() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}
