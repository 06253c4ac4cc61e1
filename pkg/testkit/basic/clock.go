package basic

import (
	"sync/atomic"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
)

// Clock is a clock that stands still until a test moves it.
type Clock struct{ millis atomic.Int64 }

// NewClock makes a clock that starts near the present, so that tokens made by it are valid by the system's clock, too.
func NewClock() *Clock {
	c := &Clock{}
	c.millis.Store(clock.System.Now().Millis())
	return c
}

// Now implements clock.Clock.
func (c *Clock) Now() clock.Time { return clock.FromMillis(c.millis.Load()) }

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) { c.millis.Add(d.Milliseconds()) }
