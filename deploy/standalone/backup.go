package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/bus/embedded"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// backup copies everything that the platform keeps into a new folder. If the platform runs, it does that itself.
func backup(ctx context.Context, args []string, out, notes io.Writer) error {
	flags := pflag.NewFlagSet("backup", pflag.ContinueOnError)
	flags.SetOutput(notes)
	dataDir := flags.String("data-dir", "", "the data folder (default: IDP_DATA_DIR, or data)")
	if err := flags.Parse(args); err != nil {
		return helped(err)
	}
	if flags.NArg() != 1 {
		return errors.New("backup: the command is: backup DIR, where DIR is a folder that does not exist yet")
	}
	s, err := load(nil, out)
	if err != nil {
		return err
	}
	if *dataDir != "" {
		s.DataDir = *dataDir
	}
	target, err := filepath.Abs(flags.Arg(0))
	if err != nil {
		return err
	}
	tell := func(format string, args ...any) { fmt.Fprintf(notes, format+"\n", args...) }
	f, unlock, err := lookAtFolder(s.DataDir)
	began := time.Now()
	var m manifest
	switch {
	case errors.Is(err, errRuns):
		m, err = f.askForBackup(ctx, target, tell)
	case err == nil:
		defer unlock()
		m, err = backupStopped(ctx, s, f, target, tell)
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	fmt.Fprintf(out, "%s has the state of %s: %s, %d events; took %v, writes waited for %v\n", target,
		m.Time.Format(time.RFC3339), megabytes(m.size()), m.events(), time.Since(began).Round(time.Millisecond),
		time.Duration(m.Waited*float64(time.Millisecond)).Round(10*time.Microsecond))
	if m.Keys.Included {
		fmt.Fprintln(out, "The encryption keys are in it: keep it as secret as the data folder.")
	} else {
		fmt.Fprintln(out, "The encryption keys (IDP_ENCRYPTION_KEYS) are not in it: keep them, too, elsewhere.")
	}
	return nil
}

// source is what a backup copies.
type source struct {
	folder folder
	stores []openStore
	nats   *embedded.Server
	keys   *secret.Keyring
	turn   *sync.Mutex // of backups
}

// openStore is a service's file.
type openStore struct {
	name   string
	engine *sqlitestore.Engine
}

// source is what a backup of the running platform copies.
func (p *platform) source(f folder) source {
	return source{f, p.stores, p.nats, p.keys, new(sync.Mutex)}
}

// backupStopped opens the stores of a platform that does not run.
func backupStopped(
	ctx context.Context, s settings, f folder, target string, tell func(string, ...any),
) (m manifest, err error) {
	if !exists(f.join("VERSION")) {
		return m, fmt.Errorf("the data folder %s is empty: there is nothing to copy", f.path)
	}
	state, err := f.readStores()
	if err != nil {
		return m, err
	}
	if _, err := state.begin(s.stores(), nil); err != nil {
		return m, err
	}
	from := source{folder: f, turn: new(sync.Mutex)}
	if from.keys, err = f.keyring(s.EncryptionKeys); err != nil {
		return m, err
	}
	log := telemetry.NewLogger(io.Discard, s.Log.Level, s.Log.Format)
	if from.nats, err = embedded.Start(embedded.Config{StoreDir: f.join("nats"), Log: log}); err != nil {
		return m, err
	}
	defer from.nats.Stop()
	for _, spec := range specs(s) {
		path := f.join(spec.Name + ".db")
		if !exists(path) {
			continue // the platform was never started with this service
		}
		engine, err := sqlitestore.Open(ctx, sqlitestore.Options{Path: path, Log: log})
		if err != nil {
			return m, err
		}
		defer func() { err = errors.Join(err, engine.Close()) }()
		from.stores = append(from.stores, openStore{spec.Name, engine})
	}
	return from.backup(ctx, target, tell)
}

// ownFiles are the data folder's other files that belong to a backup.
var ownFiles = []string{
	"VERSION", storesFile, keyFile, administratorFile, "nats.password", "nats.jobs.password",
}

// backup copies everything to a new folder. If it fails, it removes the folder.
func (s source) backup(ctx context.Context, target string, tell func(string, ...any)) (m manifest, err error) {
	if !s.turn.TryLock() {
		return m, errors.New("another backup of this platform runs")
	}
	defer s.turn.Unlock()
	if err := s.checkTarget(target); err != nil {
		return m, err
	}
	if err := os.Mkdir(target, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return m, fmt.Errorf("%s exists already: a backup overwrites nothing", target)
		}
		return m, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(target))
		}
	}()
	w := &backupWriter{source: s, dir: target, tell: tell}
	if err := w.copy(ctx); err != nil {
		return m, err
	}
	return w.manifest, w.finish()
}

