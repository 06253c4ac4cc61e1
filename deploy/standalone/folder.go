package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/applications"
)

// format is the version of the folder's layout. It is raised when an older program could not read what a newer one
// writes.
const format = 1

// folder is the data folder. Only its owner can read it and the files in it, and secrets in it are encrypted where
// that is possible.
//
//	VERSION             the version of the layout
//	LOCK                held by the running platform
//	encryption.key      encrypts secrets at rest, unless the keys are configured
//	administrator.json  client id and secret of the platform's administrator, unless they are configured
//	stores.json         the stores that the folder has had
//	api.url             the address of the running platform
//	nats.url            the address of NATS for event subscribers
//	nats.jobs.url       the address of NATS for workers of jobs
//	nats/               event streams
//	<service>.db        a SQLite file for each service
//	control.sock        on which the running platform is asked for a backup
//	restoring/          what restore has copied so far
//	restored/           what it has copied, all of it, on the way into this folder
type folder struct{ path string }

const workersURL = "nats.jobs.url"

// openFolder makes the folder if it does not exist, and refuses one that a newer program has written.
func openFolder(path string) (folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return folder{}, err
	}
	f := folder{abs}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return f, fmt.Errorf("data folder: %w", err)
	}
	if err := f.completeRestore(); err != nil {
		return f, err
	}
	text, err := f.keep("VERSION", func() (string, error) { return strconv.Itoa(format), nil })
	if err != nil {
		return f, err
	}
	return f, f.checkVersion(text)
}

// checkVersion refuses a folder that a newer program has written.
func (f folder) checkVersion(text string) error {
	found, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return fmt.Errorf("data folder %s: VERSION is not a number", f.path)
	}
	if found > format {
		return fmt.Errorf("data folder %s was written by a newer program "+
			"(layout %d; this one knows layouts up to %d): start the newer program, "+
			"or choose another folder with IDP_DATA_DIR", f.path, found, format)
	}
	return nil
}

// takeFolder opens and locks the folder.
func takeFolder(path string) (f folder, unlock func(), err error) {
	if f, err = openFolder(path); err != nil {
		return f, nil, err
	}
	unlock, err = f.lock()
	return f, unlock, err
}

func (f folder) join(names ...string) string { return filepath.Join(f.path, filepath.Join(names...)) }

// errRuns means that the folder is locked.
var errRuns = errors.New("another platform runs")

// lock keeps other platforms off the folder until unlock. The operating system releases it when the process ends, for
// whatever reason.
func (f folder) lock() (unlock func(), err error) {
	l := flock.New(f.join("LOCK"))
	held, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if !held {
		return nil, fmt.Errorf("%w on the data folder %s: stop it first, or choose another folder with IDP_DATA_DIR",
			errRuns, f.path)
	}
	return func() { _ = l.Unlock() }, nil
}

// keep returns the text of a file. If there is no file, it writes the one that first makes. Two programs that start
// at the same time get the same text.
func (f folder) keep(name string, first func() (string, error)) (string, error) {
	for {
		text, err := os.ReadFile(f.join(name))
		if err == nil {
			return strings.TrimSpace(string(text)), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("data folder: %w", err)
		}
		made, err := first()
		if err != nil {
			return "", err
		}
		temporary, err := f.write(name, made)
		if err != nil {
			return "", err
		}
		err = os.Link(temporary, f.join(name)) // unlike a rename, it fails if another program was first
		_ = os.Remove(temporary)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("data folder: %w", err)
		}
		if err := f.sync(); err != nil {
			return "", err
		}
	}
}

// replace writes a file atomically.
func (f folder) replace(name, text string) error {
	temporary, err := f.write(name, text)
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, f.join(name)); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	return f.sync()
}

// write makes a temporary file and syncs it to disk.
func (f folder) write(name, text string) (path string, err error) {
	file, err := os.CreateTemp(f.path, name+".*") // mode 0600
	if err != nil {
		return "", fmt.Errorf("data folder: %w", err)
	}
	_, err = file.WriteString(text + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		_ = os.Remove(file.Name())
		return "", fmt.Errorf("data folder: %w", err)
	}
	return file.Name(), nil
}

// sync makes new files survive a power failure, by syncing the folder.
func (f folder) sync() error {
	dir, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// keyFile has the folder's own encryption keys, in the form of IDP_ENCRYPTION_KEYS. There are two while rotate runs,
// and otherwise one.
const keyFile = "encryption.key"

// keyring returns the configured keys, or the folder's own if none are configured.
func (f folder) keyring(configured secret.String) (*secret.Keyring, error) {
	if configured.IsZero() {
		text, err := f.keep(keyFile, func() (string, error) { return secret.NewKey().Reveal(), nil })
		if err != nil {
			return nil, err
		}
		configured = secret.New(text)
	}
	return secret.ParseKeyring(configured)
}

// administratorFile has the administrator's credential, which is generated at the first start.
const administratorFile = "administrator.json"

// administrator returns the configured administrator, or the folder's own if none is configured.
func (f folder) administrator(configured applications.Bootstrap) (applications.Bootstrap, error) {
	if configured.ClientID != "" {
		return configured, nil
	}
	type credential struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	text, err := f.keep(administratorFile, func() (string, error) {
		made, err := json.MarshalIndent(credential{strings.ToLower(rand.Text()), secret.Token(32)}, "", "  ")
		return string(made), err
	})
	if err != nil {
		return configured, err
	}
	var kept credential
	if err := json.Unmarshal([]byte(text), &kept); err != nil || kept.ClientID == "" || kept.ClientSecret == "" {
		return configured, fmt.Errorf("data folder: %s is damaged: "+
			"delete it; the next start makes another administrator", administratorFile)
	}
	configured.ClientID, configured.ClientSecret = kept.ClientID, secret.New(kept.ClientSecret)
	return configured, nil
}
