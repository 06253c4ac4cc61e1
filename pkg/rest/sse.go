package rest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/idplatform/idplatform/pkg/request"
)

const (
	heartbeatEvery = 15 * time.Second
	eventPatience  = 10 * time.Second // how long a client may take to receive what it is sent
)

// ServerEvent is one event of an event stream (HTML Living Standard §9.2). One with an ID alone tells that all before
// this place was sent: the next heartbeat has the ID, so that a client for which nothing happens can continue there.
type ServerEvent struct {
	ID   string // what a client sends as Last-Event-ID to continue after this event; no line breaks
	Name string // the event's type; no line breaks
	Data []byte
}

// Events is an answer that does not end by itself: Server-Sent Events. If nothing is sent for 15 s, it sends a comment,
// so that both sides notice when the other has disconnected. The operation must have Streams, and
// request.EventStreamType among its ContentTypes.
type Events struct {
	// Run sends events until its context ends: the client has disconnected, the server drains, or the credential is no
	// longer valid. Then it returns, and the stream ends cleanly. Any other error breaks the connection. send takes
	// events that are in memory together, at most about EventsAtOnce. It fails when the client has disconnected or is
	// too slow, the credential is no longer valid, or too many others wait for slow clients: the client may come back.
	Run func(ctx context.Context, send func(...ServerEvent) error) error

	heartbeat time.Duration // heartbeatEvery, except in tests
}

// EventsAtOnce is how many bytes of events a stream may have in memory: the events of one send.
const EventsAtOnce = 256 << 10

func (e Events) answer() (answer, error) {
	if e.heartbeat == 0 {
		e.heartbeat = heartbeatEvery
	}
	return answer{Status: http.StatusOK, ContentType: request.EventStreamType, stream: e.write}, nil
}

// OrEvents is an answer that is a JSON body or, where the client asks for one (request.WantsEvents), an event stream.
type OrEvents[B any] struct {
	Body   B
	Events *Events // instead of Body; nil if the client does not ask for a stream
}

func (o OrEvents[B]) answer() (answer, error) {
	if o.Events != nil {
		return o.Events.answer()
	}
	return answerOf(o.Body)
}

// Schema returns the schema of B.
func (OrEvents[B]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[B](), true, "")
}

// eventWriter writes complete events, one at a time.
type eventWriter struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
	failed  error
	ended   bool
	place   string // an ID to be sent with the next heartbeat
	beat    *time.Timer
	every   time.Duration
	mine    share
}

// write writes the stream.
func (e Events) write(ctx context.Context, w http.ResponseWriter, mine share) error {
	free, err := mine.take(EventsAtOnce, false)
	if err != nil {
		return err
	}
	free.release() // a stream without events holds nothing
	ctx, cancel := request.UntilDrain(ctx)
	defer cancel()
	out := &eventWriter{w: w, control: http.NewResponseController(w), every: e.heartbeat, mine: mine}
	if err := out.write([]byte(": stream\n\n")); err != nil { // tells the client that the stream has begun
		return err
	}
	out.mu.Lock()
	out.beat = time.AfterFunc(e.heartbeat, func() {
		if out.heartbeat() != nil {
			cancel()
		}
	})
	out.mu.Unlock()
	defer out.end()
	err = e.Run(ctx, out.send)
	if ctx.Err() != nil || errors.Is(err, errFull) {
		return nil
	}
	return err
}

// errFull ends a stream that has no part in the budget left.
var errFull = full()

func (o *eventWriter) send(events ...ServerEvent) error {
	size := 0
	for i := range events {
		size += len(events[i].Data)
	}
	taken, err := o.mine.take(size, false)
	if err != nil {
		return errFull
	}
	defer taken.release()
	for _, event := range events {
		if event.Name == "" && event.Data == nil {
			o.note(event.ID)
			continue
		}
		if err := o.write(event.encode()); err != nil {
			return err
		}
	}
	return nil
}

func (o *eventWriter) note(place string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.place = place
}

func (o *eventWriter) heartbeat() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.locked(ServerEvent{ID: o.place}.heartbeat())
}

func (o *eventWriter) write(b []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.locked(b)
}

// locked writes and flushes b, and restarts the time until the next heartbeat.
func (o *eventWriter) locked(b []byte) error {
	if o.failed != nil || o.ended {
		return o.failed
	}
	o.place = ""
	_ = o.control.SetWriteDeadline(time.Now().Add(eventPatience)) // not every server has deadlines
	if _, o.failed = o.w.Write(b); o.failed == nil {
		o.failed = o.control.Flush()
	}
	if o.beat != nil {
		o.beat.Reset(o.every)
	}
	return o.failed
}

func (o *eventWriter) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.beat.Stop()
}

// encode writes the lines of the event. A line break in the data starts another data line; other members must not
// contain one.
func (e ServerEvent) encode() []byte {
	var b bytes.Buffer
	b.Grow(len(e.ID) + len(e.Name) + len(e.Data) + 32)
	writeField(&b, "id", e.ID)
	writeField(&b, "event", e.Name)
	for part := range bytes.SplitSeq(bytes.ReplaceAll(e.Data, []byte("\r"), nil), []byte("\n")) {
		b.WriteString("data: ")
		b.Write(part)
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// heartbeat is a comment, with the ID if there is one. A client takes note of an ID without data, but sees no event.
func (e ServerEvent) heartbeat() []byte {
	b := bytes.NewBufferString(":\n")
	writeField(b, "id", e.ID)
	b.WriteByte('\n')
	return b.Bytes()
}

func writeField(b *bytes.Buffer, field, value string) {
	if value != "" {
		b.WriteString(field + ": " + strings.NewReplacer("\r", "", "\n", "").Replace(value) + "\n")
	}
}
