// Package webhook signs requests to webhooks by Standard Webhooks 1.0.0 (https://www.standardwebhooks.com), so that
// receivers can check them with the libraries of that standard.
package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	secretPrefix = "whsec_"
	minSecret    = 24 // bytes, as Standard Webhooks asks
	maxSecret    = 64
	newSecret    = 32
)

// SecretForm says what ValidSecret accepts.
const SecretForm = "whsec_ and the base64 of 24…64 bytes"

// ValidSecret reports whether a text is a secret to sign with: SecretForm.
func ValidSecret(text string) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, secretPrefix))
	return err == nil && strings.HasPrefix(text, secretPrefix) && len(key) >= minSecret && len(key) <= maxSecret
}

// NewSecret makes a random secret.
func NewSecret() string {
	key := make([]byte, newSecret)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// Sign sets Webhook-Id and Webhook-Timestamp and, if there are secrets, Webhook-Signature with a signature for each of
// them. A receiver ignores an id that it has seen. Secrets that are not valid are left out.
func Sign(h http.Header, id string, at time.Time, payload []byte, secrets ...string) {
	signatures := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		key, err := webhooks.NewWebhook(secret)
		if err != nil {
			continue
		}
		if signature, err := key.Sign(id, at, payload); err == nil {
			signatures = append(signatures, signature)
		}
	}
	h.Set(webhooks.HeaderWebhookID, id)
	h.Set(webhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	if len(signatures) > 0 {
		h.Set(webhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	}
}
