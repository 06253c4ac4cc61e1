package testkit

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Writes describe what a service writes: what each operation costs, and what several connections do at once.
type Writes struct {
	Service string // the name of its part of the table in pkg/docstore/commands.md
	Start   func(testing.TB) (*Service, *Client)

	// Commands are the rows of the table: every writing operation, and reads that are frequent. They may make records.
	Commands func(testing.TB, *Service, *Client) []Commands
	// NotCounted are the writing operations without a row, by their ids, each with the reason.
	NotCounted map[string]string

	Changes func(testing.TB, *Service, *Client) []Change
}

// Commands is a row of the table: an operation whose commands are counted.
type Commands struct {
	Operation string // its name in the table
	// Do sends the operation's request by the client. What it sends by another client is not counted.
	Do func(*Client) *Answer
}

// Takes makes a row. A path or a body that is not always the same, or needs a new record, is a function.
func Takes[P string | Path | func() string](operation, method string, path P, body any) Commands {
	return Commands{operation, func(c *Client) *Answer {
		c.t.Helper()
		body := body
		if makes, ok := body.(func() any); ok {
			body = makes()
		}
		switch path := any(path).(type) {
		case Path:
			return c.Do(method, path(), body)
		case func() string:
			return c.Do(method, path(), body)
		default:
			return c.Do(method, path.(string), body)
		}
	}}
}

// Path makes the path of a record, such as a new one.
type Path func() string

// Below is the path of what is below the record.
func (p Path) Below(more string) Path { return func() string { return p() + more } }

// After makes the record and posts to a path below it first, so that an operation has something to change back.
func (p Path) After(c *Client, more string) Path {
	return func() string {
		c.t.Helper()
		path := p()
		c.Post(path+more, nil).OK(nil)
		return path
	}
}

// Names returns a function that makes a new name at each call.
func Names() func() string {
	n := 0
	return func() string { n++; return fmt.Sprint("new", n) }
}

func (r Commands) call(c *Client) {
	c.t.Helper()
	answer := r.Do(c)
	require.Equal(c.t, http.StatusOK, answer.Status, "%s: %s", r.Operation, answer.Body)
}

// TestCommands checks that every writing operation of the service's document has a row or a reason, and that operations
// send as many commands to MongoDB as the table says. It is skipped without MongoDB: make commands plays it.
func (w Writes) TestCommands(t *testing.T) {
	t.Parallel()
	s, c := w.Start(t)
	if s.commands == nil {
		t.Skip("commands are counted on MongoDB only")
	}
	operations, called := s.operations(), map[string]bool{}
	watched := &Client{c.t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		called[operationOf(operations, r.Method, r.URL.EscapedPath()).OperationID] = true
		c.handler.ServeHTTP(rw, r)
	}), c.header}
	s.compare(w.Service, watched, w.Commands(t, s, c))
	for _, fault := range uncounted(operations, called, w.NotCounted) {
		assert.Fail(t, fault)
	}
}

// TestAtOnce checks that the changes of several connections do not make each other's transactions run again.
func (w Writes) TestAtOnce(t *testing.T) {
	t.Parallel()
	s, c := w.Start(t)
	s.atOnce(c, w.Changes(t, s, c))
}

// BenchmarkConnections measures the changes by 1, 4 and 16 clients at once; see ByConnections.
func (w Writes) BenchmarkConnections(b *testing.B) {
	s, c := w.Start(b)
	s.ByConnections(b, c, w.Changes(b, s, c)...)
}

// uncounted tells which writing operations have neither a row nor a reason, and which reasons are for nothing.
func uncounted(all []operation, called map[string]bool, reasons map[string]string) (faults []string) {
	reasons = maps.Clone(reasons)
	for _, o := range all {
		id := o.OperationID
		if o.asks() {
			continue
		}
		_, excepted := reasons[id]
		delete(reasons, id)
		switch {
		case called[id] && excepted:
			faults = append(faults, id+" has a row of commands, and a reason for none")
		case !called[id] && !excepted:
			faults = append(faults, fmt.Sprintf("%s (%s %s) writes and has no row of commands", id, o.Method, o.Path))
		}
	}
	for id := range reasons {
		faults = append(faults, id+" has a reason for no row of commands, and needs none")
	}
	slices.Sort(faults)
	return faults
}

// operationOf finds the operation of a request: where several paths match, that with the fewest parameters.
func operationOf(all []operation, method, path string) (found operation) {
	for _, o := range all {
		if o.Method == method && o.matches(path) &&
			(found.Path == "" || strings.Count(o.Path, "{") < strings.Count(found.Path, "{")) {
			found = o
		}
	}
	return found
}

func (o operation) matches(path string) bool {
	own, segments := strings.Split(o.Path, "/"), strings.Split(path, "/")
	return slices.EqualFunc(own, segments, func(own, segment string) bool {
		return own == segment || strings.HasPrefix(own, "{") && segment != ""
	})
}
