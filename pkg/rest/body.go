package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/docstore"
)

const jsonType = "application/json; charset=utf-8"

// answer is a response that can be written, replayed or compared.
type answer struct {
	Status      int    `json:"status"`
	ContentType string `json:"content_type"`
	ETag        string `json:"etag,omitempty"`
	Location    string `json:"location,omitempty"`
	Cache       string `json:"cache,omitempty"`
	Token       string `json:"token,omitempty"` // see request.SetConsistencyToken
	Body        []byte `json:"body"`
	replayed    bool
	header      http.Header // further headers, of a Page
	// stream writes the body instead of Body. Meanwhile it holds at most holds bytes.
	stream func(ctx context.Context, w http.ResponseWriter, mine share) error
	holds  int
	// load returns the content type and body, if ContentType and Body are not set.
	load func(context.Context) (contentType string, body []byte, err error)
	// buffer holds Body, and is used again once the answer is written.
	buffer *[]byte
}

// buffers are what lists are encoded into: a new one for each page would be much of the garbage of a service.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxBuffer is the size of the largest buffer that is used again.
const maxBuffer = 256 << 10

// release gives the answer's buffer back. The body must not be used afterwards.
func (a *answer) release() {
	if a.buffer != nil && cap(a.Body) <= maxBuffer {
		*a.buffer = a.Body[:0]
		buffers.Put(a.buffer)
	}
	a.buffer, a.Body = nil, nil
}

// answerer is a body that makes its own answer. Every other body is encoded as JSON.
type answerer interface{ answer() (answer, error) }

func answerOf(v any) (answer, error) {
	if a, ok := v.(answerer); ok {
		return a.answer()
	}
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && list.Type().Elem().Implements(ready) {
		return arrayOf(list), nil
	}
	var b bytes.Buffer
	if err := encodeJSON(&b, v); err != nil {
		return answer{}, err
	}
	return answer{Status: http.StatusOK, ContentType: jsonType, Body: b.Bytes()}, nil
}

// ready is implemented by Raw alone, whose values are JSON already: encoding/json would read all of it again.
var ready = reflect.TypeFor[interface{ ready() }]()

// arrayOf joins the members of an array of Raw.
func arrayOf(list reflect.Value) answer {
	member := func(i int) []byte { return list.Index(i).Field(0).Bytes() } // its JSON; Interface would allocate
	n := list.Len()
	size := n + 2
	for i := range n {
		size += len(member(i))
	}
	buffer := buffers.Get().(*[]byte)
	b := append(slices.Grow(*buffer, size), '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, member(i)...)
	}
	return answer{Status: http.StatusOK, ContentType: jsonType, Body: append(b, ']'), buffer: buffer}
}

// Record is the body of a single record: the JSON form that is stored, with the schema of W, and the record's tag as
// ETag.
type Record[W any] struct {
	JSON []byte
	Tag  string // of the docstore.Doc
}

// RecordOf makes a body from the result of a domain call.
func RecordOf[W, T any](doc docstore.Doc[T], err error) (Record[W], error) {
	if err != nil {
		return Record[W]{}, err
	}
	body, err := doc.JSON()
	return Record[W]{body, doc.Tag()}, err
}

// PartOf makes the body of a part of a record, with the record's tag.
func PartOf[W any](part any, tag string) (Record[W], error) {
	var b bytes.Buffer
	err := encodeJSON(&b, part)
	return Record[W]{b.Bytes(), tag}, err
}

func (Record[W]) tagged() {}

func (r Record[W]) answer() (answer, error) {
	return answer{Status: http.StatusOK, ContentType: jsonType, ETag: `"` + r.Tag + `"`, Body: r.JSON}, nil
}

// Schema returns the schema of W.
func (Record[W]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[W](), true, "")
}

// Raw is encoded JSON with the schema of W: a whole body, or a part of one.
type Raw[W any] struct {
	JSON   []byte
	buffer *[]byte // holds JSON if that was appended
}

// MarshalJSON returns the JSON unchanged.
func (r Raw[W]) MarshalJSON() ([]byte, error) { return r.JSON, nil }

