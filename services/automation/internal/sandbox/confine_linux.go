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

// confineSystem limits the process by the kernel's means: memory, processor time, and no new descriptors, so that it
// can open neither files nor sockets whatever runs in it. It yields the processor to the process that started it, and
// is the first to end when the machine runs out of memory.
func confineSystem() error {
	data, err := writableMemory()
	if err != nil {
		return err
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600) // not in every container
	if err := yieldToOthers(); err != nil {
		return err
	}
	if err := closeInherited(); err != nil {
		return err
	}
	time.AfterFunc(time.Hour, func() {}).Stop() // the runtime opens the descriptors of its timers
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

// yieldToOthers lowers the priority of all threads, from which later ones inherit it. In Linux it belongs to a thread.
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
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, nice) // it may have ended
	}
	return nil
}

// closeInherited closes what a program that started this one's parent has left open: everything but the pipes and what
// the runtime itself uses (epoll).
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

// writableMemory is the size of what counts against RLIMIT_DATA, in bytes (proc(5), statm: data).
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
