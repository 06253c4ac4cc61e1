// Package leaks finds goroutines that tests leave behind. It imports nothing of the platform, so every package's tests
// can use it.
package leaks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// Main runs a package's tests and ends the process; it fails if goroutines outlive the tests.
func Main(m *testing.M) { os.Exit(Check(m.Run())) }

// Check returns the status with which to end after tests that ended with code: another than 0 if goroutines outlive
// them. It waits for those that are about to end, which takes servers long on a busy machine.
func Check(code int) int {
	if code != 0 {
		return code
	}
	deadline := time.Now().Add(wait.Long)
	for {
		err := goleak.Find()
		if err == nil {
			return 0
		}
		if time.Now().After(deadline) {
			fmt.Fprintln(os.Stderr, "goroutines outlive the tests:", err)
			return 1
		}
	}
}
