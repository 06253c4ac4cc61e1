package plan

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
)

// Load reads files, all files *.yaml and *.yml of folders and those below them, and for "-" standard input. Links are
// followed, and what is reached twice is read once.
func Load(paths []string, input io.Reader) ([]*Desired, error) {
	f := &files{seen: map[string]bool{}}
	p := &parser{}
	for _, path := range paths {
		if path == "-" {
			if f.seen[path] {
				return nil, failure.Usagef("-f -: there is one standard input")
			}
			f.seen[path] = true
			text, err := io.ReadAll(input)
			if err != nil {
				return nil, failure.Usagef("-f -: %w", err)
			}
			p.file = "standard input"
			p.parse(text)
			continue
		}
		before := f.count
		f.found = nil
		if err := f.add(path, true); err != nil {
			return nil, failure.Usagef("-f: %w", err)
		}
		if f.count == before {
			return nil, failure.Usagef("-f %s: there are no files *.yaml or *.yml", path)
		}
		for _, file := range f.found {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, failure.Usagef("-f: %w", err)
			}
			p.file = file
			p.parse(text)
		}
	}
	return p.result()
}

// files finds the files of folders.
type files struct {
	found []string
	count int             // of what was met, also again
	seen  map[string]bool // real paths, and - for standard input
}

// add adds a file, or the YAML files of a folder. A file that the caller has named may have any extension.
func (f *files) add(path string, named bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if extension := strings.ToLower(filepath.Ext(path)); !info.IsDir() {
		if !named && extension != ".yaml" && extension != ".yml" {
			return nil
		}
		f.count++
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if real, err = filepath.Abs(real); err != nil {
		return err
	}
	if f.seen[real] { // so a link to a folder above it ends
		if named {
			f.count++
		}
		return nil
	}
	f.seen[real] = true
	if !info.IsDir() {
		f.found = append(f.found, path)
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") })
	for _, entry := range entries {
		if err := f.add(filepath.Join(path, entry.Name()), false); err != nil {
			return err
		}
	}
	return nil
}
