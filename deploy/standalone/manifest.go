package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

const (
	// backupFormat is the version of a backup's layout. It is raised when an older program could not restore what a
	// newer one writes.
	backupFormat = 1
	manifestFile = "manifest.json"
)

// manifest describes a backup. It is written last: a folder without it is not a backup.
type manifest struct {
	Format  int             `json:"format"`
	Layout  int             `json:"layout"` // of the data folder: see format
	Program telemetry.Build `json:"program"`
	Time    time.Time       `json:"time"`      // the moment whose state the backup has
	Waited  float64         `json:"waited_ms"` // how long writes waited at that moment
	Keys    keysInBackup    `json:"encryption_keys"`
	Streams []streamFile    `json:"streams"`
	Files   []fileSum       `json:"files"`
}

// keysInBackup says where the keys are that open the secrets in a backup.
type keysInBackup struct {
	Included bool   `json:"included"` // otherwise they were given by IDP_ENCRYPTION_KEYS
	Proof    string `json:"proof"`    // a known text, sealed, which only the right keys open
}

// streamFile is an event stream in a backup.
type streamFile struct {
	File     string                 `json:"file"`
	Config   jetstream.StreamConfig `json:"config"`
	Epoch    string                 `json:"epoch"` // see bus.Epoch
	First    uint64                 `json:"first"` // the places of its events
	Last     uint64                 `json:"last"`
	Messages uint64                 `json:"messages"`
}

type fileSum struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

var proven = []byte("idp-standalone backup")

func prove(keys *secret.Keyring) string { return keys.Seal(proven, proven) }

// opensBy reports whether the keys are those of the backup.
func (k keysInBackup) opensBy(keys *secret.Keyring) bool {
	_, err := keys.Open(k.Proof, proven)
	return err == nil
}

// size is how many bytes the files have together.
func (m manifest) size() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// events is how many events the backup has.
func (m manifest) events() (n uint64) {
	for _, s := range m.Streams {
		n += s.Messages
	}
	return n
}

// readManifest reads a backup's manifest, and refuses one of a newer program.
func readManifest(dir string) (m manifest, err error) {
	text, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if errors.Is(err, fs.ErrNotExist) && exists(dir) {
		return m, fmt.Errorf("%s has no %s: it is not a backup, or the backup was interrupted", dir, manifestFile)
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil || m.Format < 1 {
		return m, fmt.Errorf("%s is damaged: it is not a backup's", filepath.Join(dir, manifestFile))
	}
	if m.Format > backupFormat || m.Layout > format {
		return m, fmt.Errorf("%s was written by a newer program "+
			"(format %d, layout %d; this one knows up to %d and %d): restore it with that one, %s",
			dir, m.Format, m.Layout, backupFormat, format, m.Program.Version)
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(f.Name) || filepath.Base(f.Name) != f.Name {
			return m, fmt.Errorf("%s is damaged: a backup has no file %q", filepath.Join(dir, manifestFile), f.Name)
		}
	}
	return m, nil
}

// verify compares the files of a backup with its manifest.
func (m manifest) verify(ctx context.Context, dir string, tell func(string, ...any)) error {
	var faults []error
	for _, want := range m.Files {
		have, err := sumOf(ctx, filepath.Join(dir, want.Name))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			faults = append(faults, err)
		case have != want:
			faults = append(faults, fmt.Errorf("%s is damaged: it has %d bytes with the SHA-256 %.8s…, "+
				"the backup had %d with %.8s…", filepath.Join(dir, want.Name), have.Size, have.SHA256, want.Size,
				want.SHA256))
		}
	}
	if len(faults) == 0 {
		tell("%d files are as they were backed up", len(m.Files))
	}
	return errors.Join(faults...)
}

// sumOf reads a file.
func sumOf(ctx context.Context, path string) (fileSum, error) {
	file, err := os.Open(path)
	if err != nil {
		return fileSum{}, err
	}
	defer file.Close()
	digest := sha256.New()
	n, err := io.Copy(digest, untilDone{ctx, file})
	if err != nil {
		return fileSum{}, fmt.Errorf("read %s: %w", path, err)
	}
	return fileSum{filepath.Base(path), n, hex.EncodeToString(digest.Sum(nil))}, nil
}

// untilDone is a reader that fails when a context ends.
type untilDone struct {
	ctx context.Context
	io.Reader
}

func (r untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
