//go:build linux || darwin

package main

import "syscall"

// freeSpace is how many bytes the disk of a folder has left for this user.
func freeSpace(dir string) (n int64, known bool) {
	var at syscall.Statfs_t
	if err := syscall.Statfs(dir, &at); err != nil {
		return 0, false
	}
	return int64(at.Bavail) * int64(at.Bsize), true //nolint:gosec,unconvert // types differ between systems
}
