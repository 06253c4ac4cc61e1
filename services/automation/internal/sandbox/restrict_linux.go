package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// restrictCalls makes the kernel refuse all system calls that a worker does not need, in all threads, and keeps other
// processes of the user from reading its memory. It returns what this kernel lacks for that, "" if nothing. It is the
// last step of confine.
func restrictCalls() (lacks string) {
	runtime.LockOSThread() // TSync gives the filter and no_new_privs of this thread to all others
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Sprintf("no_new_privs (%v)", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Sprintf("PR_SET_DUMPABLE (%v)", err)
	}
	if !seccomp.Supported() {
		return "seccomp"
	}
	policy, err := callPolicy()
	if err == nil {
		err = seccomp.LoadFilter(seccomp.Filter{Flag: seccomp.FilterFlagTSync, Policy: policy})
	}
	if err != nil {
		return fmt.Sprintf("seccomp (%v)", err)
	}
	return ""
}

// allowedCalls are those that Go's runtime, and in tests the race detector, make after the start. Those that an
// architecture does not have are left out.
var allowedCalls = []string{
	"read", "write", "readv", "writev", "pread64", "close", "fcntl", "fstat", "lseek", "poll", "ppoll",
	"epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2",
	"mmap", "munmap", "mprotect", "mremap", "madvise", "mincore", "brk", "membarrier",
	"futex", "set_robust_list", "rseq", "sched_yield", "sched_getaffinity", "getcpu", "restart_syscall",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack",
	"nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "time",
	"getrandom", "getpid", "gettid", "getrusage", "exit", "exit_group",
}

// callPolicy allows the calls of allowedCalls, new threads, and signals to the worker's own threads. It refuses others
// with EPERM, and so all calls by another architecture's numbers.
func callPolicy() (seccomp.Policy, error) {
	machine, err := arch.GetInfo("")
	if err != nil {
		return seccomp.Policy{}, err
	}
	var names []string
	for _, name := range allowedCalls {
		if _, has := machine.SyscallNames[name]; has {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return seccomp.Policy{}, errors.New("no system calls are known for " + machine.Name)
	}
	thread := seccomp.Condition{Argument: 0, Operation: seccomp.BitsSet, Value: unix.CLONE_THREAD}
	own := seccomp.Condition{Argument: 0, Operation: seccomp.Equal, Value: uint64(os.Getpid())}
	return seccomp.Policy{
		DefaultAction: seccomp.ActionErrno,
		Syscalls: []seccomp.SyscallGroup{
			{Action: seccomp.ActionAllow, Names: names, NamesWithCondtions: []seccomp.NameWithConditions{
				{Name: "clone", Conditions: seccomp.ArgumentConditions{thread}},
				{Name: "tgkill", Conditions: seccomp.ArgumentConditions{own}},
			}},
			// The arguments of clone3 are in memory, which a filter cannot read. Without it, the C library uses clone.
			{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
		},
	}, nil
}
