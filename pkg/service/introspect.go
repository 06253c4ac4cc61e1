package service

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Addresses of the applications service.
const (
	keySetPath        = "/v1/oauth2/jwks"
	introspectionPath = "/v1/oauth2/introspect"
)

// introspector asks the applications service, whose key set is at an address, whether a token is valid (RFC 7662). The
// token is its own credential. It is nil if the address is not one from which the other follows.
func introspector(keySet string, client *http.Client) func(context.Context, string) (bool, error) {
	base, ok := strings.CutSuffix(keySet, keySetPath)
	if !ok || !isURL(keySet) {
		return nil
	}
	return func(ctx context.Context, token string) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		form := strings.NewReader(url.Values{"token": {token}}.Encode())
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+introspectionPath, form)
		if err != nil {
			return false, err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(r)
		if err != nil {
			return false, err
		}
		defer answer.Body.Close() //nolint:errcheck // only read
		var found struct {
			Active bool `json:"active"`
		}
		switch answer.StatusCode {
		case http.StatusUnauthorized:
			return false, nil
		case http.StatusOK:
			err := json.NewDecoder(io.LimitReader(answer.Body, 64<<10)).Decode(&found)
			return found.Active, err
		}
		return false, fmt.Errorf("the applications service answers %d", answer.StatusCode)
	}
}
