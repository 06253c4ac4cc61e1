package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// steers reports whether a rune can do more to a terminal than to be seen: move its cursor, change its colours, or turn
// the direction in which it writes.
func steers(r rune) bool {
	return unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' ||
		r == '\u2028' || r == '\u2029'
}

// Printable makes a text safe for a terminal and for one line: a record's name must not move the cursor.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if steers(r) {
			return ' '
		}
		return r
	}, text)
}

// PrintableLines is Printable for a text of several lines.
func PrintableLines(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

// Safe makes a writer for a terminal: what could steer it is written as \u001b, which JSON reads as the same.
func Safe(terminal io.Writer) io.Writer { return &safe{w: terminal} }

type safe struct {
	w    io.Writer
	rest []byte // the beginning of a rune whose other bytes have not come, or of a line's end
}

func (s *safe) Write(p []byte) (int, error) {
	text := append(s.rest, p...)
	var out []byte
	for utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		if r == '\r' && len(text) == 1 {
			break
		}
		switch {
		case r == '\n' || r == '\t' || r == '\r' && text[1] == '\n' || !steers(r):
			out = append(out, text[:size]...)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	s.rest = bytes.Clone(text)
	if _, err := s.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
