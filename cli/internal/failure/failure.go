// Package failure says how the program ends: the exit code of every error, and what it prints.
package failure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	idp "github.com/idplatform/idplatform/sdk/go"
)

// The exit codes. Scripts branch on them, so they are stable.
const (
	Done           = 0
	Fault          = 1 // of the program itself
	Usage          = 2
	NotFound       = 3
	NotAllowed     = 4
	Refused        = 5
	Changed        = 6
	Unavailable    = 7 // nothing changed
	OutcomeUnknown = 8
	Partly         = 9
	No             = 10
	Interrupted    = 130
)

// Error is an error with an exit code.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Usagef is the error of a command that is used wrongly.
func Usagef(format string, args ...any) error { return &Error{Usage, fmt.Errorf(format, args...)} }

// NotFoundf is the error of a name that nothing has.
func NotFoundf(format string, args ...any) error {
	return &Error{NotFound, fmt.Errorf(format, args...)}
}

// NotSignedInf is the error of a command without a credential.
func NotSignedInf(format string, args ...any) error {
	return &Error{NotAllowed, fmt.Errorf(format, args...)}
}

// ErrNo ends a command whose answer is no. The command has printed the answer.
var ErrNo = &Error{No, errors.New("no")}

// scopeError is a refusal of an operation that needs a scope.
type scopeError struct {
	error
	scope string
}

func (e *scopeError) Unwrap() error { return e.error }

// WithScope adds the scope that an operation needs to its refusal.
func WithScope(err error, scope string) error {
	if idp.CodeOf(err) == idp.CodeForbidden && scope != "" {
		return &scopeError{err, scope}
	}
	return err
}

// CodeOf returns the exit code of an error. changes tells whether the request was a change.
func CodeOf(err error, changes bool) int {
	if err == nil {
		return Done
	}
	if known, ok := errors.AsType[*Error](err); ok {
		return known.Code
	}
	if lost, ok := errors.AsType[*idp.LostError](err); ok {
		if lost.MayBeDone {
			return OutcomeUnknown
		}
		if errors.Is(err, context.Canceled) {
			return Interrupted
		}
		return Unavailable
	}
	if problem, ok := errors.AsType[*idp.Problem](err); ok {
		return codeOf(problem, changes)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, context.DeadlineExceeded):
		return Unavailable
	}
	return Fault
}

func codeOf(p *idp.Problem, changes bool) int {
	switch p.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return NotAllowed
	case http.StatusNotFound:
		return NotFound
	case http.StatusPreconditionFailed:
		return Changed
	case http.StatusTooManyRequests:
		return Unavailable
	case http.StatusServiceUnavailable:
		if p.Body == nil && changes { // of a proxy, which cannot know
			return OutcomeUnknown
		}
		return Unavailable
	}
	switch {
	case p.Status < http.StatusInternalServerError:
		return Refused
	case changes: // 500, 502 and 504
		return OutcomeUnknown
	}
	return Unavailable
}

// Print writes an error and what to do about it for people or, asJSON, the problem document for programs. A secret or a
// value that was sent is never in it. changes tells whether the request was a change.
func Print(w io.Writer, err error, changes, asJSON bool) {
	if err == nil || errors.Is(err, ErrNo) {
		return
	}
	problem, isProblem := errors.AsType[*idp.Problem](err)
	if asJSON {
		document := json.RawMessage(nil)
		if isProblem {
			document = problem.Body
		}
		if document == nil {
			document, _ = json.Marshal(map[string]string{"code": "idp", "detail": err.Error()})
		}
		text := strings.TrimSpace(string(document))
		if key := keyOf(err); key != "" && CodeOf(err, changes) == OutcomeUnknown {
			text = with(text, "idempotency_key", key)
		}
		if scoped, ok := errors.AsType[*scopeError](err); ok {
			text = with(text, "scope", scoped.scope)
		}
		fmt.Fprintln(w, text)
		return
	}
	if !isProblem {
		fmt.Fprintln(w, "idp:", err)
	} else {
		printProblem(w, problem)
	}
	if advice := adviceOf(err, changes); advice != "" {
		fmt.Fprintln(w, "  "+advice)
	}
}

// with adds a member to the text of an object, whose other members stay as they are.
func with(object, name, value string) string {
	member, _ := json.Marshal(map[string]string{name: value})
	rest, isObject := strings.CutSuffix(object, "}")
	if !isObject {
		return object
	}
	if strings.TrimSpace(rest) != "{" {
		rest += ","
	}
	return rest + strings.TrimPrefix(string(member), "{")
}

// adviceOf says what to do about an error; "" if the error says it.
func adviceOf(err error, changes bool) string {
	if scoped, ok := errors.AsType[*scopeError](err); ok {
		return "The operation needs the scope " + scoped.scope + ", or the tenant is not yours: idp doctor shows both."
	}
	switch CodeOf(err, changes) {
	case OutcomeUnknown:
		if key := keyOf(err); key != "" {
			return "The same command with --idempotency-key " + key + " finds out whether it was done."
		}
		return "Read the record to see whether it was done; a second time does no harm."
	case Changed:
		return "Somebody else was faster: read the record again, and give its version."
	case Unavailable:
		if changes {
			return "Nothing was changed. --wait 5m waits longer, idp doctor looks for the reason."
		}
		return "--wait 5m waits longer, idp doctor looks for the reason."
	}
	return advice[idp.CodeOf(err)]
}

// advice is what to do about a problem, by its code.
var advice = map[string]string{
	idp.CodeUnauthenticated:      "Sign in again: idp login. idp doctor looks at the credential.",
	idp.CodeForbidden:            "idp doctor shows the scopes and the tenant of the credential.",
	idp.CodeNotFound:             "idp doctor shows the tenant that was asked; another one is --tenant.",
	idp.CodeMethodNotAllowed:     "The platform may be older than idp: idp doctor compares them.",
	idp.CodeUnsupportedMediaType: "--content-type says what --data is; --help lists what is taken.",
	idp.CodeRequestInProgress:    "The first request still runs: the same command again, a little later.",
	idp.CodeIdempotencyKeyReused: "The key belongs to another request: leave --idempotency-key out.",
	idp.CodeTooLarge:             "Send less at once.",
}

func printProblem(w io.Writer, p *idp.Problem) {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	fmt.Fprintf(w, "idp: %s (%d %s)\n", text, p.Status, p.Code)
	for _, fault := range p.Errors {
		fmt.Fprintf(w, "  %s: %s\n", fault.Location, fault.Message)
	}
	if p.RequestID != "" && p.Status >= http.StatusInternalServerError {
		fmt.Fprintf(w, "  request %s\n", p.RequestID)
	}
}

func keyOf(err error) string {
	if lost, ok := errors.AsType[*idp.LostError](err); ok {
		return lost.Key
	}
	if problem, ok := errors.AsType[*idp.Problem](err); ok {
		return problem.Key
	}
	return ""
}
