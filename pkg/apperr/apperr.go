// Package apperr is the platform's error model: a fixed list of kinds, each with the stable code that clients branch
// on, and the faults of a request. Domain code returns these errors. Every other error is of kind Internal: it is
// logged, and clients learn nothing about it.
package apperr

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind classifies an error for clients. Its text is the code of the problem document.
type Kind string

// The kinds. Their HTTP statuses are in package problem.
const (
	InvalidParameters    Kind = "invalid_parameters"
	Unauthenticated      Kind = "unauthenticated"
	Forbidden            Kind = "forbidden"
	NotFound             Kind = "not_found"
	MethodNotAllowed     Kind = "method_not_allowed"
	AlreadyExists        Kind = "already_exists"
	HasChildren          Kind = "has_children"
	InUse                Kind = "in_use"
	InvalidState         Kind = "invalid_state"
	ManagedElsewhere     Kind = "managed_elsewhere" // a provisioning connection owns what the request would change
	RequestInProgress    Kind = "request_in_progress"
	VersionMismatch      Kind = "version_mismatch"
	TooLarge             Kind = "too_large"
	UnsupportedMediaType Kind = "unsupported_media_type"
	IdempotencyKeyReused Kind = "idempotency_key_reused"
	RateLimited          Kind = "rate_limited"
	Internal             Kind = "internal"
	OutcomeUnknown       Kind = "outcome_unknown" // the request may have been carried out
	Unavailable          Kind = "unavailable"
)

// Fault is one thing wrong with a request. Location names a member as the domain calls it: username, ids[3],
// items[3].email, or "" for the whole. Package rest knows where in the request it came from, and answers with
// body.username or query.page_size. Message never repeats the rejected value.
type Fault struct {
	Location string `json:"location" doc:"Where: body.email, query.page_size, path.id; empty: the whole request"`
	Message  string `json:"message" doc:"What is wrong there"`
	Count    int64  `json:"count,omitempty" doc:"Of in_use: how many records refer to it"`
}

// Error is an error that a client may see. It must not be changed once returned.
type Error struct {
	Kind   Kind
	Detail string // one sentence for people
	Faults []Fault
	OAuth  string // the error code in OAuth responses (RFC 6749 §5.2); "" means that of the kind
	// RetryAfter is when the client should try again. With 0, package problem sets a time for the kinds for which the
	// conventions require one.
	RetryAfter time.Duration
	Next       string // of a feed that no longer has what was asked for: the cursor with which it can continue
	cause      error  // only for logs
}

// Error is the text for logs: it includes the cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Kind))
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	for _, f := range e.Faults {
		fmt.Fprintf(&b, "; %s", strings.TrimSpace(f.Location+" "+f.Message))
	}
	if e.cause != nil {
		fmt.Fprintf(&b, ": %v", e.cause)
	}
	return b.String()
}

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.cause }

// New makes an error of a kind with a sentence for people.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// OAuth makes an error of a kind that has a code of its own in OAuth responses.
func OAuth(kind Kind, code, format string, args ...any) *Error {
	e := New(kind, format, args...)
	e.OAuth = code
	return e
}

// OAuthCode returns err's OAuth code, or "" if it has none.
func OAuthCode(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.OAuth
	}
	return ""
}

// Missing means that the caller's tenant has no such record.
func Missing(what string) *Error { return New(NotFound, "no such %s", what) }

// Invalid refuses a request that has one fault.
func Invalid(location, format string, args ...any) *Error {
	faults := []Fault{{Location: location, Message: fmt.Sprintf(format, args...)}}
	return &Error{Kind: InvalidParameters, Detail: summary(faults), Faults: faults}
}

// Taken means that another record has the unique values at these locations.
func Taken(locations ...string) *Error {
	e := New(AlreadyExists, "a unique value is taken")
	for _, l := range locations {
		e.Faults = append(e.Faults, Fault{Location: l, Message: "is taken"})
	}
	return e
}

// Away means that a part that is needed does not answer. Nothing was changed.
func Away(part string, cause error) *Error {
	e := New(Unavailable, "%s does not answer", part)
	e.cause, e.RetryAfter = cause, 2*time.Second
	return e
}

// Unknown means that a part broke while it made a change: the change may have been made.
func Unknown(cause error) *Error {
	return New(OutcomeUnknown, "it is not known whether the change was made").Because(cause)
}

// Because returns a copy of e with a cause for the logs.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// KindOf returns the kind of err: Internal if it is not an *Error, "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Ignore returns err, or nil if it is of the kind.
func Ignore(err error, kind Kind) error {
	if KindOf(err) == kind {
		return nil
	}
	return err
}

// IsNotFound reports whether err means that a record does not exist.
func IsNotFound(err error) bool { return KindOf(err) == NotFound }
