package drive

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// Event is what tests look at of an event.
type Event struct {
	ID      string `json:"id"`
	Subject string `json:"subject"` // the record's id
	NATS    string `json:"-"`       // the subject that it came on, such as idp.events.acme.user.created
}

// EachEvent reads events as an outside reader does, with the URL in a file of the data folder, until last returns true.
func EachEvent(t testing.TB, urlFile string, last func(Event) bool) {
	t.Helper()
	url, err := os.ReadFile(urlFile)
	require.NoError(t, err)
	nc, err := nats.Connect(strings.TrimSpace(string(url)))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	consumer, err := js.Consumer(t.Context(), "IDP_EVENTS", "events")
	require.NoError(t, err)
	messages, err := consumer.Messages()
	require.NoError(t, err)
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextMaxWait(30 * time.Second))
		require.NoError(t, err, "events are missing")
		event := Event{NATS: m.Subject()}
		require.NoError(t, json.Unmarshal(m.Data(), &event))
		require.NoError(t, m.Ack())
		if last(event) {
			return
		}
	}
}
