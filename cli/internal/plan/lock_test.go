package plan

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/cli/internal/failure"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// oneObject is a platform that keeps the object of a lock.
type oneObject struct {
	Platform
	mu      sync.Mutex
	value   any // nil: there is none
	version int
	expires time.Time
	writes  int
	away    bool
}

func (o *oneObject) is() bool { return o.value != nil && time.Now().Before(o.expires) }

func (o *oneObject) Get(_ context.Context, _ string, _ url.Values, into any) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.is() {
		return &idp.Problem{Status: http.StatusNotFound, Code: idp.CodeNotFound}
	}
	text, err := json.Marshal(map[string]any{"value": o.value, "version": o.version})
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (o *oneObject) Each(context.Context, string, url.Values) iter.Seq2[map[string]any, error] {
	return nil
}

func (o *oneObject) Write(_ context.Context, w Write, _ bool) (map[string]any, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.away:
		return nil, &idp.Problem{Status: http.StatusServiceUnavailable, Code: idp.CodeUnavailable}
	case w.NoneMatch && o.is(), w.IfMatch != "" && (!o.is() || w.IfMatch != strconv.Quote(strconv.Itoa(o.version))):
		return nil, &idp.Problem{Status: http.StatusPreconditionFailed, Code: idp.CodeVersionMismatch}
	case w.Body == nil:
		o.value = nil
		return nil, nil
	}
	body := w.Body.(map[string]any)
	o.value, o.version, o.writes = body["value"], o.version+1, o.writes+1
	o.expires = time.Now().Add(time.Hour)
	if seconds, ok := body["ttl_seconds"].(int); ok {
		o.expires = time.Now().Add(time.Duration(seconds) * time.Second)
	}
	return map[string]any{"version": o.version}, nil
}

// TestLockIsRenewed holds a lock for an hour. Then the platform is away for longer than the lock holds.
func TestLockIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &oneObject{}
		held := &bucketLock{platform: o, set: "crm", me: thisProcess("first")}
		require.NoError(t, held.take(t.Context()))
		other := &bucketLock{platform: o, set: "crm", me: thisProcess("second")}
		for range 60 {
			time.Sleep(time.Minute)
			require.NoError(t, held.held(t.Context()))
			err := other.take(t.Context())
			require.Equal(t, failure.Unavailable, failure.CodeOf(err, true))
			require.ErrorContains(t, err, ", process "+strconv.Itoa(held.me.Process)+", since ")
		}
		assert.Greater(t, o.writes, 100)
		o.mu.Lock()
		o.away = true
		o.mu.Unlock()
		time.Sleep(lockFor)
		assert.Equal(t, failure.Changed, failure.CodeOf(held.held(t.Context()), true), "another apply may hold it now")
		o.mu.Lock()
		o.away = false
		o.mu.Unlock()
		require.NoError(t, other.take(t.Context()))
		assert.ErrorContains(t, held.held(t.Context()), "the lock of the set crm was lost")
		require.NoError(t, held.letGo(t.Context()))
		assert.True(t, o.is(), "it is the other's")
		require.NoError(t, other.letGo(t.Context()))
		assert.False(t, o.is())
	})
}

// TestLockOfKilled takes over the lock of a process of this machine that is gone, and of no other.
func TestLockOfKilled(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "true")
	require.NoError(t, command.Run())
	gone := thisProcess("gone")
	gone.Process = command.Process.Pid
	elsewhere, container := gone, gone
	elsewhere.Host, container.Space = "elsewhere", "pid:[1]"
	for _, c := range []struct {
		holder Holder
		taken  bool
	}{{gone, true}, {elsewhere, false}, {container, false}, {thisProcess("alive"), false}, {Holder{}, false}} {
		o := &oneObject{value: c.holder, version: 1, expires: time.Now().Add(time.Hour)}
		l := &bucketLock{platform: o, set: "crm", me: thisProcess("new")}
		err := l.take(t.Context())
		assert.Equal(t, c.taken, err == nil, "%+v: %v", c.holder, err)
		assert.NoError(t, l.letGo(t.Context()))
	}
}
