//go:build !cgo

package sandbox

import (
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	landlocksys "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// restrictFiles makes Landlock refuse all files and TCP connections, for as long as the process lives. It returns what
// this kernel lacks for that, "" if nothing. It needs a descriptor, so it comes before their limit.
func restrictFiles() (lacks string) {
	if version, err := landlocksys.LandlockGetABIVersion(); err != nil || version < 1 {
		return "Landlock"
	}
	// Version 6 would refuse signals between threads, too, on some kernels; the runtime needs these.
	if err := landlock.V5.BestEffort().Restrict(); err != nil {
		return fmt.Sprintf("Landlock (%v)", err)
	}
	return ""
}
