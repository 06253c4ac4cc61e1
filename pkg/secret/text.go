package secret

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// Text is a secret member of a record. In JSON it is Mask if the record has a value and "" if not; the value itself
// is stored apart, encrypted (docstore.Schema.Sealed). A client that sends Mask back keeps the value, "" or null
// removes it, and anything else replaces it. The zero Text has no value.
type Text struct {
	set   bool
	given *string // the value that a client sent; a pointer, because fmt would print a string
}

// NewText makes a member with a new value.
func NewText(value string) Text {
	if value == "" {
		return Text{}
	}
	return Text{set: true, given: &value}
}

// IsSet reports whether there is a value, or a mask that stands for a stored one.
func (t Text) IsSet() bool { return t.set }

// Given returns the new value; ok is false for a mask and for no value.
func (t Text) Given() (value string, ok bool) {
	if t.given == nil {
		return "", false
	}
	return *t.given, true
}

// String returns Mask, or an empty string for no value.
func (t Text) String() string {
	if !t.set {
		return ""
	}
	return Mask
}

// Format prints the mask, whatever the verb.
func (t Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue returns the mask for slog.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalJSON writes the mask.
func (t Text) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

// UnmarshalJSON reads the member from a client's request or from a stored record.
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
