package embedded

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// lengths are those of the message files after a Sync. If the power fails later, nothing more is certain to be on the
// disk.
func lengths(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".blk") {
			info, err := d.Info()
			require.NoError(t, err)
			name, err := filepath.Rel(dir, path)
			require.NoError(t, err)
			found[name] = info.Size()
		}
		return err
	}))
	return found
}

// powerCut copies a server's folder without the parts of the message files that were not synced. All other files are
// the latest.
func powerCut(t *testing.T, dir string, synced map[string]int64) string {
	t.Helper()
	left := t.TempDir()
	require.NoError(t, os.CopyFS(left, os.DirFS(dir)))
	for name := range lengths(t, left) {
		require.NoError(t, os.Truncate(filepath.Join(left, name), synced[name]))
	}
	return left
}

// TestAPowerCutTakesNoEventFromAConsumer: the stream has lost its newest messages after its consumer had handled them.
// The messages published next get the same numbers, and the consumer gets them. nats-server 2.15 does not set back a
// consumer that has acknowledged nothing: it gives the consumer the messages with the numbers of those that it had
// delivered when they are due for delivery again.
func TestAPowerCutTakesNoEventFromAConsumer(t *testing.T) {
	t.Parallel()
	const subject = "idp.events.acme.user.created"
	for name, x := range map[string]struct {
		synced, lost, acked int
		stopped             bool // the server had written everything that it writes when it stops
	}{
		"all acknowledged":            {10, 10, 20, false},
		"half acknowledged":           {10, 10, 15, false},
		"none that is lost":           {10, 10, 5, false},
		"nothing lost":                {10, 0, 10, false},
		"everything lost":             {0, 10, 10, false},
		"nothing acknowledged":        {0, 10, 0, false},
		"an index that is ahead":      {10, 10, 20, true},
		"only an index that is ahead": {0, 10, 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := start(t, Config{StoreDir: dir})
			_, js := connect(t, "", nats.InProcessServer(s.Conn()))
			stream, err := js.CreateStream(t.Context(), events)
			require.NoError(t, err)
			consumer, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "users",
				AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Second})
			require.NoError(t, err)
			publish := func(text string) {
				_, err := js.Publish(t.Context(), subject, []byte(text))
				require.NoError(t, err)
			}
			for n := range x.synced {
				publish(fmt.Sprint(n))
			}
			require.NoError(t, s.Sync(t.Context()))
			synced := lengths(t, dir)
			for n := range x.lost {
				publish(fmt.Sprint(x.synced + n))
			}
			for range x.acked {
				m, err := consumer.Next()
				require.NoError(t, err)
				require.NoError(t, m.DoubleAck(t.Context()))
			}
			if x.acked < x.synced+x.lost { // acknowledge one more, out of order
				for range 2 {
					_, err := consumer.Next()
					require.NoError(t, err)
				}
			}
			s.Stop() // this writes the consumer's place
			index := filepath.Join(dir, "jetstream", "$G", "streams", events.Name, "msgs", "index.db")
			require.FileExists(t, index)
			if !x.stopped {
				require.NoError(t, os.Remove(index))
			}

			s = start(t, Config{StoreDir: powerCut(t, dir, synced)})
			_, js = connect(t, "", nats.InProcessServer(s.Conn()))
			for n := range 30 {
				publish(fmt.Sprint("new ", n))
			}
			consumer, err = js.Consumer(t.Context(), events.Name, "users")
			require.NoError(t, err)
			got := map[string]bool{}
			for n := 0; n < 30; {
				if got[fmt.Sprint("new ", n)] {
					n++
					continue
				}
				m, err := consumer.Next()
				require.NoError(t, err)
				require.NoError(t, m.DoubleAck(t.Context()))
				got[string(m.Data())] = true
			}
			for n := x.acked; n < x.synced; n++ {
				require.True(t, got[fmt.Sprint(n)] || n < x.acked+2, "%d was skipped", n)
			}
		})
	}
}
