//go:build unix

package main

import "syscall"

// restrictFiles makes all that the process writes from now on its owner's alone, whatever library writes it.
func restrictFiles() { syscall.Umask(0o077) }
