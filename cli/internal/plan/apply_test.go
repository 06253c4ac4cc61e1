package plan

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// crowd is a platform that answers once mostAtOnce requests are there, and refuses them all.
type crowd struct {
	Platform
	there, most atomic.Int64
	full        chan struct{}
}

func (c *crowd) Write(context.Context, Write, bool) (map[string]any, error) {
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
