// Package secret keeps secrets secret: a text type that nothing prints, encryption at rest with keys that can be rotated,
// and random tokens.
package secret

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Mask stands wherever a secret would be printed.
const Mask = "******"

// String is a secret of the configuration. However it is printed, logged or marshalled, it shows Mask, or nothing where it is
// empty; only Reveal gives the text. The zero String is the empty secret.
type String struct {
	// A pointer, since fmt can't call methods on other packages' unexported fields: it prints an address there, and would print
	// a string itself.
	text *string
}

// New makes a secret of text.
func New(text string) String {
	if text == "" {
		return String{}
	}
	return String{&text}
}

// Reveal gives the secret itself.
func (s String) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether the secret is empty.
func (s String) IsZero() bool { return s.text == nil }

// String is Mask, or empty for the empty secret.
func (s String) String() string {
	if s.IsZero() {
		return ""
	}
	return Mask
}

// Format prints the mask, whatever the verb.
func (s String) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue is what slog shows: the mask.
func (s String) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText writes the mask, in JSON and YAML too.
func (s String) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes the secret. It refuses Mask: a configuration made from a printed one would silently use it as the secret.
func (s *String) UnmarshalText(text []byte) error {
	if string(text) == Mask {
		return errors.New("is the mask that stands for a secret, not a secret")
	}
	*s = New(string(text))
	return nil
}
