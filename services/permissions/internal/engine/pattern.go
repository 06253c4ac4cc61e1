package engine

import (
	"regexp"
	"strings"
)

// MaxStars is how many stars a pattern can have. It bounds the cost of matching.
const MaxStars = 8

var patternForm = regexp.MustCompile(`^[A-Za-z0-9._\-:/*?]*$`)

// ValidPattern says what is wrong with a pattern of codes; "" if nothing is.
func ValidPattern(pattern string) string {
	if strings.Contains(pattern, "**") || strings.Count(pattern, "*") > MaxStars {
		return "must have at most 8 stars, no two of them side by side"
	}
	if !patternForm.MatchString(pattern) { // no code has other characters: the pattern would match nothing
		return "must have letters, digits or . _ - : /, and the wildcards * and ?"
	}
	return ""
}

// Match reports whether a text matches a pattern, in which * stands for any number of characters and ? for one.
func Match(pattern, text string) bool {
	p, t, star, from := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0: // let the last star stand for one character more
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
