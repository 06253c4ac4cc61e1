package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/rounds"
)

var wanted = Verification{Whole: []string{"IDP_EVENTS"}, Streams: []string{"IDP_DEADLETTERS"},
	Each: func(_, subject string, body []byte) error {
		if !strings.HasPrefix(subject, "idp.") || !json.Valid(body) {
			return errors.New("it is not an event")
		}
		return nil
	}}

const (
	eventFiles = "jetstream/$G/streams/IDP_EVENTS"
	manyEvents = 400
)

// written is the folder of a stopped server. Its events take several blocks, one consumer has handled a part of them,
// and some dead letters are deleted.
func written(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := start(t, Config{StoreDir: dir})
	nc, js := connect(t, "", nats.InProcessServer(s.Conn()))
	ctx := t.Context()
	config := events
	config.MaxBytes = 100_000 // the server then makes small blocks, and keeps doing so after the limit is removed
	_, err := js.CreateStream(ctx, config)
	require.NoError(t, err)
	stream, err := js.UpdateStream(ctx, events)
	require.NoError(t, err)
	dead, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "IDP_DEADLETTERS",
		Subjects: []string{"idp.deadletters.>"}})
	require.NoError(t, err)
	for i := range manyEvents {
		m := &nats.Msg{Subject: "idp.events.acme.user.updated", Data: fmt.Appendf(nil, `{"n": %d, "text": %q}`, i,
			strings.Repeat("x", 500))}
		if i%2 == 0 {
			m.Header = nats.Header{"Nats-Msg-Id": {fmt.Sprint(i)}}
		}
		_, err := js.PublishMsg(ctx, m)
		require.NoError(t, err)
	}
	for i := range 9 {
		_, err := js.Publish(ctx, "idp.deadletters.a", []byte(`{}`))
		require.NoError(t, err)
		if i%3 == 1 {
			require.NoError(t, dead.DeleteMsg(ctx, uint64(i)))
		}
	}
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "users",
		AckPolicy: jetstream.AckExplicitPolicy})
	require.NoError(t, err)
	batch, err := consumer.Fetch(20)
	require.NoError(t, err)
	for m := range batch.Messages() {
		if meta, err := m.Metadata(); err == nil && meta.Sequence.Stream != 7 {
			require.NoError(t, m.DoubleAck(ctx))
		}
	}
	nc.Close()
	s.Stop()
	return dir
}

func duplicate(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

func everyFile(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(text)
		return err
	}))
	return files
}

