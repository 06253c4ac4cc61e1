package sandbox

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// frameKind is the kind of a message between a pool's process and a worker.
type frameKind byte

const (
	frameReady  frameKind = 'R' // from the worker: it has started; what the kernel lacks to confine it
	frameCall   frameKind = 'C' // to the worker: a workerRequest
	frameNeed   frameKind = 'N' // from the worker: it does not keep the code
	frameCode   frameKind = 'S' // to the worker: the code
	frameBegin  frameKind = 'B' // from the worker: the code is compiled and begins to run
	frameLog    frameKind = 'L' // from the worker: a Line
	frameFetch  frameKind = 'F' // from the worker: a fetchRequest
	frameAnswer frameKind = 'A' // to the worker: a fetchResponse
	frameDone   frameKind = 'D' // from the worker: a verdict
)

// workerRequest asks a worker to run code, or only to check it.
type workerRequest struct {
	Runtime Runtime           `json:"runtime"`
	Entry   string            `json:"entry"`
	Hash    string            `json:"hash"`
	Check   bool              `json:"check,omitempty"`
	Memory  int64             `json:"memory"`
	Env     map[string]string `json:"env,omitempty"`
	Input   json.RawMessage   `json:"input,omitempty"`
}

// verdict is the result of a request.
type verdict struct {
	Outcome Outcome         `json:"outcome"`
	Output  json.RawMessage `json:"output,omitempty"`
	Fault   *Fault          `json:"fault,omitempty"`
}

const (
	frameHead = 5 // bytes: the size of the payload (big-endian) and the kind
	// maxFrame limits the payload. The largest frames are responses, whose bodies are in base64.
	maxFrame = 8 << 20
)

// frames sends and receives messages. Only one goroutine may read.
type frames struct {
	in  *bufio.Reader
	mu  sync.Mutex
	out io.Writer
}

func newFrames(in io.Reader, out io.Writer) *frames {
	return &frames{in: bufio.NewReader(in), out: out}
}

func (f *frames) write(kind frameKind, payload []byte) error {
	if len(payload) > maxFrame {
		return fmt.Errorf("sandbox: a frame of %d bytes", len(payload))
	}
	b := make([]byte, frameHead, frameHead+len(payload)) // one write, so that the reader wakes up once
	binary.BigEndian.PutUint32(b, uint32(len(payload)))
	b[4] = byte(kind)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.out.Write(append(b, payload...))
	return err
}

// writeJSON does not escape <, > and &, so that outputs stay as they are.
func (f *frames) writeJSON(kind frameKind, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return f.write(kind, b.Bytes())
}

func (f *frames) read() (frameKind, []byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(f.in, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFrame {
		return 0, nil, fmt.Errorf("sandbox: a frame of %d bytes", size)
	}
	payload := make([]byte, size)
	_, err := io.ReadFull(f.in, payload)
	return frameKind(head[4]), payload, err
}

// shorten cuts a text to at most limit bytes, after a whole character, and replaces invalid UTF-8.
func shorten(text string, limit int) string {
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text = text[:limit]
	}
	return strings.ToValidUTF8(text, "�")
}
