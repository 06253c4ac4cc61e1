package outbox

import (
	"cmp"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// leave leaves out messages that another process has appended not long ago: it publishes them itself. One that is
// followed by a message about the same record stays, because they must arrive in order.
//
// The age compares clocks of two machines. If they differ by more than takeOver, both publish, which costs time only.
func (r *Relay) leave(messages []docstore.Message) []docstore.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	followed := map[string]bool{}
	var ours []docstore.Message
	for _, m := range slices.Backward(messages) {
		stays := followed[m.Record] || r.taken[m.Record]
		if m.Elsewhere && !stays && time.Since(made(m.ID)).Abs() < takeOver {
			r.leftFrom[m.Record] = min(m.Seq, cmp.Or(r.leftFrom[m.Record], m.Seq))
			continue
		}
		followed[m.Record] = true
		ours = append(ours, m)
	}
	slices.Reverse(ours)
	if len(ours) < len(messages) && r.left.IsZero() {
		r.left = time.Now()
	}
	return ours
}

// overtakes reports whether one of the messages follows one about the same record that was left with an earlier page,
// and is perhaps not published yet. If so, the next page begins at the one that was left, and takes it.
func (r *Relay) overtakes(messages []docstore.Message) (found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range messages {
		if from := r.leftFrom[m.Record]; from > 0 && from < m.Seq {
			r.after = min(r.after, from-1)
			r.taken[m.Record] = true
			delete(r.leftFrom, m.Record)
			found = true
		}
	}
	return found
}

// lookAgain goes back to the first message if it is time to publish those that were left: their process may have died.
func (r *Relay) lookAgain(last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.left.IsZero() && (last || time.Since(r.left) >= takeOver) {
		r.after, r.left = 0, time.Time{}
		clear(r.leftFrom)
	}
}

// passed notes that a page is kept or left. Its messages are in order for each record, which need not be the order of
// numbers.
func (r *Relay) passed(page []docstore.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range page {
		r.after = max(r.after, m.Seq)
	}
	if len(page) < batchSize { // all have been read
		clear(r.taken)
	}
}
