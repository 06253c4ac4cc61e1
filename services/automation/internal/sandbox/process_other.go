//go:build !linux

package sandbox

import (
	"os"
	"os/exec"
	"time"
)

func executable() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

func apart(*exec.Cmd) {}

func killGroup(p *os.Process) { _ = p.Kill() } // fails if it has ended

var started = time.Now()

// processorTime is the time that has passed, because the processor time is not known here. So waiting counts.
func (w *process) processorTime() time.Duration { return time.Since(started) }
