// Package realname checks a user's real name: the form of Chinese resident identity numbers (GB 11643-1999), and the
// answer of an external verifier.
package realname

import (
	"errors"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
)

var (
	errForm  = errors.New("must be 17 digits and a check digit (0…9 or X)")
	errPlace = errors.New("does not start with the code of a province")
	errDate  = errors.New("does not hold a date of birth")
	errCheck = errors.New("has a wrong check digit")
)

// provinces are the first two digits of the address code (GB/T 2260), with 83 for residents from Taiwan.
const provinces = "11 12 13 14 15 21 22 23 31 32 33 34 35 36 37 41 42 43 44 45 46 50 51 52 53 54 61 62 63 64 65 71 " +
	"81 82 83"

// Normalize returns the form of a number that is checked, hashed and compared: narrow characters, capital letters,
// without surrounding white space.
func Normalize(number string) string {
	return strings.ToUpper(strings.TrimSpace(norm.NFKC.String(number)))
}

// CheckResidentID returns why a normalized number is not a resident identity number on the day of now in China; nil if
// it is one. It cannot know whether the number was ever assigned.
func CheckResidentID(number string, now time.Time) error {
	if len(number) != 18 {
		return errForm
	}
	for i := range 18 {
		if c := number[i]; (c < '0' || c > '9') && (i != 17 || c != 'X') {
			return errForm
		}
	}
	if !strings.Contains(provinces, number[:2]) {
		return errPlace
	}
	born, err := time.ParseInLocation("20060102", number[6:14], china)
	if err != nil || born.Year() < 1900 || born.After(now) {
		return errDate
	}
	if number[17] != checkDigit(number[:17]) {
		return errCheck
	}
	return nil
}

var china = time.FixedZone("CST", 8*60*60)

// checkDigit computes the check digit of ISO 7064 MOD 11-2: the digits multiplied by their weights (powers of two),
// plus the check digit, are 1 modulo 11.
func checkDigit(digits string) byte {
	sum := 0
	for i := range len(digits) {
		sum = (sum + int(digits[i]-'0')) * 2 % 11
	}
	return "10X98765432"[sum]
}

// Mask hides all characters but the first and the last, or all of a number that is too short for that.
func Mask(number string) string {
	characters := []rune(number)
	n := len(characters)
	if n < 4 {
		return strings.Repeat("*", n)
	}
	return string(characters[0]) + strings.Repeat("*", n-2) + string(characters[n-1])
}
