package delivery

import (
	"math/rand/v2"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
)

// recordTry records the result of a try.
func (w *worker) recordTry(r tried) {
	w.sending--
	it, l := r.item, w.lanes[r.item.record]
	l.queued = false
	if r.Away {
		it.due = w.clock.Now().Add(awayPause)
		if it.Status == "" {
			it.Status = Retrying
		}
		w.retries[it.EventID] = it
		return
	}
	if r.Skipped {
		w.drop(it, l)
		return
	}
	w.pace = (7*w.pace + r.Took) / 8
	it.Tries++
	it.ResponseCode, it.Error, it.DurationMS, it.Time = r.Code, r.Error, r.Took.Milliseconds(), w.clock.Now()
	it.NextTry = clock.Time{}
	if r.Lost {
		w.failed++
		w.lastError = it.EventType + " " + it.EventID + ": " + r.Error
		it.Status = Failed
		w.end(it, l)
		return
	}
	w.metrics.tries.WithLabelValues(w.sub.Delivery.Type, outcome(r.Delivered)).Inc()
	if r.Delivered {
		w.failures = 0
		w.delivered++
		it.Status = Delivered
		w.end(it, l)
		return
	}
	w.failures++
	w.failed++
	if w.failures >= stalled {
		w.probe = w.clock.Now().Add(min(firstProbe<<min(w.failures-stalled, 6), lastProbe))
	}
	w.lastError = it.EventType + " " + it.EventID + ": " + r.Error
	it.dirty, it.event = true, nil
	switch {
	case r.Gone:
		it.Status, w.stopAs = Failed, subscription.Disabled
	case it.Tries > len(w.schedule):
		it.Status, w.stopAs = Failed, subscription.Failing
	default:
		it.Status = Retrying
		it.NextTry = w.clock.Now().Add(max(jitter(w.schedule[it.Tries-1]), r.RetryAfter))
		it.due = it.NextTry
		w.retries[it.EventID] = it
	}
}

func outcome(delivered bool) string {
	if delivered {
		return "delivered"
	}
	return "failed"
}

// jitter varies a pause by up to a tenth, so that retries do not come at the same moment.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d))
}

// end moves an event to the log, and goes on with the next of its record.
func (w *worker) end(it *item, l *lane) {
	w.ended = append(w.ended, it.Delivery)
	w.drop(it, l)
}

// drop goes on with the next event of a record.
func (w *worker) drop(it *item, l *lane) {
	it.event = nil
	delete(w.open, it.EventID)
	delete(w.retries, it.EventID)
	if it.stored {
		delete(w.waiting, it.EventID)
		w.deleted[it.row] = true
	}
	if l.items = l.items[1:]; len(l.items) == 0 {
		delete(w.lanes, l.record)
		return
	}
	next := l.items[0]
	if next.Status == Held {
		next.Status = ""
	}
	w.enqueue(l)
}
