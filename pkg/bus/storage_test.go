package bus

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// The metadata has a bounded number of tenants. What it no longer names counts for all.
func TestDroppedPlacesAreBounded(t *testing.T) {
	t.Parallel()
	var config jetstream.StreamConfig
	for n := range uint64(200) {
		config.Metadata = noteDropped(config.Metadata, fmt.Sprint("t", n), 1000+n, 1)
		require.LessOrEqual(t, len(config.Metadata), maxDropped+1)
	}
	require.EqualValues(t, 1199, Dropped(config, ""))
	require.EqualValues(t, 1199, Dropped(config, "t199"))
	require.EqualValues(t, 1135, Dropped(config, "t0"), "rather too much than too little")
	config.Metadata = noteDropped(config.Metadata, "t199", 1300, 1200)
	require.Len(t, config.Metadata, 1, "what is before the stream's first place is forgotten")
	require.Zero(t, Dropped(config, "t0"))
}

// BenchmarkSizes is the cost of an event of 1.2 KB when a full stream is counted.
func BenchmarkSizes(b *testing.B) {
	bus, _ := open(b)
	body := make([]byte, 1200)
	for n := 0; n < b.N; n += 500 {
		list := make([]docstore.Message, min(500, b.N-n))
		for i := range list {
			list[i] = docstore.Message{ID: fmt.Sprint(n + i), Subject: "idp.events.acme.user.updated", Payload: body}
		}
		for _, err := range bus.Publish(b.Context(), list) {
			require.NoError(b, err)
		}
	}
	b.ResetTimer()
	counted := 0
	err := bus.Sizes(b.Context(), EventStream, func(Stored) error {
		if counted++; counted == b.N {
			return context.Canceled
		}
		return nil
	})
	require.ErrorIs(b, err, context.Canceled)
}
