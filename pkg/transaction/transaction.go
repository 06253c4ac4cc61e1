// Package transaction knows which goroutines run the function of a write transaction, so that calls that would wait
// there fail at once. A store may have a single writer: a question to another service, a second transaction or a
// reservation of ids inside the first would hold up every other writer, or wait forever. A mark in the context would
// not be enough, because the function can use any context.
//
// Only the goroutine that runs the function counts; calls from goroutines that the function starts are not noticed.
package transaction

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/petermattis/goid"
)

// ErrInside means that a call was refused because it was made inside a write transaction, which is a programming
// error of the caller.
var ErrInside = errors.New("must not be called inside the function of a write transaction; call it before")

// inside holds the goroutines that are in a transaction. It has several parts, so that writers of different stores
// seldom wait for the same lock.
var inside [32]struct {
	sync.Mutex
	goroutines map[int64]struct{}
}

// entered counts these goroutines. Refuse is fast while there are none, which is the usual case.
var entered atomic.Int64

// Enter notes that this goroutine is inside a transaction until it calls Leave.
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

// Leave ends what Enter began, on the same goroutine.
func Leave() {
	id := goid.Get()
	part := &inside[id%int64(len(inside))]
	part.Lock()
	defer part.Unlock()
	delete(part.goroutines, id)
	entered.Add(-1)
}

// Refuse returns ErrInside if this goroutine is inside a transaction. call names the refused call in the error.
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
