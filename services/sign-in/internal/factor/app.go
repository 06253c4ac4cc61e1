package factor

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"fmt"
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
	maxDigits = 8
	// keyBytes is the length of a key, as RFC 4226 §4 recommends.
	keyBytes = 20
	// early and late are how many time steps the clock of a phone may differ.
	early, late = 1, 1
)

// Codes are the form of the codes of an authenticator app. Zero members have the values that every app knows: 6 digits,
// 30 seconds.
type Codes struct {
	Digits int `json:"digits,omitempty"`
	Period int `json:"period,omitempty"` // seconds
}

// OrUsual has the usual values in place of zero.
func (c Codes) OrUsual() Codes {
	return Codes{Digits: cmp.Or(c.Digits, appDigits), Period: cmp.Or(c.Period, appPeriod)}
}

// AppKey is the key of an authenticator app, in Base32.
type AppKey struct {
	Key string `json:"key"`
	Codes
}

// NewKey makes the key of an app.
func NewKey(c Codes) AppKey {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return AppKey{base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(key), c}
}

// Confirms reports whether a code shows that an app has a key, and the code's time step.
func Confirms(key AppKey, code string, now clock.Time) (step int64, ok bool) {
	return key.stepOf(onlyDigits(code), now, 0)
}

// stepOf returns the time step of a code, if it is one of now and after the last one that has served.
func (k AppKey) stepOf(code string, now clock.Time, last int64) (int64, bool) {
	c := k.OrUsual()
	current := now.Millis() / 1000 / int64(c.Period)
	for step := current - late; step <= current+early; step++ {
		if step <= last {
			continue
		}
		right, err := hotp.GenerateCodeCustom(k.Key, uint64(step),
			hotp.ValidateOpts{Digits: otp.Digits(c.Digits), Algorithm: otp.AlgorithmSHA1})
		if err == nil && secret.Equal(right, code) {
			return step, true
		}
	}
	return 0, false
}

// URL is what an authenticator app reads: it has the key, the name of who asks for codes, and that of the account.
func URL(key AppKey, issuer, account string) string {
	issuer, account = strings.ReplaceAll(issuer, ":", " "), strings.ReplaceAll(account, ":", " ")
	query := "secret=" + key.Key + "&issuer=" + strings.ReplaceAll(url.QueryEscape(issuer), "+", "%20")
	if c := key.OrUsual(); c != (Codes{}).OrUsual() {
		query += fmt.Sprintf("&digits=%d&period=%d", c.Digits, c.Period)
	}
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
