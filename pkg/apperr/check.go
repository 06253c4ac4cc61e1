package apperr

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxProps limits sys_ext_props and free_ext_props, each, in bytes.
const MaxProps = 64 << 10

// Text checks a single line of text: at most limit characters, and no control characters.
func (f *Faults) Text(location, s string, limit int) {
	f.Check(utf8.RuneCountInString(s) <= limit, location, "must have at most %d characters", limit)
	f.Check(!strings.ContainsFunc(s, unicode.IsControl), location, "must not have control characters")
}

// Prose checks a text that can have several lines: it allows line breaks and tabs, otherwise it is like Text.
func (f *Faults) Prose(location, s string, limit int) {
	f.Check(utf8.RuneCountInString(s) <= limit, location, "must have at most %d characters", limit)
	refused := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }
	f.Check(!strings.ContainsFunc(s, refused), location,
		"must not have control characters except line breaks and tabs")
}

// Name checks a text like Text that must not be empty or only white space.
func (f *Faults) Name(location, s string, limit int) {
	f.Text(location, s, limit)
	f.Check(strings.TrimSpace(s) != "", location, "must have 1…%d characters", limit)
}

var code = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Code checks a code or name that clients choose for a record: 1…64 letters and digits of ASCII, ".", "_" and "-", of
// which the first is a letter or digit.
func (f *Faults) Code(location, s string) {
	f.Check(code.MatchString(s), location,
		"must have 1…64 letters, digits or . _ -, and begin with a letter or digit")
}

// Props checks a record's extension properties: a JSON object of at most MaxProps bytes. It sets absent ones to {}.
func (f *Faults) Props(location string, props *json.RawMessage) {
	if len(*props) == 0 || string(*props) == "null" {
		*props = json.RawMessage("{}")
	}
	f.Check(len(*props) <= MaxProps, location, "must have at most %d KiB", MaxProps>>10)
	f.Check(bytes.HasPrefix(bytes.TrimLeft(*props, " \t\r\n"), []byte("{")), location, "must be an object")
}

// Switch checks an on/off member. It sets an empty one to absent, the member's default.
func (f *Faults) Switch(location string, s *string, absent string) {
	if *s == "" {
		*s = absent
	}
	f.Check(*s == "1" || *s == "0", location, `must be "1" or "0"`)
}
