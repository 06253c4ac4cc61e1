package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// These make this program a process that does what code could do that has taken its worker over.
const (
	attackVariable   = "IDP_TEST_ATTACK"        // from a process that is confined as a worker is
	landlockVariable = "IDP_TEST_LANDLOCK_ONLY" // from one that only Landlock restricts
)

// attacked is what an attack reports.
type attacked struct {
	Lacks []string
	Got   map[string]syscall.Errno // by attack; 0 if it succeeded
}

func init() {
	var result attacked
	var err error
	switch {
	case os.Getenv(attackVariable) != "":
		targets := newTargets(os.Args[1:])
		if result.Lacks, err = confine(); err == nil {
			result.Got = targets.attack()
		}
	case os.Getenv(landlockVariable) != "":
		targets := newTargets(os.Args[1:])
		note(&result.Lacks, restrictFiles())
		result.Got = map[string]syscall.Errno{"file": targets.open(targets.file), "connect": targets.connect()}
	default:
		return
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// targets are what an attack is directed at: a file and a port of the test's process, and that process.
type targets struct {
	file   string
	port   int
	parent int
	memory *byte
}

func newTargets(args []string) targets {
	port, _ := strconv.Atoi(args[1])
	return targets{file: args[0], port: port, parent: os.Getppid(), memory: new(byte)}
}

func errno(err error) syscall.Errno {
	var number syscall.Errno
	errors.As(err, &number)
	return number
}

func (targets) open(path string) syscall.Errno {
	_, err := syscall.Open(path, syscall.O_RDONLY, 0)
	return errno(err)
}

func (t targets) connect() syscall.Errno {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: t.port, Addr: [4]byte{127, 0, 0, 1}})
	}
	return errno(err)
}

func call6(number uintptr, args ...uintptr) syscall.Errno {
	var a [6]uintptr
	copy(a[:], args)
	_, _, failed := syscall.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	return failed
}

func fork(flags uintptr) syscall.Errno {
	child, _, failed := syscall.RawSyscall6(syscall.SYS_CLONE, flags|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if child == 0 && failed == 0 {
		for {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	return failed
}

func (t targets) attack() map[string]syscall.Errno {
	proc := fmt.Sprintf("/proc/%d/", t.parent)
	local := unix.Iovec{Base: t.memory, Len: 1}
	remote := unix.RemoteIovec{Base: uintptr(unsafe.Pointer(t.memory)), Len: 1}
	_, vm := unix.ProcessVMReadv(t.parent, []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
	_, unixSocket := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	_, memory := unix.MemfdCreate("x", 0)
	_, started := os.StartProcess("/proc/self/exe", []string{"x"}, &os.ProcAttr{})
	raised := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64})
	return map[string]syscall.Errno{
		"read a file":             t.open(t.file),
		"read /etc/passwd":        t.open("/etc/passwd"),
		"read its memory file":    t.open(proc + "mem"),
		"read its environment":    t.open(proc + "environ"),
		"write a file":            errno(os.WriteFile(t.file, nil, 0o600)),
		"execute":                 errno(syscall.Exec("/proc/self/exe", []string{"x"}, nil)),
		"execute a descriptor":    call6(unix.SYS_EXECVEAT),
		"start a process":         errno(started),
		"fork":                    fork(0),
		"fork with clone3":        call6(unix.SYS_CLONE3),
		"fork into a namespace":   fork(unix.CLONE_NEWUSER),
		"connect":                 t.connect(),
		"open a local socket":     errno(unixSocket),
		"trace the parent":        errno(syscall.PtraceAttach(t.parent)),
		"read the parent":         errno(vm),
		"signal the parent":       errno(syscall.Kill(t.parent, syscall.Signal(0))),
		"signal a parent thread":  errno(unix.Tgkill(t.parent, t.parent, syscall.Signal(0))),
		"leave namespaces":        errno(unix.Unshare(unix.CLONE_NEWUSER)),
		"mount":                   errno(unix.Mount("none", "/", "tmpfs", 0, "")),
		"raise a limit":           errno(raised),
		"make a file in memory":   errno(memory),
		"load a program (bpf)":    call6(unix.SYS_BPF),
		"use keys":                call6(unix.SYS_KEYCTL),
		"use io_uring":            call6(unix.SYS_IO_URING_SETUP, 1),
		"watch the processor":     call6(unix.SYS_PERF_EVENT_OPEN),
		"handle page faults":      call6(unix.SYS_USERFAULTFD),
		"become debuggable again": errno(unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)),
	}
}

// attackFrom starts this program as the process that a variable makes it, as a user.
func attackFrom(t *testing.T, variable string, uid uint32) attacked {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("x"), 0o600))
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	var out, failure bytes.Buffer
	cmd := command(variable)
	cmd.Args = append(cmd.Args, secret, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	cmd.Stdout, cmd.Stderr = &out, &failure
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	require.NoError(t, cmd.Run(), failure.String())
	var result attacked
	require.NoError(t, json.Unmarshal(out.Bytes(), &result))
	return result
}

// attackers are the users as which processes attack: root, too, if the test may become others.
func attackers() map[string]uint32 {
	if os.Getuid() != 0 {
		return map[string]uint32{"this user": 0}
	}
	return map[string]uint32{"root": 0, "nobody": 65534}
}

// Code that has taken its worker over reaches no file, no network and no other process.
func TestTakenOverWorkers(t *testing.T) {
	t.Parallel()
	for user, uid := range attackers() {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			result := attackFrom(t, attackVariable, uid)
			if slices.ContainsFunc(result.Lacks, func(what string) bool { return strings.HasPrefix(what, "seccomp") }) {
				t.Skip("this kernel has no seccomp")
			}
			for attack, got := range result.Got {
				want := syscall.EPERM
				if attack == "fork with clone3" {
					want = syscall.ENOSYS
				}
				require.Equal(t, want, got, attack)
			}
		})
	}
}

// Landlock refuses files and connections by itself, where seccomp is not there.
func TestLandlockAlone(t *testing.T) {
	t.Parallel()
	for user, uid := range attackers() {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			result := attackFrom(t, landlockVariable, uid)
			if len(result.Lacks) > 0 {
				t.Skip("this kernel lacks ", result.Lacks)
			}
			require.Equal(t, map[string]syscall.Errno{"file": syscall.EACCES, "connect": syscall.EACCES}, result.Got)
		})
	}
}

// All threads of a worker are restricted, and it is a process group of its own, of which nothing is left at its end.
func TestWorkersAreApart(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	run(t, p, js(`function main() {}`))
	w := theWorker(t, p)
	pid := w.cmd.Process.Pid
	group, err := syscall.Getpgid(pid)
	require.NoError(t, err)
	require.Equal(t, pid, group)
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	require.NoError(t, err)
	require.NotEmpty(t, threads)
	for _, thread := range threads {
		status, err := os.ReadFile(thread)
		require.NoError(t, err)
		require.Regexp(t, `NoNewPrivs:\s+1\n`, string(status))
		if !slices.Contains(w.lacks, "seccomp") {
			require.Regexp(t, `Seccomp:\s+2\n`, string(status))
		}
	}
	w.kill()
	<-w.exited
	require.ErrorIs(t, syscall.Kill(-pid, 0), syscall.ESRCH)
}