// checkTarget refuses a folder that cannot hold the backup.
func (s source) checkTarget(target string) error {
	parent, err := filepath.EvalSymlinks(filepath.Dir(target))
	if err != nil {
		return err
	}
	data, err := filepath.EvalSymlinks(s.folder.path)
	if err != nil {
		return err
	}
	if inside, err := filepath.Rel(data, parent); err == nil && filepath.IsLocal(inside) {
		return fmt.Errorf("%s is in the data folder: choose a folder elsewhere, best on another disk", target)
	}
	var needed int64
	for _, store := range s.stores {
		if info, err := os.Stat(s.folder.join(store.name + ".db")); err == nil {
			needed += info.Size()
		}
	}
	if free, known := freeSpace(parent); known && free < needed {
		return fmt.Errorf("the disk of %s has %s left, and the stores alone have %s", target, megabytes(free),
			megabytes(needed))
	}
	return nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// backupWriter writes one backup.
type backupWriter struct {
	source
	dir      string
	tell     func(string, ...any)
	manifest manifest
}

// copy copies the stores and streams as they are at one moment. The acknowledgements of consumers are from before:
// what they have handled is in the stores.
func (w *backupWriter) copy(ctx context.Context) error {
	streams, err := w.nats.StartBackup(ctx)
	if err != nil {
		return err
	}
	defer streams.Close()
	engines := make([]*sqlitestore.Engine, len(w.stores))
	for i, s := range w.stores {
		engines[i] = s.engine
	}
	snapshots, waited, err := sqlitestore.Snapshots(ctx, engines, func(ctx context.Context) error {
		w.manifest.Time = time.Now().UTC()
		return streams.Cut(ctx)
	})
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range snapshots {
			_ = s.Close() // it was only read
		}
	}()
	w.manifest.Waited = float64(waited.Microseconds()) / 1000
	for i, s := range w.stores {
		if err := w.store(ctx, snapshots[i], s.name+".db"); err != nil {
			return err
		}
	}
	for _, s := range streams.Streams {
		if err := w.stream(ctx, streams, s); err != nil {
			return err
		}
	}
	return w.own(ctx)
}

// tellEvery is how often the progress of one file is told.
const tellEvery = 2 * time.Second

func (w *backupWriter) store(ctx context.Context, s *sqlitestore.Snapshot, name string) error {
	path, told := filepath.Join(w.dir, name), time.Now()
	err := s.Copy(ctx, path, func(n int64) {
		if time.Since(told) > tellEvery {
			told = time.Now()
			w.tell("%s: %s so far", name, megabytes(n))
		}
	})
	if err != nil {
		return err
	}
	w.tell("%s is copied", name)
	return w.add(ctx, path)
}

func (w *backupWriter) stream(ctx context.Context, b *embedded.Backup, s *embedded.StreamBackup) error {
	path := filepath.Join(w.dir, s.Name+".stream")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(b.Write(ctx, s, file), file.Sync(), file.Close()); err != nil {
		return err
	}
	w.manifest.Streams = append(w.manifest.Streams, streamFile{
		File: filepath.Base(path), Config: s.Info.Config, Epoch: bus.Epoch(s.Info),
		First: s.Info.State.FirstSeq, Last: s.Info.State.LastSeq, Messages: s.Info.State.Msgs,
	})
	w.tell("%s is copied: %d events", s.Name, s.Info.State.Msgs)
	return w.add(ctx, path)
}

// own copies the data folder's own files.
func (w *backupWriter) own(ctx context.Context) error {
	for _, name := range ownFiles {
		path := filepath.Join(w.dir, name)
		_, err := copyFile(ctx, path, w.folder.join(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = syncPath(path)
		}
		if err == nil {
			err = w.add(ctx, path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add notes a written file.
func (w *backupWriter) add(ctx context.Context, path string) error {
	sum, err := sumOf(ctx, path)
	if err != nil {
		return err
	}
	w.manifest.Files = append(w.manifest.Files, sum)
	return nil
}

// finish writes the manifest.
func (w *backupWriter) finish() error {
	m := &w.manifest
	m.Format, m.Layout, m.Program = backupFormat, format, telemetry.ReadBuild()
	for _, f := range m.Files {
		m.Keys.Included = m.Keys.Included || f.Name == keyFile
	}
	m.Keys.Proof = prove(w.keys)
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := syncPath(w.dir); err != nil {
		return err
	}
	if err := (folder{w.dir}).replace(manifestFile, strings.TrimSpace(string(text))); err != nil {
		return err
	}
	return syncPath(filepath.Dir(w.dir))
}

// syncPath makes a file, or the names in a folder, survive a power failure.
func syncPath(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