func put(t *testing.T, dir, name string, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

func TestVerify(t *testing.T) {
	t.Parallel()
	dir := written(t)
	files := everyFile(t, dir)
	blocks, err := filepath.Glob(filepath.Join(dir, eventFiles, "msgs", "*.blk"))
	require.NoError(t, err)
	require.Greater(t, len(blocks), 2)
	found, err := Verify(t.Context(), dir, wanted)
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"IDP_EVENTS": manyEvents, "IDP_DEADLETTERS": 9}, found,
		"deleted messages are counted until they are compacted away")
	last := eventFiles + "/msgs/" + filepath.Base(blocks[len(blocks)-1])

	cut := func(name string, size int) func(*testing.T, string) {
		return func(t *testing.T, dir string) { put(t, dir, name, files[name][:size]) }
	}
	flip := func(name string, at int) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			text := []byte(files[name])
			text[at] ^= 0x10
			put(t, dir, name, string(text))
		}
	}
	without := func(names ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
			}
		}
	}
	block, index, state := eventFiles+"/msgs/1.blk", eventFiles+"/msgs/index.db", eventFiles+"/obs/users/o.dat"
	for name, c := range map[string]struct {
		damage func(*testing.T, string)
		faults []string // parts of the error
	}{
		"flipped in a message": {flip(block, 300), []string{"1.blk: at byte 0 of", "checksum"}},
		"flipped in a length":  {flip(block, 3), []string{"1.blk: at byte 0 of", "not possible"}},
		"cut in a record":      {cut(block, len(files[block])-5), []string{"1.blk: at byte", "are missing before it"}},
		"cut between records":  {cut(last, 0), []string{"but there have been 400"}},
		"a block gone":         {without(eventFiles + "/msgs/2.blk"), []string{"3.blk: the events"}},
		"the first block gone": {without(block), []string{"msgs: the events 1 to"}},
		"the last block gone":  {without(last), []string{"but there have been 400"}},
		"all blocks gone": {func(t *testing.T, dir string) {
			for _, b := range blocks {
				require.NoError(t, os.Remove(filepath.Join(dir, eventFiles, "msgs", filepath.Base(b))))
			}
		}, []string{"the last event is 0, but there have been 400"}},
		"no messages at all": {without(eventFiles + "/msgs"), []string{"msgs: no such file"}},
		"index flipped": {flip(index, 20),
			[]string{"index.db: the checksum is wrong; the next start makes it again"}},
		"index cut":        {cut(index, 5), []string{"index.db: it is cut off"}},
		"index empty":      {cut(index, 0), []string{"index.db: it is cut off"}},
		"settings flipped": {flip(eventFiles+"/meta.inf", 30), []string{"IDP_EVENTS/meta.inf: its checksum"}},
		"settings gone":    {without(eventFiles + "/meta.inf"), []string{"IDP_EVENTS/meta.inf: no such file"}},
		"consumer cut":     {cut(state, len(files[state])-1), []string{"users/o.dat: it is cut off"}},
		"consumer empty":   {cut(state, 0), []string{"users/o.dat: it is cut off"}},
		"consumer too long": {func(t *testing.T, dir string) {
			put(t, dir, state, files[state]+"x")
		}, []string{"users/o.dat: 1 bytes too many"}},
		"consumer ahead": {func(t *testing.T, dir string) {
			put(t, dir, state, "\x16\x02\x01\xff\x7f\x01\xff\x7f\x00\x00")
		}, []string{"users/o.dat: it is at event 16383, but the last is 400"}},
		"consumer of many": {func(t *testing.T, dir string) {
			put(t, dir, state, "\x16\x02\x01\x01\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00")
		}, []string{"users/o.dat: it is cut off"}},
		"consumer's settings": {flip(eventFiles+"/obs/users/meta.inf", 9), []string{"users/meta.inf: its checksum"}},
		"another's stream gone": {without("jetstream/$G/streams/IDP_DEADLETTERS"),
			[]string{"the stream IDP_DEADLETTERS is missing"}},
		"everything gone": {without("jetstream"), []string{"the stream IDP_EVENTS is missing"}},
		"no event":        {nil, []string{"at byte 0, event 1: it is not an event"}},
		"consumer and a message": {func(t *testing.T, dir string) {
			flip(block, 300)(t, dir)
			cut(state, 3)(t, dir)
		}, []string{"1.blk", "o.dat"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, looked := duplicate(t, dir), wanted
			if c.damage == nil {
				looked.Each = func(string, string, []byte) error { return errors.New("it is not an event") }
			} else {
				c.damage(t, dir)
			}
			before := everyFile(t, dir)
			_, err := Verify(t.Context(), dir, looked)
			for _, fault := range c.faults {
				require.ErrorContains(t, err, fault)
			}
			require.Less(t, len(err.Error()), 10_000)
			require.Equal(t, before, everyFile(t, dir), "nothing is written")
		})
	}
}

// A folder is sound after a kill, and after its oldest events have expired.
func TestVerifyFindsNoFalseDamage(t *testing.T) {
	t.Parallel()
	dir := written(t)
	s := start(t, Config{StoreDir: dir})
	_, js := connect(t, "", nats.InProcessServer(s.Conn()))
	stream, err := js.Stream(t.Context(), "IDP_EVENTS")
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	config.MaxMsgs = 10
	_, err = js.UpdateStream(t.Context(), config)
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "idp.events.acme.user.created", []byte(`{}`))
	require.NoError(t, err)
	_, err = Verify(t.Context(), duplicate(t, dir), Verification{}) // as after a kill
	require.NoError(t, err)
	s.Stop()
	_, err = Verify(t.Context(), dir, wanted)
	require.NoError(t, err)
}

// Whichever byte is damaged, Verify ends, does not panic and writes nothing. It finds every damage that a checksum
// covers.
func TestVerifyRandomDamage(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	dir := written(t)
	files := everyFile(t, dir)
	random := rand.New(rand.NewPCG(1, 2))
	for name, text := range files {
		for try := range rounds.Of(6, 24) {
			damaged := []byte(text)
			if len(damaged) == 0 {
				continue
			}
			if at := random.IntN(len(damaged)); try%4 == 0 {
				damaged = damaged[:at]
			} else {
				damaged[at] ^= 1 << random.IntN(8)
			}
			put(t, dir, name, string(damaged))
			_, err := Verify(t.Context(), dir, wanted)
			if strings.HasSuffix(name, ".blk") && strings.Contains(name, "EVENTS") || strings.Contains(name, "meta") ||
				strings.HasSuffix(name, "index.db") {
				require.ErrorContains(t, err, dir, "%s, try %d", name, try)
			}
			now, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, damaged, now)
		}
		put(t, dir, name, text)
	}
	require.Equal(t, files, everyFile(t, dir))
}
