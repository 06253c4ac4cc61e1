package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// tighten removes the access of other users to the folder and to the platform's files in it, which an unpacked
// backup or an operator may have given. Files that are not the platform's stay as they are.
func (f folder) tighten(log *slog.Logger) error {
	tightened, foreign := 0, 0
	err := filepath.WalkDir(f.path, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(f.path, path)
		if err == nil && name != "." && !own(name) {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if err == nil && (entry.IsDir() || entry.Type().IsRegular()) {
			var changed bool
			if changed, err = ownersAlone(path); changed {
				tightened++
			}
		}
		switch {
		case errors.Is(err, fs.ErrPermission): // the root of a mounted volume can belong to another user
			foreign++
			return nil
		case errors.Is(err, fs.ErrNotExist):
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if tightened > 0 || foreign > 0 {
		log.Warn("other users had access to the data folder",
			"folder", f.path, "tightened", tightened, "of_other_owners", foreign)
	}
	return nil
}

// own reports whether a file or folder of this name in the data folder is the platform's.
func own(name string) bool {
	first, _, below := strings.Cut(filepath.ToSlash(name), "/")
	if below || first == "nats" {
		return first == "nats"
	}
	switch first {
	case "VERSION", "LOCK", storesFile, administratorFile, addressFile:
		return true
	}
	for _, part := range []string{".key", ".sealed", ".db", ".db-wal", ".db-shm"} {
		if strings.HasSuffix(first, part) {
			return true
		}
	}
	return strings.HasPrefix(first, "nats.")
}

// ownersAlone removes the permissions of group and others.
func ownersAlone(path string) (changed bool, err error) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return false, err
	}
	return true, os.Chmod(path, info.Mode().Perm()&0o700)
}
