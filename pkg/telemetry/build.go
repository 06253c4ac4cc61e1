package telemetry

import "runtime/debug"

// Build describes how a program was built.
type Build struct {
	Module   string `json:"module"`   // the main module's path
	Version  string `json:"version"`  // the main module's version; (devel) for an untagged build
	Go       string `json:"go"`       // the toolchain
	Revision string `json:"revision"` // the commit; empty if the build was not made in a repository
	Time     string `json:"time"`     // of the commit, RFC 3339
	Modified bool   `json:"modified"` // the working tree had changes after the commit
}

// ReadBuild returns the Build of the running program.
func ReadBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Build{}
	}
	b := Build{Module: info.Main.Path, Version: info.Main.Version, Go: info.GoVersion}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
