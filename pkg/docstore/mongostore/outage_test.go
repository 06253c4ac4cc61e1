package mongostore

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// TestAnOutageHasOneWait: when the server has been away for Options.Select, here an hour, nothing waits for it again. A
// request that reads and writes is answered after one wait.
func TestAnOutageHasOneWait(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, nil)
	o := s.options(t)
	o.Select, o.Timeout = time.Hour, time.Hour
	e, err := Open(t.Context(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	_, err = e.Get(t.Context(), def, "t1", []string{"a"})
	require.NoError(t, err)
	_, away := e.outage.away()
	require.False(t, away)

	s.close()
	ctx, cancel := context.WithCancel(t.Context())
	underWay := make(chan error, 1)
	go func() {
		_, err := e.Get(ctx, def, "t1", []string{"a"})
		underWay <- err
	}()
	wait.Until(t, func() bool { _, away := e.outage.away(); return away })
	cancel() // it would wait for an hour
	require.ErrorIs(t, <-underWay, context.Canceled)

	e.outage.mu.Lock()
	e.outage.since = time.Now().Add(-time.Hour)
	e.outage.mu.Unlock()
	for name, do := range map[string]func() error{
		"get": func() error { _, err := e.Get(t.Context(), def, "t1", []string{"a"}); return err },
		"count": func() error {
			_, err := e.Count(t.Context(), def, "t1", docstore.Filter{}, 0)
			return err
		},
		"write": func() error {
			return e.Write(t.Context(), func(tx docstore.EngineTx) error {
				return tx.Insert(t.Context(), def, entry(newThing("a")))
			})
		},
		"read and write": func() error {
			return e.Write(t.Context(), func(tx docstore.EngineTx) error {
				if _, err := tx.Get(t.Context(), def, "t1", []string{"a"}); err != nil {
					return err
				}
				return tx.Insert(t.Context(), def, entry(newThing("a")))
			})
		},
		"due":         func() error { _, err := e.Due(t.Context(), def, 0, 1); return err },
		"next due":    func() error { _, err := e.NextDue(t.Context(), def); return err },
		"next tenant": func() error { _, err := e.NextTenant(t.Context(), def, ""); return err },
		"reserve":     func() error { _, err := e.Reserve(t.Context(), "ids", 1); return err },
		"pending":     func() error { _, err := e.Pending(t.Context(), 0, 1); return err },
		"published":   func() error { return e.Published(t.Context(), []int64{1}) },
		"backlog":     func() error { _, err := e.Backlog(t.Context()); return err },
		"ping":        func() error { return e.Ping(t.Context()) },
	} {
		require.Equal(t, apperr.Unavailable, apperr.KindOf(do()), name)
	}
}
