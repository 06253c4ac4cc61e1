package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/secret"
)

// format is the folder's layout. It grows when an older program could not read what a newer one writes.
const format = 1

// folder is the data folder. It and every file in it are its owner's alone, and what can be sealed is.
//
//	VERSION          the layout's number
//	LOCK             held by the running platform
//	encryption.key   seals secrets at rest, unless the keys are configured
//	signing.sealed   the key pairs that tokens are signed with
//	jwks.json        their public halves, for services elsewhere
//	stores.json      which stores there have been
//	nats.url         how event subscribers reach NATS
//	nats/            event streams
//	<service>.db     a SQLite file for each service
type folder struct{ path string }

// openFolder makes the folder if it is missing, and refuses one of a newer program.
func openFolder(path string) (folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return folder{}, err
	}
	f := folder{abs}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return f, fmt.Errorf("data folder: %w", err)
	}
	text, err := f.keep("VERSION", func() (string, error) { return strconv.Itoa(format), nil })
	if err != nil {
		return f, err
	}
	return f, f.checkVersion(text)
}

// checkVersion refuses a folder of a newer program.
func (f folder) checkVersion(text string) error {
	found, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return fmt.Errorf("data folder %s: VERSION is not a number", f.path)
	}
	if found > format {
		return fmt.Errorf("data folder %s was written by a newer program (layout %d; this one knows layouts up to %d): "+
			"start that one, or choose another folder with IDP_DATA_DIR", f.path, found, format)
	}
	return nil
}

// takeFolder opens the folder and locks it.
func takeFolder(path string) (f folder, unlock func(), err error) {
	if f, err = openFolder(path); err != nil {
		return f, nil, err
	}
	unlock, err = f.lock()
	return f, unlock, err
}

func (f folder) join(names ...string) string { return filepath.Join(f.path, filepath.Join(names...)) }

// lock keeps a second platform off the folder until unlock. The system frees it when the process ends, however it ends.
func (f folder) lock() (unlock func(), err error) {
	l := flock.New(f.join("LOCK"))
	held, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if !held {
		return nil, fmt.Errorf("another platform runs on the data folder %s: stop it first, or choose another folder with IDP_DATA_DIR", f.path)
	}
	return func() { _ = l.Unlock() }, nil
}

// keep returns a file's text, made by first if there is no file. Whoever is first wins: two programs that start at once get the same text.
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
		err = os.Link(temporary, f.join(name)) // unlike a rename, it fails where another was first
		_ = os.Remove(temporary)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("data folder: %w", err)
		}
		if err := f.sync(); err != nil {
			return "", err
		}
	}
}

// replace writes a file in one step.
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

// write makes a temporary file, on disk when it returns.
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

// sync makes the names of new files survive a power cut.
func (f folder) sync() error {
	dir, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// keyring is the configured one, or the folder's own.
func (f folder) keyring(configured secret.String) (*secret.Keyring, error) {
	if configured.IsZero() {
		text, err := f.keep("encryption.key", func() (string, error) { return secret.NewKey().Reveal(), nil })
		if err != nil {
			return nil, err
		}
		configured = secret.New(text)
	}
	return secret.ParseKeyring(configured)
}

// issuer is the platform's own name in its tokens.
const issuer = "idplatform"

// signer has the platform's signing keys, made at the first start.
func (f folder) signer(keys *secret.Keyring) (*auth.Signer, error) {
	if _, err := f.keep(signingFile, func() (string, error) {
		key, err := auth.GenerateKey()
		if err != nil {
			return "", err
		}
		private, err := auth.NewKeys(key).PrivateJWKS()
		if err != nil {
			return "", err
		}
		return keys.Seal(private, []byte(signingFile)), nil
	}); err != nil {
		return nil, err
	}
	set, reseal, err := f.signingKeys(keys)
	if err != nil {
		return nil, err
	}
	if reseal != "" {
		if err := f.replace(signingFile, reseal); err != nil {
			return nil, err
		}
	}
	signer, err := auth.NewSigner(issuer, set, clock.System)
	if err != nil {
		return nil, err
	}
	return signer, f.publish(signer)
}

const signingFile = "signing.sealed"

// signingKeys reads the keys. reseal is what the file should be, where that is something else than it is.
func (f folder) signingKeys(keys *secret.Keyring) (set auth.Keys, reseal string, err error) {
	sealed, err := os.ReadFile(f.join(signingFile))
	if err != nil {
		return set, "", fmt.Errorf("data folder: %w", err)
	}
	text := strings.TrimSpace(string(sealed))
	private, err := keys.Open(text, []byte(signingFile))
	if err != nil {
		return set, "", fmt.Errorf("data folder %s: the signing keys were sealed under an encryption key that is not the one given", f.path)
	}
	if set, err = auth.ParsePrivateJWKS(private); err != nil {
		return set, "", fmt.Errorf("data folder: %s: %w", signingFile, err)
	}
	if keys.NeedsReseal(text) {
		reseal = keys.Seal(private, []byte(signingFile))
	}
	return set, reseal, nil
}

// publish writes the public keys for services that run elsewhere.
func (f folder) publish(signer *auth.Signer) error {
	public := string(signer.PublicJWKS())
	if text, err := os.ReadFile(f.join("jwks.json")); err == nil && strings.TrimSpace(string(text)) == public {
		return nil
	}
	return f.replace("jwks.json", public)
}
