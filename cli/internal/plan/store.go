package plan

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"

	"github.com/gofrs/flock"

	"github.com/idplatform/idplatform/cli/internal/failure"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// store keeps a state, and a lock that keeps a second apply out.
type store interface {
	load(ctx context.Context, s *State) error
	save(ctx context.Context, s *State) error
	lock(ctx context.Context) error
	held(ctx context.Context) error // an error if the lock was lost
	unlock(ctx context.Context) error
	seize(ctx context.Context) error // takes away the lock of an apply that was killed
}

// Bucket has the states and locks of sets.
const (
	Bucket    = "idp-apply" // of the states of sets
	SetPrefix = "set."      // of their keys
)

// readable is how many bytes of a state are kept as they are. A larger one is compressed: objects have at most 1 MiB.
const readable = 256 << 10

func objectPath(key string) string {
	return "/v1/kv/buckets/" + Bucket + "/objects/" + url.PathEscape(key)
}

type bucketStore struct {
	platform Platform
	set      string
	locked   *bucketLock
}

func (b *bucketStore) load(ctx context.Context, s *State) error {
	value, version, err := b.read(ctx)
	if err != nil || version == "" {
		return err
	}
	s.version = version
	var packed struct {
		Gzip []byte `json:"gzip"`
	}
	if err := json.Unmarshal(value, &packed); err == nil && packed.Gzip != nil {
		if value, err = unpack(packed.Gzip); err != nil {
			return failure.Usagef("the state of the set is damaged: %w", err)
		}
	}
	return decodeState(value, s)
}

// read returns the object of the set as it is kept; the version is "" if there is none.
func (b *bucketStore) read(ctx context.Context) (json.RawMessage, string, error) {
	var object struct {
		Value   json.RawMessage `json:"value"`
		Version json.Number     `json:"version"`
	}
	err := b.platform.Get(ctx, objectPath(SetPrefix+b.set), nil, &object)
	if idp.CodeOf(err) == idp.CodeNotFound {
		return nil, "", nil
	}
	return object.Value, object.Version.String(), err
}

// save writes the state. If the answer is lost, it looks what is there: only the holder of the lock writes it.
func (b *bucketStore) save(ctx context.Context, s *State) error {
	value, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if len(value) > readable {
		if value, err = json.Marshal(map[string][]byte{"gzip": pack(value)}); err != nil {
			return err
		}
	}
	err = b.put(ctx, s, value)
	for tries := 0; tries < 3 && unclear(err); tries++ {
		kept, version, readErr := b.read(ctx)
		switch {
		case readErr != nil:
			return err
		case version != "" && sameText(kept, value):
			s.version = version
			return nil
		case version != s.version: // somebody else's
			return err
		}
		err = b.put(ctx, s, value)
	}
	return err
}

// put writes the object of the set in place of the one that was read.
func (b *bucketStore) put(ctx context.Context, s *State, value json.RawMessage) error {
	w := Write{
		Operation: "put-kv-object", Path: []string{Bucket, SetPrefix + b.set},
		Body: map[string]any{"value": value},
	}
	if w.NoneMatch = s.version == ""; !w.NoneMatch {
		w.IfMatch = strconv.Quote(s.version)
	}
	answer, err := b.platform.Write(ctx, w, false)
	if err == nil {
		s.version = fmt.Sprint(answer["version"])
	}
	return err
}

// sameText reports whether two texts are the same JSON; members may come in another order.
func sameText(a, b json.RawMessage) bool {
	var values [2]any
	for i, text := range []json.RawMessage{a, b} {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if decoder.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

func pack(text []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(text) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func (b *bucketStore) lock(ctx context.Context) error {
	var found map[string]any
	err := b.platform.Get(ctx, "/v1/kv/buckets/"+Bucket, nil, &found)
	if idp.CodeOf(err) == idp.CodeNotFound {
		_, err = b.platform.Write(ctx, Write{
			Operation: "put-kv-bucket", Path: []string{Bucket}, NoneMatch: true,
			Body: map[string]any{"description": "What idp apply remembers of named sets"},
		}, false)
		if idp.CodeOf(err) == idp.CodeVersionMismatch {
			err = nil // somebody else has just made it
		}
	}
	if err != nil {
		return err
	}
	b.locked = &bucketLock{platform: b.platform, set: b.set, me: thisProcess(rand.Text())}
	return b.locked.take(ctx)
}

func (b *bucketStore) held(ctx context.Context) error {
	if b.locked == nil {
		return nil
	}
	return b.locked.held(ctx)
}

func (b *bucketStore) unlock(ctx context.Context) error { return b.locked.letGo(ctx) }

func (b *bucketStore) seize(ctx context.Context) error {
	_, err := b.platform.Write(ctx, Write{
		Operation: "delete-kv-object", Path: []string{Bucket, "lock." + b.set},
	}, false)
	if idp.CodeOf(err) == idp.CodeNotFound {
		return nil
	}
	return err
}

// fileStore is a state in a file. A file beside it is locked by the operating system, which lets go of it when the
// process ends, however that happens.
type fileStore struct {
	path   string
	locked *flock.Flock
}

func (f *fileStore) load(_ context.Context, s *State) error {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return failure.Usagef("--state: %w", err)
	}
	return decodeState(text, s)
}

func (f *fileStore) save(_ context.Context, s *State) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(f.path), ".state-*") // its mode is 0600
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(append(text, '\n'))
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), f.path)
}

func (f *fileStore) lockPath() string { return f.path + ".lock" }

func (f *fileStore) lock(context.Context) error {
	f.locked = flock.New(f.lockPath(), flock.SetPermissions(0o600))
	mine, err := f.locked.TryLock()
	if err != nil {
		return failure.Usagef("--state: %w", err)
	}
	if !mine {
		var holder Holder
		text, _ := os.ReadFile(f.lockPath()) // Windows lets nobody read what is locked
		_ = json.Unmarshal(text, &holder)
		return lockedBy(f.path, holder)
	}
	if runtime.GOOS == "windows" { // which lets nobody write what is locked
		return nil
	}
	text, err := json.Marshal(thisProcess(""))
	if err != nil {
		return err
	}
	return os.WriteFile(f.lockPath(), text, 0o600)
}

func (f *fileStore) held(context.Context) error { return nil }

func (f *fileStore) unlock(context.Context) error { return f.locked.Unlock() }

func (f *fileStore) seize(context.Context) error {
	if err := os.Remove(f.lockPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func decodeState(text []byte, s *State) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(s); err != nil {
		return failure.Usagef("the state of the set is damaged: %w", err)
	}
	return nil
}
