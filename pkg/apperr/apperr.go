// Package apperr holds the platform's error model: a closed list of kinds, each with the stable code that clients branch on,
// and the faults of the request. Domain code returns these; everything else that goes wrong is Internal and is only logged.
package apperr

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is what went wrong, as a client may know it. Its text is the problem document's code.
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
	RequestInProgress    Kind = "request_in_progress"
	VersionMismatch      Kind = "version_mismatch"
	TooLarge             Kind = "too_large"
	UnsupportedMediaType Kind = "unsupported_media_type"
	IdempotencyKeyReused Kind = "idempotency_key_reused"
	RateLimited          Kind = "rate_limited"
	Internal             Kind = "internal"
	OutcomeUnknown       Kind = "outcome_unknown" // what was asked for may have been done
	Unavailable          Kind = "unavailable"
)

// Fault is one thing wrong with a request. Location names a member as the domain calls it: username, ids[3],
// items[3].email, or "" for the whole. Package rest knows where in the request it came from, and answers with
// body.username or query.page_size. Message never repeats the rejected value.
type Fault struct {
	Location string `json:"location"`
	Message  string `json:"message"`
}

// Error is a refusal. It is immutable once returned.
type Error struct {
	Kind       Kind
	Detail     string // one sentence for people
	Faults     []Fault
	OAuth      string        // the error code for clients that are answered as RFC 6749 §5.2 has it; "" means the kind's
	RetryAfter time.Duration // when to ask again; 0 means not said: package problem then says when where the conventions want it said
	cause      error         // for logs only
}

// Error is for logs: it includes the cause.
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

// Unwrap gives the cause, if any.
func (e *Error) Unwrap() error { return e.cause }

// New makes an error of a kind with a sentence for people.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// OAuth makes an error of a kind that has a code of its own where OAuth is spoken.
func OAuth(kind Kind, code, format string, args ...any) *Error {
	e := New(kind, format, args...)
	e.OAuth = code
	return e
}

// OAuthCode is err's OAuth code; "" if it names none.
func OAuthCode(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.OAuth
	}
	return ""
}

// Missing says that there is no such record in the caller's tenant.
func Missing(what string) *Error { return New(NotFound, "no such %s", what) }

// Invalid refuses a request for one fault.
func Invalid(location, format string, args ...any) *Error {
	faults := []Fault{{location, fmt.Sprintf(format, args...)}}
	return &Error{Kind: InvalidParameters, Detail: summary(faults), Faults: faults}
}

// Taken says that the unique values at these locations belong to another record.
func Taken(locations ...string) *Error {
	e := New(AlreadyExists, "a unique value is taken")
	for _, l := range locations {
		e.Faults = append(e.Faults, Fault{l, "is taken"})
	}
	return e
}

// Away says that a needed part does not answer; nothing was changed.
func Away(part string, cause error) *Error {
	e := New(Unavailable, "%s does not answer", part)
	e.cause, e.RetryAfter = cause, 2*time.Second
	return e
}

// Unknown says that a part broke while it made a change: nobody knows whether it was made.
func Unknown(cause error) *Error {
	return New(OutcomeUnknown, "it is not known whether the change was made").Because(cause)
}

// Because returns a copy that keeps cause for the logs.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// KindOf is the kind of err, Internal where it has none, "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// IsNotFound reports whether err says that there is no such record.
func IsNotFound(err error) bool { return KindOf(err) == NotFound }
