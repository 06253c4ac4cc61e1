// Package secret protects secrets: a text type that is never printed, encryption at rest with keys that can be
// rotated, masks for credentials in URLs, and random tokens.
package secret

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Mask is shown in place of a secret.
const Mask = "******"

// String is a secret from the configuration. Printed, logged or marshalled, it shows Mask, or nothing if it is empty;
// only Reveal returns the text. The zero String is the empty secret.
type String struct {
	// A pointer, because fmt cannot call methods on the unexported fields of other packages. It prints an address
	// there, but would print the text of a string.
	text *string
}

// New makes a secret of text.
func New(text string) String {
	if text == "" {
		return String{}
	}
	return String{&text}
}

// Reveal returns the secret itself.
func (s String) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether the secret is empty.
func (s String) IsZero() bool { return s.text == nil }

// String returns Mask, or an empty string for the empty secret.
func (s String) String() string {
	if s.IsZero() {
		return ""
	}
	return Mask
}

// Format prints the mask, whatever the verb.
func (s String) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue returns the mask for slog.
func (s String) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the mask; JSON and YAML use it too.
func (s String) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText sets the secret. It refuses Mask, because a configuration copied from a printed one would use the
// mask as the secret.
func (s *String) UnmarshalText(text []byte) error {
	if string(text) == Mask {
		return errors.New("is the mask that stands for a secret, not a secret")
	}
	*s = New(string(text))
	return nil
}
