//go:build unix

package main

import "syscall"

// restrictFiles makes all files that the process creates from now on accessible to their owner only, also those that
// libraries create.
func restrictFiles() { syscall.Umask(0o077) }
