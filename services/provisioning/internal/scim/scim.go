// Package scim is what the packages below it share: the error types of SCIM (RFC 7644 §3.12). Together they read, test,
// change and write SCIM 2.0 resources, and know no store, no HTTP and no NATS.
package scim

import (
	"errors"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Type is the scimType of an error, by which clients tell errors of one status apart.
type Type string

// The types of RFC 7644 §3.12, and those of RFC 9865 §2.1 for cursors.
const (
	InvalidFilter Type = "invalidFilter"
	TooMany       Type = "tooMany"
	Uniqueness    Type = "uniqueness"
	Mutability    Type = "mutability"
	InvalidSyntax Type = "invalidSyntax"
	InvalidPath   Type = "invalidPath"
	NoTarget      Type = "noTarget"
	InvalidValue  Type = "invalidValue"
	InvalidVers   Type = "invalidVers"
	Sensitive     Type = "sensitive"
	InvalidCursor Type = "invalidCursor"
	ExpiredCursor Type = "expiredCursor"
	InvalidCount  Type = "invalidCount"
)

// Error is an apperr.Error, which it wraps, with a scimType.
type Error struct {
	Type Type
	err  *apperr.Error
}

func (e *Error) Error() string { return string(e.Type) + ": " + e.err.Error() }

// Unwrap returns the *apperr.Error.
func (e *Error) Unwrap() error { return e.err }

// Invalid refuses a request (400) because of what is at location, which may be "". Like all texts for clients, it must
// not repeat the rejected value.
func Invalid(t Type, location, format string, args ...any) error {
	return &Error{t, apperr.Invalid(location, format, args...)}
}

// With gives an error for clients a scimType.
func With(t Type, err *apperr.Error) error { return &Error{t, err} }

// TypeOf returns the scimType of err. An error that has none gets that of its kind, which may be "".
func TypeOf(err error) Type {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Type
	}
	switch apperr.KindOf(err) {
	case apperr.AlreadyExists:
		return Uniqueness
	case apperr.InvalidParameters:
		return InvalidValue
	}
	return ""
}

// Relocate returns err with the location of each fault changed by to, as apperr.Relocate does, and with its scimType.
func Relocate(err error, to func(location string) string) error {
	e, is := errors.AsType[*Error](err)
	if !is {
		return apperr.Relocate(err, to)
	}
	if moved, is := errors.AsType[*apperr.Error](apperr.Relocate(e.err, to)); is {
		return &Error{e.Type, moved}
	}
	return err
}
