package stream

import (
	"context"
	"log/slog"
	"time"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
)

// troubles logs why a reader could not continue: at once, and then after longer and longer pauses. That it cannot begin
// is logged after a while: at the start, the stream and other services may not be there yet.
type troubles struct {
	log    *slog.Logger
	reader string

	wait   interface{ NextBackOff() time.Duration }
	lasts  bool
	remind reminder
}

func newTroubles(log *slog.Logger, reader string) troubles {
	return troubles{log: log, reader: reader, lasts: true, remind: reminder{time.Now(), firstReminder}}
}

// meet logs an error and pauses; moved tells that there was progress since the last one.
func (t *troubles) meet(ctx context.Context, err error, moved bool) {
	if t.wait == nil || moved {
		t.wait = bus.Backoff()
	}
	switch now := time.Now(); {
	case !t.lasts:
		t.log.Warn("a reader of the stream was interrupted and continues where it stopped", "reader", t.reader,
			"error", err)
		t.remind = reminder{now, firstReminder}
	case t.remind.due(now):
		t.log.Warn("a reader of the stream still waits", "reader", t.reader, "error", err)
	}
	t.lasts = !moved
	clock.Pause(ctx, t.wait.NextBackOff())
}

const firstReminder, lastReminder = 10 * time.Second, 5 * time.Minute

// reminder says when to tell again that something lasts: after longer and longer pauses.
type reminder struct {
	told  time.Time
	pause time.Duration
}

func (r *reminder) due(now time.Time) bool {
	if now.Sub(r.told) < r.pause {
		return false
	}
	*r = reminder{now, min(2*r.pause, lastReminder)}
	return true
}
