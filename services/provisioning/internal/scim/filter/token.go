package filter

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind int

const (
	end kind = iota
	word
	quoted
	number
	punctuation // ( ) [ ]
)

type token struct {
	kind kind
	text string // of a quoted text its value
	at   int    // the offset, for errors
}

// lexer cuts a filter into tokens.
type lexer struct {
	text string
	at   int
}

func (l *lexer) next() (token, error) {
	for l.at < len(l.text) && isSpace(l.text[l.at]) {
		l.at++
	}
	start := l.at
	if start == len(l.text) {
		return token{at: start}, nil
	}
	switch c := l.text[start]; {
	case strings.IndexByte("()[]", c) >= 0:
		l.at++
		return token{punctuation, l.text[start:l.at], start}, nil
	case c == '"':
		return l.quoted()
	case c == '-' || isDigit(c):
		l.run(func(c byte) bool { return isDigit(c) || strings.IndexByte("+-.eE", c) >= 0 })
		if text := l.text[start:l.at]; json.Valid([]byte(text)) {
			return token{number, text, start}, nil
		}
		return token{}, syntax(start, "a number of JSON")
	case isWord(c):
		l.run(isWord)
		return token{word, l.text[start:l.at], start}, nil
	}
	return token{}, syntax(start, "an attribute, an operator, a value or a bracket")
}

func (l *lexer) run(of func(byte) bool) {
	for l.at < len(l.text) && of(l.text[l.at]) {
		l.at++
	}
}

// quoted reads a string of JSON.
func (l *lexer) quoted() (token, error) {
	start := l.at
	for l.at++; l.at < len(l.text) && l.text[l.at] != '"'; l.at++ {
		if l.text[l.at] == '\\' {
			l.at++
		}
	}
	if l.at >= len(l.text) {
		return token{}, syntax(start, "a text that ends")
	}
	l.at++
	var s string
	if json.Unmarshal([]byte(l.text[start:l.at]), &s) != nil {
		return token{}, syntax(start, "a text of JSON")
	}
	return token{quoted, s, start}, nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isWord reports whether c is of an attribute path, with a URN before it, or of an operator.
func isWord(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || isDigit(c) || strings.IndexByte("_-.:$", c) >= 0
}

func syntax(at int, want string) error {
	return fault("needs %s at position %d", want, at+1)
}

// tooLong reports whether a filter has more than MaxLength characters.
func tooLong(text string) bool {
	return len(text) > MaxLength && utf8.RuneCountInString(text) > MaxLength
}
