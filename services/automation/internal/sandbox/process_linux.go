package sandbox

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// executable is the path of this program, which works even if its file has been replaced by another version.
func executable() string { return "/proc/self/exe" }

// apart makes a worker a process group of its own, which ends with the thread that has started it. In Go, threads
// usually stay until the process ends. A worker that ends earlier is replaced.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// killGroup ends a worker's process and all that it may have started.
func killGroup(p *os.Process) {
	if p.Kill() == nil { // otherwise it has ended, and its number may be another's
		_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	}
}

// processorTime is the processor time that the worker has used; 0 if it has ended. The number of the clock is that of
// clock_getcpuclockid(3).
func (w *process) processorTime() time.Duration {
	var used unix.Timespec
	if unix.ClockGettime(int32(^w.cmd.Process.Pid<<3|2), &used) != nil {
		return 0 // it has ended
	}
	return time.Duration(used.Nano())
}
