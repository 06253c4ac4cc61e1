// Package transaction knows which goroutines are inside the function of a write transaction, so that what would wait
// there fails at once. A store may have one writer: a question to another service, a second transaction or a
// reservation of ids inside the first would hold up every other writer, or block for good. A mark in the context is not
// enough to notice, since such a function can use any context.
//
// It goes by the goroutine that runs the function; what runs on a goroutine that the function starts is not noticed.
package transaction

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/petermattis/goid"
)

// ErrInside says that a call was refused since it was made inside a write transaction: a programming error of the
// caller.
var ErrInside = errors.New("must not be called inside the function of a write transaction; call it before")

// inside are the goroutines that are in a transaction, spread so that writers of several stores do not meet.
var inside [32]struct {
	sync.Mutex
	goroutines map[int64]struct{}
}

// entered is how many there are: most calls are made while there is none.
var entered atomic.Int64

// Enter notes that this goroutine is inside a transaction, until Leave.
func Enter() {
	id := goid.Get()
	part := &inside[id%int64(len(inside))]
	part.Lock()
	defer part.Unlock()
	if part.goroutines == nil {
		part.goroutines = map[int64]struct{}{}
	}
	part.goroutines[id] = struct{}{}
	entered.Add(1)
}

// Leave is the end of what Enter began, on the same goroutine.
func Leave() {
	id := goid.Get()
	part := &inside[id%int64(len(inside))]
	part.Lock()
	defer part.Unlock()
	delete(part.goroutines, id)
	entered.Add(-1)
}

// Refuse fails with ErrInside if this goroutine is inside a transaction. call names what is refused.
func Refuse(call string) error {
	if entered.Load() == 0 {
		return nil
	}
	id := goid.Get()
	part := &inside[id%int64(len(inside))]
	part.Lock()
	_, is := part.goroutines[id]
	part.Unlock()
	if is {
		return fmt.Errorf("%s %w", call, ErrInside)
	}
	return nil
}
