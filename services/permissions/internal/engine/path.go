package engine

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// pathOf returns the segments of a URI's path in their normal form (RFC 3986 §6.2.2): percent-encoding only where a
// segment needs it, in upper case, and no dot segments. The query and the fragment are cut off. Programs that serve the
// path read it in different ways if it has a coded slash, a backslash, an empty segment, a path parameter, a control
// character or bytes that are not UTF-8: then there is no normal form, and ok is false. Only the last segment can be
// empty.
func pathOf(uri string) (segments []string, ok bool) {
	path, _, _ := strings.Cut(uri, "#")
	path, _, _ = strings.Cut(path, "?")
	rest, rooted := strings.CutPrefix(path, "/")
	if !rooted || strings.Contains(path, "//") {
		return nil, false
	}
	segments = make([]string, 1, 1+1+strings.Count(rest, "/"))
	for more := true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		if segment, ok = decoded(segment); !ok {
			return nil, false
		}
		switch segment {
		case "..":
			segments = segments[:max(1, len(segments)-1)]
			fallthrough
		case ".":
			if !more {
				segments = append(segments, "")
			}
		default:
			segments = append(segments, encoded(segment))
		}
	}
	return segments, true
}

// decoded is a segment without percent-encoding. ok is false if the segment could be read in different ways.
func decoded(segment string) (_ string, ok bool) {
	if strings.ContainsAny(segment, "\\;") {
		return "", false
	}
	if strings.IndexByte(segment, '%') >= 0 {
		b := make([]byte, 0, len(segment))
		for i := 0; i < len(segment); i++ {
			c := segment[i]
			if c == '%' {
				if i+2 >= len(segment) || !hex(segment[i+1]) || !hex(segment[i+2]) {
					return "", false
				}
				c = value(segment[i+1])<<4 | value(segment[i+2])
				i += 2
			}
			b = append(b, c)
		}
		segment = string(b)
	}
	unclear := func(r rune) bool { return r < ' ' || r == 0x7f || r == '/' || r == '\\' }
	return segment, utf8.ValidString(segment) && !strings.ContainsFunc(segment, unclear)
}

func hex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// value is that of a hexadecimal digit.
func value(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// encoded encodes what a segment cannot have (RFC 3986 §3.3), and the semicolon, which begins a parameter.
func encoded(segment string) string {
	plain := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("-._~!$&'()*+,=:@", c) >= 0
	}
	i := 0
	for i < len(segment) && plain(segment[i]) {
		i++
	}
	if i == len(segment) {
		return segment
	}
	b := append(make([]byte, 0, 3*len(segment)), segment[:i]...)
	for ; i < len(segment); i++ {
		if c := segment[i]; plain(c) {
			b = append(b, c)
		} else {
			const digits = "0123456789ABCDEF"
			b = append(b, '%', digits[c>>4], digits[c&0xf])
		}
	}
	return string(b)
}

// ValidURI reports whether the URI of a resource is a path that checks can name, or a pattern of such paths: a segment
// can be {name} or *, and the last one **.
func ValidURI(uri string) bool {
	if strings.ContainsAny(uri, "?#") {
		return false
	}
	_, ok := patternOfURI(uri)
	return ok
}

// patternOfURI returns the segments of a pattern, those that are fixed in their normal form.
func patternOfURI(uri string) (segments []string, ok bool) {
	raw := strings.Split(uri, "/")
	if len(raw) > maxSegments || len(raw) < 2 || raw[0] != "" {
		return nil, false
	}
	for i, segment := range raw {
		switch {
		case segment == "**" && i == len(raw)-1 || segment == "*" || placeholder(segment):
		case i == 0 || segment == "" && i == len(raw)-1:
		default:
			one, fixed := pathOf("/" + segment)
			if !fixed || len(one) != 2 || one[1] == "" || strings.ContainsAny(segment+one[1], "{}*") {
				return nil, false
			}
			raw[i] = one[1]
		}
	}
	return slices.Clip(raw), true
}

// placeholder reports whether a segment of a pattern is {name}.
func placeholder(segment string) bool {
	if len(segment) < 3 || segment[0] != '{' || segment[len(segment)-1] != '}' {
		return false
	}
	name := func(c rune) bool {
		return c < utf8.RuneSelf && (c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9') ||
			strings.ContainsRune("._-:", c)
	}
	return !strings.ContainsFunc(segment[1:len(segment)-1], func(c rune) bool { return !name(c) })
}
