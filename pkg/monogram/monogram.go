// Package monogram makes images for what has no logo of its own. The logos of products are trademarks, which the
// platform does not copy.
package monogram

import (
	"hash/fnv"
	"net/url"
	"strings"
	"unicode"
)

// colours are backgrounds on which white text has a contrast of at least 4.5 to 1 (WCAG 2.2 §1.4.3).
var colours = []string{"1d4ed8", "0f766e", "7e22ce", "b91c1c", "15803d", "a16207", "be185d", "475569"}

// DataURI returns an SVG image as a data URI (RFC 2397): the initials of a name, at most two, on a coloured square. The
// same name always gives the same image. It has about 250 bytes.
func DataURI(name string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // never fails
	colour := colours[hash.Sum32()%uint32(len(colours))]
	return "data:image/svg+xml," + escape.Replace("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 4 4'>"+
		"<path fill='#"+colour+"' d='M0 0h4v4H0z'/>"+
		"<text x='2' y='2.7' font-size='2' text-anchor='middle' fill='#fff'>") +
		url.PathEscape(initials(name)) + escape.Replace("</text></svg>")
}

var escape = strings.NewReplacer("<", "%3C", ">", "%3E", "#", "%23", " ", "%20")

// initials are the first letters or digits of the first two words, in capitals. A run of Chinese characters is one
// word.
func initials(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var b strings.Builder
	for _, word := range words[:min(len(words), 2)] {
		for _, r := range word {
			b.WriteRune(unicode.ToUpper(r))
			break
		}
	}
	return b.String()
}
