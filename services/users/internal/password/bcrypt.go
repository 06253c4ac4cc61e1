package password

import (
	"regexp"

	"golang.org/x/crypto/bcrypt"
)

const (
	maxBcryptCost = 14
	bcryptReads   = 72 // bytes of a password
)

var bcryptForm = regexp.MustCompile(`^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$`)

// bcryptHash compares only the first 72 bytes of a password, as the system that made it did.
type bcryptHash string

func parseBcrypt(s string) (hash, error) {
	if !bcryptForm.MatchString(s) {
		return nil, errBcrypt
	}
	cost, err := bcrypt.Cost([]byte(s))
	if err != nil {
		return nil, errBcrypt
	}
	if cost > maxBcryptCost {
		return nil, errExpensive
	}
	return bcryptHash(s), nil
}

func (h bcryptHash) memory() int64 { return 0 }

// saw is false also for 72 bytes: the password that was hashed may have had more.
func (h bcryptHash) saw(password string) bool { return len(password) < bcryptReads }

func (h bcryptHash) match(password string) bool {
	return bcrypt.CompareHashAndPassword([]byte(h), []byte(password)) == nil
}
