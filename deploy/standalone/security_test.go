package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// SECURITY.md names tests that exist, and groups of the conventions.
func TestSecurityNamesTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../SECURITY.md")
	require.NoError(t, err)
	found := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (?:\([^)]*\) )?(Test\w+)\(|t\.Run\("([a-z ]+)"`)
	err = filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "node_modules" {
			return fs.SkipDir
		}
		convention := strings.HasPrefix(entry.Name(), "conventions") && strings.HasSuffix(path, ".go")
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") && !convention {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			found[m[1]+m[2]] = true
		}
		return err
	})
	require.NoError(t, err)
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| API") {
			continue
		}
		columns := strings.Split(line, "|")
		names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(columns[3], -1)
		require.NotEmpty(t, names, line)
		for _, name := range names {
			require.True(t, found[name[1]] || name[1] == "hostile", "%s: there is no such test", name[1])
		}
	}
	require.Equal(t, 10, strings.Count(string(page), "\n| API"))
}
