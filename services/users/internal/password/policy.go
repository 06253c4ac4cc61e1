package password

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
)

const (
	minLength = 8
	maxLength = 256

	// minName is the least length of a username that a password must not contain: most phrases contain shorter ones.
	minName = 3
)

// Check returns the reasons why password is too weak for the user with that name, each as the end of a sentence; none
// if it is not. Lengths are in characters of its NFKC form. It may contain a name of one or two characters. Case is
// ignored when it is compared with common passwords and the name.
func Check(password, username string) (reasons []string) {
	if !utf8.ValidString(password) {
		return []string{"must be UTF-8"}
	}
	if n := utf8.RuneCountInString(normalize(password)); n < minLength || n > maxLength {
		reasons = append(reasons, fmt.Sprintf("must have %d…%d characters", minLength, maxLength))
		if n > maxLength {
			return reasons
		}
	}
	folded := fold(password)
	name := fold(username)
	if utf8.RuneCountInString(name) >= minName && strings.Contains(folded, name) {
		reasons = append(reasons, "must not contain the username")
	}
	if isCommon(folded) {
		reasons = append(reasons, "must not be one of the most common passwords")
	}
	return reasons
}

func fold(s string) string { return cases.Fold().String(normalize(s)) }

const (
	generatedLength = 20
	letters         = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789" // without those that look alike
	signs           = "$%&*=?:/"                                                 // usernames cannot contain them
)

// Generate returns a password of about 98 random bits for the user with that name. Each third character is a sign,
// which usernames cannot contain, so it contains none that Check looks for.
func Generate(username string) string {
	b := make([]byte, generatedLength)
	for {
		for i := range b {
			if i%3 == 2 {
				b[i] = pick(signs)
			} else {
				b[i] = pick(letters)
			}
		}
		if made := string(b); len(Check(made, username)) == 0 {
			return made
		}
	}
}

func pick(alphabet string) byte {
	n, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
	if err != nil { // crypto/rand.Reader never fails
		panic(err)
	}
	return alphabet[n.Int64()]
}
