package idp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"
)

const (
	maxStreamLine = 16 << 20         // bytes of a line of an event stream
	silence       = 45 * time.Second // the platform says something every 15 s, so after this the connection is dead
)

// Streamed is one item of an event stream.
type Streamed[T any] struct {
	Cursor string // where the stream goes on after this item: what LastEventID takes
	Type   string
	Item   T
}

// LastEventID begins an event stream after the item with this cursor.
func LastEventID(cursor string) Option { return Header("Last-Event-Id", cursor) }

// OnBreak is called each time when an event stream has broken and is opened again; err says why, nil that the platform
// ended it.
func OnBreak(f func(err error)) Option {
	return func(r *Request) { r.onBreak = f }
}

// stream reads an event stream, and opens it again after a break. A refusal ends it, unless it is one that passes.
func stream[T any](ctx context.Context, c *Client, r Request, options []Option) iter.Seq2[Streamed[T], error] {
	return func(yield func(Streamed[T], error) bool) {
		for item, err := range c.events(ctx, r, options) {
			s := Streamed[T]{Cursor: item.Cursor, Type: item.Type}
			if err == nil {
				if err = json.Unmarshal(item.Item, &s.Item); err != nil {
					err = fmt.Errorf("%s: an item is not as documented: %w", r.Path, err)
				}
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// Events reads the event stream of any operation that has one, as Client.Do does for answers. Item is JSON.
func (c *Client) Events(
	ctx context.Context, r Request, options ...Option,
) iter.Seq2[Streamed[json.RawMessage], error] {
	return c.events(ctx, r, options)
}

func (c *Client) events(
	ctx context.Context, r Request, options []Option,
) iter.Seq2[Streamed[json.RawMessage], error] {
	return func(yield func(Streamed[json.RawMessage], error) bool) {
		s := &streaming{client: c, request: r, options: options}
		s.request.stream = true
		for opened := false; ; {
			goOn, err := s.read(ctx, &opened, yield)
			if !goOn {
				return
			}
			if !opened || !passes(err) || ctx.Err() != nil {
				yield(Streamed[json.RawMessage]{}, errors.Join(err, ctx.Err()))
				return
			}
			s.broken++
			s.tell(err)
			if err := c.sleep(ctx, pause(s.broken)); err != nil {
				yield(Streamed[json.RawMessage]{}, err)
				return
			}
		}
	}
}

// streaming is an event stream over several connections.
type streaming struct {
	client  *Client
	request Request
	options []Option
	last    string // the cursor of the last item, or of the last place that the platform told
	broken  int    // breaks since something came
	onBreak func(error)
}

func (s *streaming) tell(err error) {
	if s.onBreak != nil {
		s.onBreak(err)
	}
}

// read reads one connection to its end. It returns false if the caller wants no more.
func (s *streaming) read(
	ctx context.Context, opened *bool, yield func(Streamed[json.RawMessage], error) bool,
) (bool, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	options := append(s.options[:len(s.options):len(s.options)], Header("Accept", "text/event-stream"),
		func(r *Request) { s.onBreak = r.onBreak })
	if s.last != "" {
		options = append(options, LastEventID(s.last))
	}
	response, err := s.client.Do(ctx, s.request, options...)
	if err != nil {
		return true, err
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return true, fmt.Errorf("%s: the answer is %s, not an event stream", s.request.Path, kind)
	}
	*opened = true
	dead := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer dead.Stop()
	lines := &eventLines{reader: response.Body, heard: func() {
		s.broken = 0
		dead.Reset(silence)
	}}
	for event, err := range lines.events() {
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
				err = cause
			}
			return true, &LostError{Method: http.MethodGet, Path: s.request.Path, Err: err}
		}
		s.last = event.id
		if event.data == nil {
			continue
		}
		if !yield(Streamed[json.RawMessage]{event.id, event.name, event.data}, nil) {
			return false, nil
		}
	}
	return true, nil
}

var errSilent = errors.New("nothing was heard for 45 s")

// passes reports whether a stream that ended so can be opened again.
func passes(err error) bool {
	if problem, ok := errors.AsType[*Problem](err); ok {
		return problem.Status == http.StatusTooManyRequests || problem.Status >= 500
	}
	_, lost := errors.AsType[*LostError](err)
	return err == nil || lost
}

// event is one event of a stream; data is nil if the stream only told the place.
type event struct {
	id, name string
	data     []byte
}

// eventLines parses Server-Sent Events (HTML Living Standard §9.2.6).
type eventLines struct {
	reader io.Reader
	heard  func() // called for each line
}

func (e *eventLines) events() iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		lines := bufio.NewScanner(e.reader)
		lines.Buffer(nil, maxStreamLine)
		lines.Split(splitLines)
		var now event
		changed := false
		for first := true; lines.Scan(); first = false {
			e.heard()
			line := lines.Bytes()
			if first {
				line = bytes.TrimPrefix(line, []byte("\ufeff"))
			}
			if len(line) > 0 {
				changed = now.field(line) || changed
				continue
			}
			if changed {
				now.data = bytes.TrimSuffix(now.data, []byte("\n"))
				if !yield(now, nil) {
					return
				}
			}
			now, changed = event{id: now.id}, false // an id holds until there is another
		}
		if err := lines.Err(); err != nil {
			yield(event{}, err)
		}
	}
}

// field reads one line of an event, and reports whether it says anything.
func (e *event) field(line []byte) bool {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		e.data = append(append(e.data, value...), '\n')
	case "event":
		e.name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.id = string(value)
		}
	default: // a comment, or a member that this client does not need
		return false
	}
	return true
}

// splitLines is a bufio.SplitFunc for lines that end with \n, \r\n or \r.
func splitLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	end := bytes.IndexAny(data, "\r\n")
	switch {
	case end < 0 && atEOF && len(data) > 0:
		return len(data), data, nil
	case end < 0:
		return 0, nil, nil
	case data[end] == '\n':
		return end + 1, data[:end], nil
	case end+1 < len(data) && data[end+1] == '\n':
		return end + 2, data[:end], nil
	case end+1 == len(data) && !atEOF:
		return 0, nil, nil // a \n may follow
	}
	return end + 1, data[:end], nil
}

// Lines reads the values of a file with one JSON value a line (application/x-ndjson), such as that of ExportUsers.
func Lines[T any](r io.Reader) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for decoder := json.NewDecoder(r); ; {
			var v T
			err := decoder.Decode(&v)
			if errors.Is(err, io.EOF) || !yield(v, err) || err != nil {
				return
			}
		}
	}
}
