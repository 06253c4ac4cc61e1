package rest

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
)

// Upload is embedded in an input whose operation reads the body itself.
type Upload struct {
	Request *http.Request `json:"-"`
	control *http.ResponseController
}

// Resolve is called by huma.
func (u *Upload) Resolve(ctx huma.Context) []error {
	c := humagin.Unwrap(ctx)
	u.Request, u.control = c.Request, http.NewResponseController(c.Writer)
	return nil
}

// Patient returns the body as a stream that may go on forever, but must not pause for longer than idle.
func (u *Upload) Patient(idle time.Duration) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		_ = u.control.SetReadDeadline(time.Now().Add(idle)) // not every server has deadlines
		if ctx := u.Request.Context(); ctx.Err() != nil {   // looked at after the deadline is set: see watch
			return 0, context.Cause(ctx)
		}
		return u.Request.Body.Read(p)
	})
}

// PatientWriter returns the answer as a stream that may go on forever, but must not stall for longer than idle.
func PatientWriter(w http.ResponseWriter, idle time.Duration) io.Writer {
	control := http.NewResponseController(w)
	return writerFunc(func(p []byte) (int, error) {
		_ = control.SetWriteDeadline(time.Now().Add(idle))
		return w.Write(p)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
