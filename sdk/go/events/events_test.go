package events_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	idp "github.com/idplatform/idplatform/sdk/go"
	"github.com/idplatform/idplatform/sdk/go/events"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../testdata/events.json")
	require.NoError(t, err)
	var all []idp.Event
	require.NoError(t, json.Unmarshal(text, &all))
	require.NotEmpty(t, all)
	for _, event := range all {
		t.Run(event.Type, func(t *testing.T) {
			t.Parallel()
			data, err := events.Decode(event)
			require.NoError(t, err)
			_, unknown := data.(*events.Unknown)
			require.False(t, unknown)
			// No member is lost.
			back, err := json.Marshal(data)
			require.NoError(t, err)
			var sent, kept map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(event.Data, &sent))
			require.NoError(t, json.Unmarshal(back, &kept))
			for name := range sent {
				require.Contains(t, kept, name)
			}
		})
	}
}

func TestDecodeUser(t *testing.T) {
	t.Parallel()
	data, err := events.Decode(idp.Event{Type: "idp.user.created", Data: []byte(`{"record":{"username":"li.wei"}}`)})
	require.NoError(t, err)
	require.Equal(t, "li.wei", data.(*events.UserCreated).Record.Username)
}

func TestDecodeUnknown(t *testing.T) {
	t.Parallel()
	data, err := events.Decode(idp.Event{Type: "idp.moon.landed", Data: []byte(`{"a":1}`)})
	require.NoError(t, err)
	require.Equal(t, &events.Unknown{Data: []byte(`{"a":1}`)}, data)
	_, err = events.Decode(idp.Event{ID: "e1", Type: "idp.user.created", Data: []byte(`{"record":7}`)})
	require.ErrorContains(t, err, "event e1")
}
