package service

import (
	"bufio"
	"bytes"
	"debug/elf"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// ForgetStart gives back the memory that only the start needed: unused heap, and the pages of the program's own file.
// Most code runs once, to register operations and schemas; the kernel maps a page again when it is used. Without this,
// a program keeps nearly all of its file in memory for as long as there is enough of it.
func ForgetStart() {
	debug.FreeOSMemory()
	program, err := os.Executable()
	if err != nil || !fixedAddress(program) {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		// start-end rights offset device inode path
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[5] != program || strings.Contains(fields[1], "w") {
			continue // a page that was written is no longer that of the file
		}
		start, end, _ := strings.Cut(fields[0], "-")
		from, err := strconv.ParseUint(start, 16, 64)
		to, err2 := strconv.ParseUint(end, 16, 64)
		if err == nil && err2 == nil {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(from), uintptr(to-from), syscall.MADV_DONTNEED)
		}
	}
}

// fixedAddress reports whether a program was linked for a fixed address. In others the linker's table of addresses is
// written at the start and then made read-only; it must not be dropped.
func fixedAddress(program string) bool {
	file, err := elf.Open(program)
	if err != nil {
		return false
	}
	defer file.Close()
	return file.Type == elf.ET_EXEC
}
