// Command testreport reads what "go test -json" printed, tries of the same test after each other. It prints the ten
// slowest tests and, as FLAKY, each test that failed and passed when it was run again, with its first failure's text.
// It fails if a package failed after its tests had passed, by a goroutine that outlives them: run again without any
// test, as gotestsum does, the package passes.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is a line of "go test -json", see "go doc test2json".
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

// result is what became of a test in all its tries.
type result struct {
	name    string
	seconds float64 // of the slowest try
	output  []string
	failure string // what the first try that failed printed
	failed  int
	passed  bool // by the last try
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: testreport FILE…")
		os.Exit(2)
	}
	all := report{tests: map[string]*result{}, packages: map[string]*result{}}
	for _, name := range os.Args[1:] {
		if err := all.read(name); err != nil {
			fmt.Fprintln(os.Stderr, "testreport:", err)
			os.Exit(1)
		}
	}
	if all.print(os.Stdout); len(all.left()) > 0 {
		os.Exit(1)
	}
}

// report has the results of tests by package and name, and those of packages of which no test has failed.
type report struct{ tests, packages map[string]*result }

// read adds the events of a file. A missing file has none: the step that writes it did not run.
func (all report) read(name string) error {
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // a program that a test starts may print into the stream
		}
		all.add(e)
	}
	return lines.Err()
}

func (all report) add(e event) {
	results, name := all.tests, e.Package+" "+e.Test
	if e.Test == "" {
		results, name = all.packages, e.Package
	}
	r := results[name]
	if r == nil {
		r = &result{name: name}
		results[name] = r
	}
	switch e.Action {
	case "run", "start":
		r.output = nil
	case "output":
		r.output = append(r.output, e.Output)
	case "pass", "fail":
		r.seconds = max(r.seconds, e.Elapsed)
		r.passed = e.Action == "pass"
		if r.passed {
			break
		}
		if r.failed++; r.failed == 1 {
			r.failure = shortened(r.output)
		}
	}
}

// left are the packages that failed though no test of theirs did, and passed afterwards.
func (all report) left() []*result {
	blamed := map[string]bool{}
	for name, r := range all.tests {
		if r.failed > 0 {
			of, _, _ := strings.Cut(name, " ")
			blamed[of] = true
		}
	}
	var left []*result
	for name, r := range all.packages {
		if r.failed > 0 && r.passed && !blamed[name] {
			left = append(left, r)
		}
	}
	return left
}

// shortened is the beginning of what a test printed: golden files fill hundreds of lines of thousands of characters.
func shortened(lines []string) string {
	const most, width = 30, 160
	var b strings.Builder
	for i, line := range lines {
		if i == most {
			fmt.Fprintf(&b, "… and %d more lines\n", len(lines)-most)
			break
		}
		if line = strings.TrimRight(line, "\n"); len(line) > width {
			line = strings.ToValidUTF8(line[:width], "") + "…"
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

func (all report) print(out io.Writer) {
	var tests, flaky []*result
	for _, r := range all.tests {
		if r.failed > 0 && r.passed {
			flaky = append(flaky, r)
		}
		if _, test, _ := strings.Cut(r.name, " "); !strings.Contains(test, "/") { // not a subtest
			tests = append(tests, r)
		}
	}
	slices.SortFunc(tests, func(a, b *result) int { return cmp.Compare(b.seconds, a.seconds) })
	slices.SortFunc(flaky, func(a, b *result) int { return cmp.Compare(a.name, b.name) })
	fmt.Fprintln(out, "the slowest of", len(tests), "tests:")
	for _, r := range tests[:min(10, len(tests))] {
		fmt.Fprintf(out, "%7.1f s  %s\n", r.seconds, r.name)
	}
	for _, r := range flaky {
		fmt.Fprintf(out, "\nFLAKY %s failed %d times, then passed; first:\n%s", r.name, r.failed, r.failure)
	}
	for _, r := range all.left() {
		fmt.Fprintf(out, "\nFAILED %s, after its tests had passed:\n%s", r.name, r.failure)
	}
}
