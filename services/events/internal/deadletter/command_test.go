package deadletter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/bus/embedded"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/events/internal/deadletter"
)

// The command does on the machine what the operations do over HTTP.
func TestCommand(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(embedded.Config{StoreDir: t.TempDir(), Log: basic.Log(t)})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	b, err := bus.Connect(t.Context(), bus.Config{InProcess: server.Conn(), Name: "test", Log: basic.Log(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(context.Background())) })
	b.EnsureStreams(t.Context())
	for n := range 250 {
		m := nats.NewMsg(fmt.Sprintf("idp.deadletters.parked.c%d.acme", n%2))
		m.Header.Set("Idp-Original-Subject", "idp.events.acme.user.created")
		m.Header.Set("Idp-Tries", "10")
		m.Data = []byte(`{"subject":"7"}`)
		_, err := b.JetStream().PublishMsg(t.Context(), m)
		require.NoError(t, err)
	}
	run := func(words ...string) (lines []deadletter.Letter) {
		t.Helper()
		var out bytes.Buffer
		require.NoError(t, deadletter.Command(t.Context(), b, words, &out))
		if len(words) == 2 {
			return nil
		}
		for decoder := json.NewDecoder(&out); decoder.More(); {
			var one deadletter.Letter
			require.NoError(t, decoder.Decode(&one))
			lines = append(lines, one)
		}
		return lines
	}
	require.Len(t, run(), 250)
	some := run("c1")
	require.Len(t, some, 125)
	require.Equal(t, []any{"c1", "acme", 10, `{"subject":"7"}`},
		[]any{some[0].Consumer, some[0].TenantID, some[0].Tries, string(some[0].Event)})
	run("delete", some[0].ID)
	run("replay", some[1].ID)
	require.Len(t, run("c1"), 123)
	run("replay", "c1")
	require.Empty(t, run("c1"))
	require.Len(t, run("c0"), 125)
	for _, words := range [][]string{{"replay"}, {"delete"}, {"delete", "x"}, {"replay", "c", "d"}, {"delete", "1"}} {
		require.Error(t, deadletter.Command(t.Context(), b, words, &bytes.Buffer{}), words)
	}
}
