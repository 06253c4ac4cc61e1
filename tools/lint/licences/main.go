// Command licences fails if a module that the platform's programs are made of has a licence that is not permitted here,
// or none that is known. Its arguments are packages, as of go list; it runs where they are found.
//
//	licences ./... ../pkg/...
package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// permitted are licences that ask for no more than to be named, and MPL-2.0, whose files are used unchanged.
var permitted = []string{
	"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "MPL-2.0", "Unlicense",
	"Zlib",
}

// either are modules that give the choice between a permitted licence and another one.
var either = map[string]string{"kernel.org/pub/linux/libs/security/libcap/psx": "GPL-2.0"} // or BSD-3-Clause

func main() {
	found, err := modules(os.Args[1:])
	if err == nil {
		err = check(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// modules are the folders of the modules that packages are made of, by path and version; those of others alone.
func modules(packages []string) (map[string]string, error) {
	const format = `{{with .Module}}{{if .Version}}{{.Path}}@{{.Version}}{{"\t"}}{{.Dir}}{{end}}{{end}}`
	list := exec.Command("go", append([]string{"list", "-deps", "-f", format}, packages...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if module, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			found[module] = dir
		}
	}
	if len(found) == 0 {
		return nil, errors.New("the packages have no modules: is this the right folder?")
	}
	return found, nil
}

func check(found map[string]string) error {
	var faults []error
	count := map[string]int{}
	for _, module := range slices.Sorted(maps.Keys(found)) {
		names, err := licencesIn(found[module])
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", module, err))
			continue
		}
		path, _, _ := strings.Cut(module, "@")
		for _, name := range names {
			if count[name]++; name != either[path] && !slices.Contains(permitted, name) {
				faults = append(faults, fmt.Errorf("%s: %s is not permitted", module, name))
			}
		}
	}
	fmt.Printf("licences of %d modules:", len(found))
	for _, name := range slices.Sorted(maps.Keys(count)) {
		fmt.Printf(" %s %d", name, count[name])
	}
	fmt.Println()
	return errors.Join(faults...)
}

// least is how much of a file must be the text of licences, in percent.
const least = 60

// licencesIn are the licences of the files in a module's folder that are named like one.
func licencesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		name := strings.ToUpper(entry.Name())
		if entry.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") &&
			!strings.HasPrefix(name, "UNLICENSE") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		// Links to the licence are licences to licensecheck, too; a title with a year is nothing that it knows.
		coverage := licensecheck.Scan(bytes.TrimSpace(text))
		if coverage.Percent < least {
			continue
		}
		for _, match := range coverage.Match {
			if !match.IsURL && !slices.Contains(names, match.ID) {
				names = append(names, match.ID)
			}
		}
	}
	if len(names) == 0 {
		return nil, errors.New("no known licence")
	}
	return names, nil
}
