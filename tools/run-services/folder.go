//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/idplatform/idplatform/pkg/secret"
)

// Secrets, each in a file of the data folder. They are made at the first start and kept.
const (
	encryptionKeys      = "secrets/encryption.keys"
	natsPassword        = "secrets/nats.password"
	readersPassword     = "secrets/nats.events.password"
	administratorSecret = "secrets/administrator.secret"
	gatewaySecret       = "secrets/gateway.secret"
	consoleKeys         = "secrets/console.keys"
	readersURL          = "secrets/nats.url" // the URL of NATS for readers of events; written at each start
)

// folder is the data folder. Only its owner can read it.
type folder struct {
	path string // absolute
	lock *flock.Flock
}

// openFolder makes the folder if it does not exist, locks it, and makes the secrets that are missing.
func openFolder(path string) (*folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f := &folder{abs, flock.New(filepath.Join(abs, "LOCK"))}
	for _, dir := range []string{f.join("secrets"), f.join("logs"), f.join("nats")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("data folder: %w", err)
		}
	}
	if held, err := f.lock.TryLock(); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	} else if !held {
		return nil, fmt.Errorf("the data folder %s is in use: choose another with IDP_DATA_DIR", abs)
	}
	for name, made := range map[string]func() string{
		encryptionKeys:      func() string { return secret.NewKey().Reveal() },
		consoleKeys:         func() string { return secret.NewKey().Reveal() },
		natsPassword:        func() string { return secret.Token(32) },
		readersPassword:     func() string { return secret.Token(32) },
		administratorSecret: func() string { return secret.Token(32) },
		gatewaySecret:       func() string { return secret.Token(32) },
	} {
		if err := f.keep(name, made); err != nil {
			return nil, errors.Join(err, f.close())
		}
	}
	return f, nil
}

func (f *folder) join(name string) string { return filepath.Join(f.path, name) }

func (f *folder) close() error { return f.lock.Unlock() }

// keep writes what made returns, unless the file exists.
func (f *folder) keep(name string, made func() string) error {
	if _, err := os.Stat(f.join(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.write(name, made())
}

// write writes a file as a whole or not at all.
func (f *folder) write(name, text string) error {
	temporary := f.join(name) + ".new"
	if err := os.WriteFile(temporary, []byte(text+"\n"), 0o600); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	return os.Rename(temporary, f.join(name))
}

func (f *folder) read(name string) (string, error) {
	text, err := os.ReadFile(f.join(name))
	return strings.TrimSpace(string(text)), err
}
