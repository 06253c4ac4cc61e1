package issuer

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// maxClaims bounds how many claims are named.
const maxClaims = 60

var (
	claimName = regexp.MustCompile(`^[\x21-\x7e]{1,100}$`)
	errorCode = regexp.MustCompile(`^[a-z][a-z0-9_]{0,60}$`)
)

// Claims names the claims of a token that is a JWT, never their values; nothing if it is none. Nothing is verified:
// the names help whoever sets the issuer up.
func Claims(token string) (names []string) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims map[string]json.RawMessage
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		if claimName.MatchString(name) && len(names) < maxClaims {
			names = append(names, name)
		}
	}
	return names
}

// Code returns an error code of the issuer (RFC 6749 §4.1.2.1) if it has the form of one, since others can write it.
func Code(text string) string {
	if errorCode.MatchString(text) {
		return text
	}
	return "unknown"
}
