package secret

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// Text is a secret member of a record. In JSON it is Mask where the record has a value and "" where it has none; the
// value itself is stored apart, encrypted (docstore.Schema.Sealed). A client that sends Mask back keeps the value, ""
// or null removes it, anything else replaces it. The zero Text is no value.
type Text struct {
	set   bool
	given *string // what a client sent; a pointer, since fmt would print a string
}

// NewText makes a member with a new value.
func NewText(value string) Text {
	if value == "" {
		return Text{}
	}
	return Text{set: true, given: &value}
}

// IsSet reports whether there is a value, or a mask that stands for one.
func (t Text) IsSet() bool { return t.set }

// Given is the new value; false for a mask and for no value.
func (t Text) Given() (value string, ok bool) {
	if t.given == nil {
		return "", false
	}
	return *t.given, true
}

// String is Mask, or empty for no value.
func (t Text) String() string {
	if !t.set {
		return ""
	}
	return Mask
}

// Format prints the mask, whatever the verb.
func (t Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue is what slog shows: the mask.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalJSON writes the mask.
func (t Text) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

// UnmarshalJSON reads what a client sent, or what is stored.
func (t *Text) UnmarshalJSON(data []byte) error {
	var value string
	if err := json.Unmarshal(data, &value); err != nil {
		return err
	}
	*t = NewText(value)
	if value == Mask {
		t.given = nil
	}
	return nil
}
