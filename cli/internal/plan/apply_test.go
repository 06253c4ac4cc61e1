package plan

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// crowd is a platform that answers once mostAtOnce requests are there, and refuses them all. It takes the first ones.
type crowd struct {
	Platform
	first, calls, there, most atomic.Int64
	full                      chan struct{}
}

func (c *crowd) Write(context.Context, Write, bool) (map[string]any, error) {
	if c.calls.Add(1) <= c.first.Load() {
		return nil, nil
	}
	there := c.there.Add(1)
	defer c.there.Add(-1)
	if there == mostAtOnce {
		close(c.full)
	}
	c.most.Store(max(c.most.Load(), there))
	<-c.full
	return nil, errors.New("no")
}

// TestSendAll: so many requests are sent at a time and no more; after an error none is begun.
func TestSendAll(t *testing.T) {
	t.Parallel()
	c, all := &crowd{full: make(chan struct{})}, []*sent{}
	for range 50 {
		all = append(all, &sent{batch: batch{{Action: Create}}, writes: []Write{{}}})
	}
	sendAll(t.Context(), c, all)
	assert.EqualValues(t, mostAtOnce, c.most.Load())
	done := 0
	for _, one := range all {
		if one.done {
			done++
			assert.Error(t, one.err)
		}
	}
	assert.Less(t, done, 2*mostAtOnce, "at most one more each")
}

// TestTry: the first step is tried alone, the others mostAtOnce at a time; after an error none is begun.
func TestTry(t *testing.T) {
	t.Parallel()
	c := &crowd{full: make(chan struct{})}
	c.first.Store(1)
	p := &Plan{platform: c, secrets: &secrets{}, actual: &Actual{ids: map[Ref]string{{application, "crm"}: "1"}}}
	for i := range 50 {
		values := map[string]any{"application": "crm", "code": fmt.Sprint("s", i)}
		w := &Desired{Ref: Ref{resourceSet, fmt.Sprint("crm:s", i)}, Values: values}
		p.Steps = append(p.Steps, &Step{Action: Create, Ref: w.Ref, want: w})
	}
	assert.EqualError(t, p.Try(t.Context()), "no")
	assert.EqualValues(t, mostAtOnce, c.most.Load())
	assert.LessOrEqual(t, c.calls.Load(), int64(1+2*mostAtOnce), "at most one more each")
}
