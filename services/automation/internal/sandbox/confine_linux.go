package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nice is the priority of workers: 0 is usual, 19 the lowest.
const nice = 10

// confineSystem has the kernel limit memory and processor time, and allow no new descriptors, so that nothing in the
// process can open files or sockets. It also lowers the priority of the process, and makes it the first that the kernel
// ends when the machine runs out of memory. Landlock and seccomp refuse files, connections, other processes and all
// else that a worker does not need, even to root, who could raise the limits again.
func confineSystem() (lacks []string, err error) {
	if err := takeRights(&lacks); err != nil {
		return nil, err
	}
	note(&lacks, restrictCalls())
	return lacks, nil
}

func note(lacks *[]string, what string) {
	if what != "" {
		*lacks = append(*lacks, what)
	}
}

func takeRights(lacks *[]string) error {
	data, err := writableMemory()
	if err != nil {
		return err
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600) // some containers do not allow it
	if err := yieldToOthers(); err != nil {
		return err
	}
	if err := closeInherited(); err != nil {
		return err
	}
	time.AfterFunc(time.Hour, func() {}).Stop() // makes the runtime open the descriptors that timers need
	note(lacks, restrictFiles())
	for resource, limit := range map[int]uint64{
		unix.RLIMIT_DATA:   data + maxProcess,
		unix.RLIMIT_CPU:    uint64(maxProcessorTime / time.Second),
		unix.RLIMIT_NOFILE: 0,
		unix.RLIMIT_FSIZE:  0,
		unix.RLIMIT_CORE:   0,
	} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limit %d: %w", resource, err)
		}
	}
	return nil
}

// yieldToOthers lowers the priority of all threads, which later threads inherit. On Linux each thread has its own.
func yieldToOthers() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, nice) // fails if the thread has ended
	}
	return nil
}

// closeInherited closes descriptors that this process has inherited: all but the pipes and those of the runtime itself
// (epoll).
func closeInherited() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		target, gone := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil || gone != nil || fd <= 2 || strings.HasPrefix(target, "anon_inode:") {
			continue
		}
		_ = syscall.Close(fd)
	}
	return nil
}

// writableMemory is the memory that counts against RLIMIT_DATA, in bytes (proc(5), statm: data).
func writableMemory() (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(text)
	if len(fields) < 6 {
		return 0, errors.New("/proc/self/statm has an unknown form")
	}
	pages, err := strconv.ParseUint(string(fields[5]), 10, 64)
	return pages * uint64(os.Getpagesize()), err
}
