// Package rounds says which tests are played where: how long those look that find more the longer they look, with
// random data or with processes that are killed at random moments, and which the race detector leaves out. It imports
// nothing of the platform, so every package's tests can use it.
package rounds

import (
	"os"
	"testing"
)

// Of is how many rounds such a test plays: few in make test, many in make verify, which sets IDP_TEST_ROUNDS=many.
func Of(few, many int) int {
	if os.Getenv("IDP_TEST_ROUNDS") == "many" {
		return many
	}
	return few
}

// Alone is for a test in which one goroutine works for seconds: make race leaves it out by -short, because the detector
// finds nothing there and takes ten times as long. make test and make verify play it.
func Alone(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("one goroutine works long")
	}
}
