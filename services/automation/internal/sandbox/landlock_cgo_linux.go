//go:build cgo

package sandbox

// restrictFiles does nothing in a program with cgo, such as tests with the race detector: Landlock restricts a thread,
// and the library that does it for the threads of C replaces pthread_create, which breaks the race detector's end.
// The platform's programs are built without cgo.
func restrictFiles() (lacks string) { return "Landlock, because the program is built with cgo" }
