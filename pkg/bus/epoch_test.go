package bus

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// A restored stream keeps the epoch of the one that was backed up; one that is made anew with its configuration does
// not.
func TestEpochOfARestoredStream(t *testing.T) {
	t.Parallel()
	b := newBox(t).connect(t, Config{})
	require.NoError(t, b.ensureStreams(t.Context()))
	look := func() *jetstream.StreamInfo {
		stream, err := b.js.Stream(t.Context(), EventStream)
		require.NoError(t, err)
		return stream.CachedInfo()
	}
	made := look().Created
	epoch := Epoch(look())
	restore := func(config jetstream.StreamConfig) {
		require.NoError(t, b.js.DeleteStream(t.Context(), EventStream))
		_, err := b.js.CreateStream(t.Context(), config)
		require.NoError(t, err)
		require.NotEqual(t, epoch, Epoch(look()))
	}
	restore(look().Config)
	for range 2 {
		require.NoError(t, KeepEpoch(t.Context(), b.js, EventStream, epoch))
		require.Equal(t, epoch, Epoch(look()))
		require.True(t, made.Equal(MadeAt(look())))
		require.NoError(t, b.ensureStreams(t.Context()))
		require.Equal(t, epoch, Epoch(look()), "the platform's start does not change it")
		restore(look().Config)
	}
}
