// Package rounds says how long tests look that find more the longer they look: with random data, or with processes
// that are killed at random moments. It imports nothing of the platform, so every package's tests can use it.
package rounds

import "os"

// Of is how many rounds such a test plays: few in make test, many in make verify, which sets IDP_TEST_ROUNDS=many.
func Of(few, many int) int {
	if os.Getenv("IDP_TEST_ROUNDS") == "many" {
		return many
	}
	return few
}
