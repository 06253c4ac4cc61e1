package secret

import (
	"errors"
	"fmt"
)

// The least that a secret needs which people choose. 32 random hexadecimal digits have 14 different ones on average,
// and very seldom fewer than 10.
const (
	MinLength    = 32
	minDifferent = 10
	maxRepeated  = 8 // characters of the beginning that are also the end
)

// CheckChosen returns why a secret that somebody chose could be guessed: it is short, has few different characters,
// repeats itself or counts up or down. It cannot tell a random text from a quotation, so whoever is told to choose one
// must also be told how to make one: openssl rand -base64 32.
func CheckChosen(s String) error {
	text := s.Reveal()
	different := map[byte]bool{}
	steps := 0 // to the same character, or a neighbour
	for i := range len(text) {
		different[text[i]] = true
		if i > 0 && text[i]-text[i-1]+1 <= 2 {
			steps++
		}
	}
	switch {
	case len(text) < MinLength:
		return fmt.Errorf("must have at least %d characters", MinLength)
	case len(different) < minDifferent:
		return fmt.Errorf("must have at least %d different characters", minDifferent)
	case period(text) <= len(text)-maxRepeated:
		return errors.New("must not repeat itself")
	case steps > len(text)/2:
		return errors.New("must not count up or down")
	}
	return nil
}

// period is the smallest n such that every character is the one n places before it.
func period(text string) int {
	for n := 1; n < len(text); n++ {
		if text[n:] == text[:len(text)-n] {
			return n
		}
	}
	return len(text)
}
