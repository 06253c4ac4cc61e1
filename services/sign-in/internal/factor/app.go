package factor

import (
	"bytes"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"image/png"
	"net/url"
	"strings"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/secret"
)

// The parameters of RFC 6238 that every authenticator app knows.
const (
	appDigits = 6
	appPeriod = 30 // seconds
	// keyBytes is the length of a key, as RFC 4226 §4 recommends.
	keyBytes = 20
	// early and late are how many time steps the clock of a phone may differ.
	early, late = 1, 1
)

// NewKey makes the key of an authenticator app, in Base32.
func NewKey() string {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(key)
}

// Confirms reports whether a code shows that an app has a key, and the code's time step.
func Confirms(key, code string, now clock.Time) (step int64, ok bool) {
	return stepOf(key, onlyDigits(code), now, 0)
}

// stepOf returns the time step of a code, if it is one of now and after the last one that has served.
func stepOf(key, code string, now clock.Time, last int64) (int64, bool) {
	for step := now.Millis()/1000/appPeriod - late; step <= now.Millis()/1000/appPeriod+early; step++ {
		if step <= last {
			continue
		}
		right, err := hotp.GenerateCodeCustom(key, uint64(step),
			hotp.ValidateOpts{Digits: appDigits, Algorithm: otp.AlgorithmSHA1})
		if err == nil && secret.Equal(right, code) {
			return step, true
		}
	}
	return 0, false
}

// URL is what an authenticator app reads: it has the key, the name of who asks for codes, and that of the account.
func URL(key, issuer, account string) string {
	issuer, account = strings.ReplaceAll(issuer, ":", " "), strings.ReplaceAll(account, ":", " ")
	query := "secret=" + key + "&issuer=" + strings.ReplaceAll(url.QueryEscape(issuer), "+", "%20")
	return "otpauth://totp/" + url.PathEscape(issuer+":"+account) + "?" + query
}

// sizeOfPicture is the width and height of the picture, in pixels.
const sizeOfPicture = 264

// Picture is a URL as a QR code, in a data: URL.
func Picture(address string) (string, error) {
	key, err := otp.NewKeyFromURL(address)
	if err != nil {
		return "", err
	}
	drawn, err := key.Image(sizeOfPicture, sizeOfPicture)
	if err != nil {
		return "", err
	}
	var to bytes.Buffer
	if err := png.Encode(&to, drawn); err != nil {
		return "", err
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(to.Bytes()), nil
}
