// Package problem maps errors to problem documents (RFC 9457). Only this package maps kinds of errors to HTTP
// statuses.
package problem

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// ContentType is the content type of every error response.
const ContentType = "application/problem+json"

// Document is the body of an error response (RFC 9457), with code, errors, next and request_id as extension
// members.
type Document struct {
	Type      string         `json:"type" doc:"urn:idp:problem: and the code" example:"urn:idp:problem:invalid_parameters"`
	Title     string         `json:"title" doc:"The code in words" example:"Invalid parameters"`
	Status    int            `json:"status" doc:"The HTTP status" example:"400"`
	Detail    string         `json:"detail,omitempty" doc:"What is wrong, for people" example:"page_size must lie in 1…200"`
	Code      string         `json:"code" doc:"Stable; clients branch on it" example:"invalid_parameters"`
	Errors    []apperr.Fault `json:"errors,omitempty" doc:"Every fault of the request, at once"`
	Next      string         `json:"next,omitempty" doc:"Of the feed of events: the cursor with which it can continue"`
	RequestID string         `json:"request_id,omitempty" doc:"The answer's X-Request-Id"`
}

var statuses = map[apperr.Kind]int{
	apperr.InvalidParameters:    http.StatusBadRequest,
	apperr.Unauthenticated:      http.StatusUnauthorized,
	apperr.Forbidden:            http.StatusForbidden,
	apperr.NotFound:             http.StatusNotFound,
	apperr.MethodNotAllowed:     http.StatusMethodNotAllowed,
	apperr.AlreadyExists:        http.StatusConflict,
	apperr.HasChildren:          http.StatusConflict,
	apperr.InUse:                http.StatusConflict,
	apperr.InvalidState:         http.StatusConflict,
	apperr.ManagedElsewhere:     http.StatusConflict,
	apperr.RequestInProgress:    http.StatusConflict,
	apperr.VersionMismatch:      http.StatusPreconditionFailed,
	apperr.TooLarge:             http.StatusRequestEntityTooLarge,
	apperr.UnsupportedMediaType: http.StatusUnsupportedMediaType,
	apperr.IdempotencyKeyReused: http.StatusUnprocessableEntity,
	apperr.RateLimited:          http.StatusTooManyRequests,
	apperr.Internal:             http.StatusInternalServerError,
	apperr.OutcomeUnknown:       http.StatusBadGateway,
	apperr.Unavailable:          http.StatusServiceUnavailable,
}

// Known reports whether kind is one of the platform's. Codes that come from another server may not be.
func Known(kind apperr.Kind) bool {
	_, ok := statuses[kind]
	return ok
}

// Status is the HTTP status of kind; 500 if kind is not known.
func Status(kind apperr.Kind) int {
	if status, ok := statuses[kind]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// Of makes the document for err. It tells nothing about an error that is not an *apperr.Error.
func Of(err error, requestID string) Document {
	kind, detail := apperr.Internal, "something went wrong on our side; the request id finds it in the logs"
	var faults []apperr.Fault
	next := ""
	if e, ok := errors.AsType[*apperr.Error](err); ok && Status(e.Kind) != http.StatusInternalServerError {
		kind, detail, faults, next = e.Kind, e.Detail, e.Faults, e.Next
	}
	title := strings.ReplaceAll(string(kind), "_", " ")
	return Document{
		Type: "urn:idp:problem:" + string(kind), Title: strings.ToUpper(title[:1]) + title[1:], Status: Status(kind),
		Detail: detail, Code: string(kind), Errors: faults, Next: next, RequestID: requestID,
	}
}

// Headers sets the headers that belong to err: Content-Type, WWW-Authenticate (RFC 6750 §3), and Retry-After (RFC
// 9110 §10.2.3) for every refusal that can end with time.
func Headers(h http.Header, err error) {
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", "no-store")
	e, ok := errors.AsType[*apperr.Error](err)
	if !ok {
		return
	}
	after := e.RetryAfter
	switch e.Kind {
	case apperr.Unauthenticated:
		h.Set("WWW-Authenticate", "Bearer")
	case apperr.RateLimited, apperr.Unavailable, apperr.RequestInProgress:
		after = max(after, time.Second)
	}
	if after > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
}

// Write answers a request with err. The request id is taken from the X-Request-Id that is already set on w.
func Write(w http.ResponseWriter, err error) {
	doc := Of(err, w.Header().Get("X-Request-Id"))
	Headers(w.Header(), err)
	w.WriteHeader(doc.Status)
	_ = json.NewEncoder(w).Encode(doc) // fails only if the client has gone
}
