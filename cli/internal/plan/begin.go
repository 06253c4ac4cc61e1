package plan

import (
	"context"
	"slices"
)

// mostBegun is how many batches are remembered at once before they are sent. The state is saved as a whole: once for
// each of thousands of records would take longer than to make them.
const mostBegun = 500

// begun is a batch that is remembered and not sent yet.
type begun struct {
	batch batch
	key   string
	was   []*Applied // what the state had of its steps before; nil: nothing
}

// begin remembers a batch, and those that come next, before it is sent: should its answer be lost, it can be asked for
// again, and the records are the set's. It returns what is remembered, with the
// Idempotency-Key of its request.
func (p *Plan) begin(ctx context.Context, b batch) (begun, error) {
	state := p.options.State
	if state == nil || b[0].Action == Delete {
		return begun{}, nil
	}
	at := slices.IndexFunc(p.begun, func(one begun) bool { return one.batch[0] == b[0] })
	if at < 0 {
		p.begun, at = nil, 0
		for _, next := range p.window(b) {
			one := begun{batch: next, was: state.copies(next)}
			one.key = state.begin(next)
			p.begun = append(p.begun, one)
		}
		if err := state.save(ctx); err != nil {
			return begun{}, err
		}
	}
	one := p.begun[at]
	p.begun = slices.Delete(p.begun, at, at+1)
	return one, nil
}

// window are the batches that are remembered together with one. One whose answer has a secret is remembered alone: once
// the next is remembered, the answer has come, and nobody asks for it again.
func (p *Plan) window(b batch) []batch {
	all := p.sending[slices.IndexFunc(p.sending, func(one batch) bool { return one[0] == b[0] }):]
	end, known := 1, map[Ref]bool{b[0].Ref: true}
	for end < min(len(all), mostBegun) && !b[0].makesSecret() && all[end][0].Action != Delete &&
		!all[end][0].makesSecret() && !known[all[end][0].Ref] {
		known[all[end][0].Ref] = true // of two changes of a record the first must be known to be done
		end++
	}
	return all[:end]
}

// unbegin takes back what is remembered of batches that were not sent: they are not the set's if somebody else makes
// such records.
func (p *Plan) unbegin() {
	for _, one := range p.begun {
		for i, s := range one.batch {
			p.options.State.restore(s.Ref, one.was[i])
		}
	}
	p.begun = nil
}
