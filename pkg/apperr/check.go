package apperr

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxProps is how many bytes sys_ext_props and free_ext_props may each have.
const MaxProps = 64 << 10

// Text checks a line of text for people: at most so many characters, none of them a control character.
func (f *Faults) Text(location, s string, most int) {
	f.Check(utf8.RuneCountInString(s) <= most, location, "must have at most %d characters", most)
	f.Check(!strings.ContainsFunc(s, unicode.IsControl), location, "must not have control characters")
}

// Prose is Text that may have several lines.
func (f *Faults) Prose(location, s string, most int) {
	f.Check(utf8.RuneCountInString(s) <= most, location, "must have at most %d characters", most)
	f.Check(!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }),
		location, "must not have control characters but line breaks and tabs")
}

// Name is Text for one that must be there.
func (f *Faults) Name(location, s string, most int) {
	f.Text(location, s, most)
	f.Check(strings.TrimSpace(s) != "", location, "must have 1…%d characters", most)
}

// Props checks a record's extension properties, and makes {} of those that are absent.
func (f *Faults) Props(location string, props *json.RawMessage) {
	if len(*props) == 0 || string(*props) == "null" {
		*props = json.RawMessage("{}")
	}
	f.Check(len(*props) <= MaxProps, location, "must have at most %d KiB", MaxProps>>10)
	f.Check(bytes.HasPrefix(bytes.TrimLeft(*props, " \t\r\n"), []byte("{")), location, "must be an object")
}

// Switch checks an on/off member, and makes what it means when absent of the empty one.
func (f *Faults) Switch(location string, s *string, absent string) {
	if *s == "" {
		*s = absent
	}
	f.Check(*s == "1" || *s == "0", location, `must be "1" or "0"`)
}
