package testkit_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

func TestMain(m *testing.M) { basic.Main(m) }

func TestClockStandsStill(t *testing.T) {
	t.Parallel()
	c := basic.NewClock()
	before := c.Now()
	require.Less(t, clock.System.Now().Sub(before).Abs(), time.Minute,
		"tokens must be valid by the system's clock, too")
	c.Advance(90 * time.Second)
	require.Equal(t, before.Add(90*time.Second), c.Now())
}

// A late line of a goroutine that is about to end must not fail the next test.
func TestLogOutlivesItsTest(t *testing.T) {
	t.Parallel()
	var late func()
	t.Run("over", func(t *testing.T) {
		log := basic.Log(t)
		late = func() { log.Info("late") }
	})
	require.NotPanics(t, late)
}

func TestClientsDoNotShareHeaders(t *testing.T) {
	t.Parallel()
	s := testkit.Start(t, service.Spec{Name: "echo", New: func(_ context.Context, _ service.Deps) (service.App, error) {
		return service.App{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Seen", r.Header.Get("X-A")+r.Header.Get("Content-Type")+r.Header.Get("Authorization"))
		})}, nil
	}})
	plain := s.Stranger()
	with := plain.With("X-A", "a")
	seen := func(a *testkit.Answer) string { return a.Header.Get("X-Seen") }
	require.Equal(t, "a", seen(with.Get("/")))
	require.Empty(t, seen(plain.Get("/")))
	require.Empty(t, seen(with.With("x-a", "").Get("/")))
	require.Equal(t, "application/json", seen(plain.Post("/", map[string]int{})))
	require.Equal(t, "text/plain", seen(plain.With("Content-Type", "text/plain").Post("/", "x")))
	require.Contains(t, seen(s.As("acme").Get("/")), "Bearer ")
}
