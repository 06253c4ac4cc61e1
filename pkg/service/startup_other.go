//go:build !linux

package service

import "runtime/debug"

// ForgetStart gives back the memory that only the start needed.
func ForgetStart() { debug.FreeOSMemory() }
