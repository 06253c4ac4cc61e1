package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// sumsFile lists the files of other packages with their SHA-256, as sha256sum prints them.
const sumsFile = "SHA256SUMS"

// checkVendor refuses a file that is not the one that was reviewed, and one that is not in the list.
func checkVendor(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		return err
	}
	known := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok {
			return fmt.Errorf("%s: a line has no two spaces", sumsFile)
		}
		known[filepath.Clean(name)] = sum
	}
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == sumsFile || name == "README.md" {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		if known[name] != hex.EncodeToString(sum[:]) {
			return fmt.Errorf("vendor/%s is not the file of %s", name, sumsFile)
		}
		return nil
	})
}
