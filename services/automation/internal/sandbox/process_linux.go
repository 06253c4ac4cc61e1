package sandbox

import (
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// executable is this program, even if its file was replaced by another version meanwhile.
func executable() string { return "/proc/self/exe" }

// withParent makes the process end with the thread that started it, which in Go usually is when this process ends. If
// it is earlier, the worker is replaced.
func withParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// processorTime is the time that the worker has used, whatever state it is in. The number of the clock is that of
// clock_getcpuclockid(3).
func (w *process) processorTime() time.Duration {
	var used unix.Timespec
	if unix.ClockGettime(int32(^w.cmd.Process.Pid<<3|2), &used) != nil {
		return 0 // it has ended
	}
	return time.Duration(used.Nano())
}
