package stream

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/replicas"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
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
	store *docstore.Store
	group *replicas.Group
	leave func() // ends the program's part in the group
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
	return program{Log: l, Bus: b}
}

// runGroup makes a group and runs it until leave.
func runGroup(t testing.TB, store *docstore.Store, alone bool) (group *replicas.Group, leave func()) {
	t.Helper()
	group = replicas.New(store, basic.Log(t), alone)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			_ = group.Run(ctx) // it is tried again
		}
	})
	leave = func() { cancel(); running.Wait() }
	t.Cleanup(leave)
	return group, leave
}

// replica makes another program with the same store and server.
func (p program) replica(t testing.TB, x *natstest.Server) program {
	t.Helper()
	other := program{store: p.store}
	other.group, other.leave = runGroup(t, p.store, false)
	made := connect(t, bus.Config{InProcess: x})
	other.Log, other.Bus = made.Log, made.Bus
	return other
}

// open makes a program with a store and streams, on a server of its own.
func open(t testing.TB) (program, *natstest.Server) {
	t.Helper()
	x := natstest.New(t, "", slog.New(slog.DiscardHandler))
	p := program{store: newStore(t)}.replica(t, x)
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
