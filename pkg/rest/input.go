package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// readBody reads a JSON body before huma does: completely, once, within the operation's time. So every fault in a
// body's bytes is refused in one place, and the fingerprint of a repeated request is that of the body that the
// operation gets. The body is in the call's buffer, without unknown members, which are among the call's faults.
func (s *Server) readBody(
	ctx context.Context, op *Op, call *call, w http.ResponseWriter, r *http.Request,
) ([]byte, error) {
	if op.jsonBody == required && !op.takes(r.Header.Get("Content-Type")) {
		if op.Lenient {
			return nil, apperr.New(apperr.InvalidParameters, "the body must be application/json")
		}
		return nil, apperr.New(apperr.UnsupportedMediaType, "the body must be application/json")
	}
	if r.ContentLength > int64(op.MaxBody) {
		return nil, tooLarge(op.MaxBody)
	}
	call.buffer = bodyBuffers.Get().(*[]byte)
	sent := newSteadyBody(w, r.Body, op.Timeout)
	body, err := receive(*call.buffer, sent, maxBody)
	*call.buffer = body
	if err == nil && len(body) > maxBody && op.MaxBody > maxBody {
		if call.large, err = s.cfg.Budget.take(request.Tenant(ctx), op.MaxBody, false); err != nil {
			return nil, err
		}
		body, err = receive(body, sent, op.MaxBody)
		*call.buffer = body
	}
	// The deadline stays for a body that is not read, because net/http reads a little of it after the answer. In the
	// other cases huma resets it.
	switch {
	case err != nil:
		return nil, unreadable(err)
	case len(body) > op.MaxBody:
		return nil, tooLarge(op.MaxBody)
	}
	if op.jsonBody == optional && !op.takes(r.Header.Get("Content-Type")) {
		if isEmptyForm(r.Header.Get("Content-Type"), body) {
			return nil, nil
		}
		return nil, apperr.New(apperr.UnsupportedMediaType, "the body must be application/json")
	}
	r.Header.Set("Content-Type", "application/json") // huma accepts no other spelling
	if call.plain = op.plain.accepts(body); call.plain {
		return body, nil
	}
	body, unknown, err := checkJSON(body, op.shape)
	if op.Lenient {
		return body, err
	}
	for _, location := range unknown {
		call.faults = append(call.faults, apperr.Fault{Location: location, Message: "is not a known member"})
	}
	return body, err
}

func tooLarge(most int) error {
	return apperr.New(apperr.TooLarge, "the body has more than %d bytes", most)
}

func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(media), "application/json")
}

// isEmptyForm recognizes the bodies of clients that always send a form: nothing, or a multipart form that ends before
// its first part.
func isEmptyForm(contentType string, body []byte) bool {
	if len(body) == 0 {
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	return err == nil && media == "multipart/form-data" && string(bytes.TrimSpace(body)) == "--"+params["boundary"]+"--"
}

// keeper is a body that only keeps a copy of its text. The operation decodes it later, so decoding it here would read
// the text twice.
type keeper interface{ keep(text []byte) }

// decodeJSON decodes a checked body for huma. Unlike those of encoding/json, its errors contain nothing of the body.
func decodeJSON(body []byte, v any) error {
	if k, ok := v.(keeper); ok {
		k.keep(bytes.TrimSpace(body))
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, onlyToCheck := v.(*any); onlyToCheck {
		dec.UseNumber() // members of any JSON accept numbers beyond float64
	}
	err := dec.Decode(v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return fmt.Errorf("has a value of the wrong type at %s", wrong.Field)
	}
	if err != nil {
		return errors.New("has a value of the wrong type")
	}
	return nil
}

// ByID is the path of one record, to be embedded. It is exported because huma overlooks the members of unexported
// embedded types.
type ByID struct {
	ID string `path:"id" maxLength:"64" doc:"The record's id" example:"1048577"`
}

// Deleted is the answer to the deletion of one record.
type Deleted = docstore.Deleted

// Removed is the answer to a delete by a list or a filter. Records that do not exist are no error.
type Removed struct {
	Removed int `json:"removed" doc:"How many records were deleted" example:"1"`
}
