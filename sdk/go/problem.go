package idp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// The codes of problems. They are stable: branch on them, not on statuses or texts.
const (
	CodeInvalidParameters    = "invalid_parameters"
	CodeUnauthenticated      = "unauthenticated"
	CodeForbidden            = "forbidden"
	CodeNotFound             = "not_found"
	CodeMethodNotAllowed     = "method_not_allowed"
	CodeAlreadyExists        = "already_exists"
	CodeHasChildren          = "has_children"
	CodeInUse                = "in_use"
	CodeInvalidState         = "invalid_state"
	CodeRequestInProgress    = "request_in_progress"
	CodeVersionMismatch      = "version_mismatch"
	CodeTooLarge             = "too_large"
	CodeUnsupportedMediaType = "unsupported_media_type"
	CodeIdempotencyKeyReused = "idempotency_key_reused"
	CodeRateLimited          = "rate_limited"
	CodeInternal             = "internal"
	CodeOutcomeUnknown       = "outcome_unknown"
	CodeUnavailable          = "unavailable"
)

// Problem is an answer that refuses a request (RFC 9457). Refusals of the token endpoint (RFC 6749) are Problems too:
// Code is their error, Detail their error_description.
type Problem struct {
	Type      string  `json:"type"`
	Title     string  `json:"title"`
	Status    int     `json:"status"`
	Detail    string  `json:"detail,omitempty"`
	Code      string  `json:"code"`
	Errors    []Fault `json:"errors,omitempty"`
	RequestID string  `json:"request_id,omitempty"`
	// Next is where a feed of events can go on, if events after the cursor are no longer kept.
	Next string `json:"next,omitempty"`

	Key  string          `json:"-"` // the request's Idempotency-Key
	Body json.RawMessage `json:"-"` // the problem document as it came; nil if the answer had none
}

// Fault is one fault of a request.
type Fault struct {
	Location string `json:"location"`
	Message  string `json:"message"`
	Count    int64  `json:"count,omitempty"`
}

// Error returns the detail and the faults that it does not name.
func (p *Problem) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d %s", p.Status, p.Code)
	if p.Detail != "" {
		text.WriteString(": " + p.Detail)
	}
	for _, fault := range p.Errors {
		if one := fault.Location + " " + fault.Message; one != p.Detail && fault.Message != p.Detail {
			text.WriteString("; " + one)
		}
	}
	return text.String()
}

// CodeOf returns the code of the Problem in an error; "" if it has none.
func CodeOf(err error) string {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.Code
	}
	return ""
}

// LostError tells that no answer came: the connection could not be made, or broke.
type LostError struct {
	Method, Path string
	// MayBeDone tells that a change was under way, so that it may have been made. The same request with the same
	// Idempotency-Key finds out.
	MayBeDone bool
	Key       string // the request's Idempotency-Key; "" if it had none
	Err       error
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("%s %s: no answer: %v", e.Method, e.Path, e.Err)
	if e.MayBeDone {
		text += " (whether the change was made is unknown)"
	}
	return text
}

func (e *LostError) Unwrap() error { return e.Err }

const maxProblem = 1 << 20 // bytes that are read of a refusal

// readProblem makes a Problem of an answer, whatever its body is.
func readProblem(response *http.Response, key string) *Problem {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	if err != nil {
		body = nil
	}
	p := parseProblem(body)
	p.Status, p.Key = response.StatusCode, key
	if p.Code == "" {
		p.Code = codes[p.Status]
	}
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	if next, err := response.Location(); err == nil && p.Detail == "" && p.Status < http.StatusBadRequest {
		p.Detail = fmt.Sprintf("the address has moved to %s://%s", next.Scheme, next.Host)
	}
	if p.RequestID == "" {
		p.RequestID = response.Header.Get("X-Request-Id")
	}
	return p
}

func parseProblem(body []byte) *Problem {
	var p Problem
	if json.Unmarshal(body, &p) != nil {
		return &Problem{}
	}
	if p.Code == "" {
		var oauth struct {
			Error       string `json:"error"`
			Description string `json:"error_description"`
		}
		if json.Unmarshal(body, &oauth) == nil {
			p.Code, p.Detail = oauth.Error, oauth.Description
		}
	}
	if p.Code != "" {
		p.Body = body
	}
	return &p
}

// codes are those of answers without a problem document, which come from something between the client and the platform.
var codes = map[int]string{
	http.StatusBadRequest: CodeInvalidParameters, http.StatusUnauthorized: CodeUnauthenticated,
	http.StatusForbidden: CodeForbidden, http.StatusNotFound: CodeNotFound,
	http.StatusMethodNotAllowed: CodeMethodNotAllowed, http.StatusPreconditionFailed: CodeVersionMismatch,
	http.StatusRequestEntityTooLarge: CodeTooLarge, http.StatusUnsupportedMediaType: CodeUnsupportedMediaType,
	http.StatusTooManyRequests: CodeRateLimited, http.StatusInternalServerError: CodeInternal,
	http.StatusBadGateway: CodeOutcomeUnknown, http.StatusGatewayTimeout: CodeOutcomeUnknown,
	http.StatusServiceUnavailable: CodeUnavailable,
}
