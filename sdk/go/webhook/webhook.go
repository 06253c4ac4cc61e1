// Package webhook checks that a request to a webhook comes from the platform, by Standard Webhooks 1.0.0
// (https://www.standardwebhooks.com).
package webhook

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The kinds of errors of Verify.
var (
	ErrHeader    = errors.New("the request lacks Webhook-Id, Webhook-Timestamp or Webhook-Signature")
	ErrTimestamp = errors.New("Webhook-Timestamp is no time, or too far from now")
	ErrSignature = errors.New("no signature is by one of the secrets")
	ErrSecret    = errors.New("a secret must be whsec_ and base64, and there must be one")
)

// DefaultTolerance is how far the time of a request may be from now.
const DefaultTolerance = 5 * time.Minute

// Options say what Verify takes.
type Options struct {
	// Secrets are the subscription's. While one replaces another, name both.
	Secrets []string
	// Tolerance is how far the time of the request may be from now; 0: DefaultTolerance.
	Tolerance time.Duration
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Verify checks the signature of a request. The body must be as it came, byte by byte. An event comes at least once:
// ignore a Webhook-Id that you have seen.
func Verify(header http.Header, body []byte, options Options) error {
	keys, err := keysOf(options.Secrets)
	if err != nil {
		return err
	}
	id, timestamp := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	signatures := strings.Fields(strings.Join(header.Values("Webhook-Signature"), " "))
	if id == "" || timestamp == "" || len(signatures) == 0 {
		return ErrHeader
	}
	now := time.Now
	if options.Now != nil {
		now = options.Now
	}
	seconds, err := strconv.ParseUint(timestamp, 10, 40)
	if err != nil {
		return ErrTimestamp
	}
	tolerance := cmp.Or(options.Tolerance, DefaultTolerance)
	if now().Sub(time.Unix(int64(seconds), 0)).Abs() > tolerance {
		return ErrTimestamp
	}
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		want := mac.Sum(nil)
		for _, signature := range signatures {
			got, isV1 := strings.CutPrefix(signature, "v1,")
			sum, err := base64.StdEncoding.DecodeString(got)
			if isV1 && err == nil && hmac.Equal(sum, want) {
				return nil
			}
		}
	}
	return ErrSignature
}

func keysOf(secrets []string) ([][]byte, error) {
	if len(secrets) == 0 {
		return nil, ErrSecret
	}
	keys := make([][]byte, 0, len(secrets))
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) == 0 {
			return nil, ErrSecret
		}
		keys = append(keys, key)
	}
	return keys, nil
}
