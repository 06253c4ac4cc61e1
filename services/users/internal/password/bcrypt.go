package password

import (
	"regexp"

	"golang.org/x/crypto/bcrypt"
)

const maxBcryptCost = 14

var bcryptForm = regexp.MustCompile(`^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$`)

// bcryptHash compares only the first 72 bytes of a password, as the system that made it did. Further bytes matter only
// after the hash has been replaced, at the first successful login.
type bcryptHash string

func parseBcrypt(s string) (hash, error) {
	if !bcryptForm.MatchString(s) {
		return nil, errUnknown
	}
	cost, err := bcrypt.Cost([]byte(s))
	if err != nil {
		return nil, errUnknown
	}
	if cost > maxBcryptCost {
		return nil, errExpensive
	}
	return bcryptHash(s), nil
}

func (h bcryptHash) memory() int64 { return 0 }

func (h bcryptHash) match(password string) bool {
	return bcrypt.CompareHashAndPassword([]byte(h), []byte(password)) == nil
}