// Encoded is a value as JSON.
func Encoded[W any](value W) (Raw[W], error) {
	var b bytes.Buffer
	err := encodeJSON(&b, value)
	return Raw[W]{JSON: bytes.TrimSuffix(b.Bytes(), []byte("\n"))}, err
}

// Appended is a whole body that write appends to a buffer. Once the body is sent, the buffer is used again.
func Appended[W any](write func(b []byte) ([]byte, error)) (Raw[W], error) {
	buffer := buffers.Get().(*[]byte)
	body, err := write((*buffer)[:0])
	if err != nil {
		buffers.Put(buffer)
		return Raw[W]{}, err
	}
	return Raw[W]{body, buffer}, nil
}

// AppendText appends a text, which must be UTF-8, as JSON.
func AppendText(b []byte, text string) []byte {
	ascii := true
	for i := range len(text) {
		switch c := text[i]; {
		case c >= utf8.RuneSelf:
			ascii = false
		case c < ' ', c == '"', c == '\\':
			return appendQuoted(b, text)
		}
	}
	if !ascii && !utf8.ValidString(text) {
		return appendQuoted(b, text)
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

func appendQuoted(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // the only error reports invalid UTF-8, which is replaced
	return b
}

func (Raw[W]) ready() {}

func (r Raw[W]) answer() (answer, error) {
	return answer{Status: http.StatusOK, ContentType: jsonType, Body: r.JSON, buffer: r.buffer}, nil
}

// Schema returns the schema of W.
func (Raw[W]) Schema(r huma.Registry) *huma.Schema { return r.Schema(reflect.TypeFor[W](), true, "") }

// RawOf makes the items of an array from the result of a domain call.
func RawOf[W, T any](docs []docstore.Doc[T], err error) ([]Raw[W], error) {
	raw := make([]Raw[W], len(docs))
	for i := range docs {
		if err != nil {
			break
		}
		raw[i].JSON, err = docs[i].JSON()
	}
	return raw, err
}

// BatchOf is the body of a batch: encoded records with the schema of W.
type BatchOf[W any] struct {
	Items []Raw[W] `json:"items" nullable:"false" doc:"In the order of the request"`
}

// BatchFrom makes a body from the result of a domain call.
func BatchFrom[W any](batch docstore.Batch, err error) (BatchOf[W], error) {
	b := BatchOf[W]{make([]Raw[W], len(batch.Items))}
	for i, item := range batch.Items {
		b.Items[i].JSON = item
	}
	return b, err
}

// Empty is the body {}.
type Empty struct{}

// Image is a body of image bytes. Load is called only for clients that do not already have what the ETag identifies, so
// expensive work belongs there.
type Image struct {
	ETag string // without quotes
	Load func(ctx context.Context) (contentType string, bytes []byte, err error)
}

func (Image) tagged() {}

func (i Image) answer() (answer, error) {
	return answer{Status: http.StatusOK, ETag: `"` + i.ETag + `"`, Cache: "private", load: i.Load}, nil
}

// Public is JSON that is the same for everybody, with the schema of W. Caches may keep it for MaxAge.
type Public[W any] struct {
	JSON   []byte
	MaxAge time.Duration
}

func (p Public[W]) answer() (answer, error) {
	cache := fmt.Sprintf("public, max-age=%d", int(p.MaxAge.Seconds()))
	return answer{Status: http.StatusOK, ContentType: jsonType, Cache: cache, Body: p.JSON}, nil
}

// Schema returns the schema of W.
func (Public[W]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[W](), true, "")
}

// Stream is a body that is written while it is made. Write may flush through http.ResponseController. An error after
// its first byte breaks the connection, so that no client takes a part for the whole.
type Stream struct {
	ContentType string
	Replayed    bool // the operation handles the Idempotency-Key itself: everything was answered before
	Write       func(w http.ResponseWriter) error
}

// streamHolds is what a stream has in memory at a time.
const streamHolds = 1 << 20

func (s Stream) answer() (answer, error) {
	return answer{Status: http.StatusOK, ContentType: s.ContentType, replayed: s.Replayed, holds: streamHolds,
		stream: func(_ context.Context, w http.ResponseWriter, _ share) error { return s.Write(w) }}, nil
}

// encodeJSON encodes all bodies.
func encodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
