//go:build !linux

package sandbox

// confineSystem limits nothing on systems other than Linux: see deploy/adr/0037 and 0048.
func confineSystem() (lacks []string, err error) {
	return []string{"limits of memory and processor time", "Landlock", "seccomp"}, nil
}
