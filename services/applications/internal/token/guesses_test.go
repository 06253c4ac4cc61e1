package token_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/idplatform/idplatform/services/applications/internal/token"
)

// A secret that somebody chose cannot be tried without limit, and nobody locks its owner out by trying.
func TestGuessesOfAChosenSecretAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, token.Limits{TokensPerSecond: 1000, FailuresPerMinute: 2},
		machine(chosenClient, "acme", "s3cret"))
	try := func(secret, address string) int {
		return w.form(tokenPath, grant, "Authorization", basicAuth(chosenClient, secret), "X-Forwarded-For",
			address).Status
	}
	expect := func(status int, secret, address string) {
		t.Helper()
		if got := try(secret, address); got != status {
			t.Fatalf("%s from %s: %d, not %d", secret, address, got, status)
		}
	}
	expect(http.StatusOK, "s3cret", "198.51.100.1")
	expect(http.StatusUnauthorized, "guess", "198.51.100.2")
	expect(http.StatusUnauthorized, "guess", "198.51.100.2")
	expect(http.StatusTooManyRequests, "s3cret", "198.51.100.2") // a right guess looks like a wrong one
	for n := range 100 {                                         // from many addresses
		try("guess", fmt.Sprintf("203.0.113.%d", n))
	}
	expect(http.StatusTooManyRequests, "s3cret", "203.0.113.200")
	expect(http.StatusOK, "s3cret", "198.51.100.1") // it has been right before
}
