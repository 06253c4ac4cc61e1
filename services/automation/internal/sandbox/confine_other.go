//go:build !linux

package sandbox

// confineSystem limits nothing on systems other than Linux: see deploy/adr/0037.
func confineSystem() error { return nil }
