package audit

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/stream"
)

func TestClassesOfOCSF(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event                     stream.Event
		class, activity, status   float64
		member, inside, what, who string
	}{
		"created": {stream.Event{Type: "idp.user.created", Subject: "7", Actor: "user:3"}, 3004, 1, 1, "entity", "uid",
			"7",
			"user:3"},
		"updated": {stream.Event{Type: "idp.user.updated", Subject: "7"}, 3004, 3, 1, "entity", "type", "user", ""},
		"deleted": {stream.Event{Type: "idp.user.deleted", Subject: "7"}, 3004, 4, 1, "entity", "uid", "7", ""},
		"locked":  {stream.Event{Type: "idp.user.locked", Subject: "7"}, 3004, 99, 1, "entity", "uid", "7", ""},
		"sign-in": {stream.Event{Type: "idp.user.login_failed", Subject: "7"}, 3002, 1, 2, "user", "uid", "7", ""},
		"client": {stream.Event{Type: "idp.client.authentication_failed", Subject: "9"}, 3002, 1, 2, "user", "type",
			"client", ""},
		"entered": {stream.Event{Type: "idp.sign_in.completed", Subject: "5", Data: []byte(`{"record":{"user_id":"7"}}`)},
			3002, 1, 1, "user", "uid", "7", ""},
		"refused": {stream.Event{Type: "idp.sign_in.refused", Subject: "5", Data: []byte(`{"record":{"user_id":"7"}}`)},
			3002, 1, 2, "user", "uid", "7", ""},
		"wrong": {stream.Event{Type: "idp.sign_in.failed", Subject: "flow"}, 3002, 1, 2, "user", "uid", "", ""},
		"denied": {stream.Event{Type: "idp.access.denied", Data: []byte(
			`{"record":{"operation":"delete-user","actor":"client:x","address":"203.0.113.9","count":2}}`)},
			6003, 99, 2, "src_endpoint", "ip", "203.0.113.9", "client:x"},
	} {
		line, err := inOCSF(entryOf(&c.event))
		require.NoError(t, err)
		var got object
		require.NoError(t, json.Unmarshal(line, &got))
		require.Equal(t, c.class, got["class_uid"], name)
		require.Equal(t, c.activity, got["activity_id"], name)
		require.Equal(t, c.class*100+c.activity, got["type_uid"], name)
		require.Equal(t, c.status, got["status_id"], name)
		require.Equal(t, c.what, got[c.member].(object)[c.inside], name)
		require.Equal(t, c.who, got["actor"].(object)["user"].(object)["uid"], name)
		require.NotContains(t, string(line), "\n")
	}
}

func TestFileEndsTornLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit")
	require.NoError(t, File(path).Send(t.Context(), [][]byte{[]byte(`{"a":1}`), []byte(`{"a":2}`)}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(text, `{"a":`...), 0o600)) // killed here
	require.NoError(t, File(path).Send(t.Context(), [][]byte{[]byte(`{"a":3}`)}))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "{\"a\":1}\n{\"a\":2}\n{\"a\":\n{\"a\":3}\n", string(text))
}

// A receiver gets messages with their lengths, and all that was sent after it has closed a connection.
func TestSyslog(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	target, err := ParseTarget("tcp://" + listener.Addr().String())
	require.NoError(t, err)
	for round := range 2 {
		sent := make(chan error, 1)
		go func() { sent <- target.Send(t.Context(), [][]byte{[]byte(`{"a":"é"}`), []byte(`{"b":2}`)}) }()
		conn, err := listener.Accept()
		require.NoError(t, err, round)
		in := bufio.NewReader(conn)
		for _, want := range []string{`{"a":"é"}`, `{"b":2}`} {
			digits, err := in.ReadString(' ')
			require.NoError(t, err)
			size, err := strconv.Atoi(strings.TrimSpace(digits))
			require.NoError(t, err)
			message := make([]byte, size)
			_, err = io.ReadFull(in, message)
			require.NoError(t, err)
			require.Regexp(t, `^<110>1 \d{4}-\d\d-\d\dT[\d:.]+Z \S+ idplatform \d+ audit - \{`, string(message))
			require.True(t, strings.HasSuffix(string(message), " "+want), "%s", message)
		}
		require.NoError(t, <-sent)
		require.NoError(t, conn.Close())
	}
}
