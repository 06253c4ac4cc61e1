package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/bus/embedded"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
)

// A restore copies everything into restoring, a folder in the data folder, and then renames that to restored: this is
// the moment from which the data folder has the whole. What follows, moving it into the data folder itself, is done
// again by the next start if it is interrupted. So a data folder may be the root of a volume.
const (
	restoring = "restoring"
	restored  = "restored"
)

// restore fills the empty data folder from a backup.
func restore(ctx context.Context, args []string, out, notes io.Writer) error {
	flags := pflag.NewFlagSet("restore", pflag.ContinueOnError)
	flags.SetOutput(notes)
	dataDir := flags.String("data-dir", "", "the data folder (default: IDP_DATA_DIR, or data)")
	if err := flags.Parse(args); err != nil {
		return helped(err)
	}
	if flags.NArg() != 1 {
		return errors.New("restore: the command is: restore DIR, where DIR is what backup has written")
	}
	s, err := load(nil, out)
	if err != nil {
		return err
	}
	if *dataDir != "" {
		s.DataDir = *dataDir
	}
	path, err := filepath.Abs(s.DataDir)
	if err != nil {
		return err
	}
	r := restoration{settings: s, folder: folder{path}, dir: flags.Arg(0),
		tell: func(format string, args ...any) { fmt.Fprintf(notes, format+"\n", args...) }}
	began := time.Now()
	if err := r.run(ctx); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	fmt.Fprintf(out, "%s has the state of %s: %s, %d events; took %v\n", path, r.manifest.Time.Format(time.RFC3339),
		megabytes(r.manifest.size()), r.manifest.events(), time.Since(began).Round(time.Millisecond))
	fmt.Fprintf(out, "Start it with: IDP_DATA_DIR=%s %s serve\n", path, program())
	fmt.Fprintln(out, "Tokens that were ended after that moment are valid again until they expire; to end all tokens: "+
		"keys rotate --at-once")
	return nil
}

// restoration is one run of restore.
type restoration struct {
	settings settings
	folder   folder
	dir      string // the backup
	tell     func(string, ...any)
	manifest manifest
}

func (r *restoration) run(ctx context.Context) (err error) {
	if r.manifest, err = readManifest(r.dir); err != nil {
		return err
	}
	keys, err := r.keys()
	if err != nil {
		return err
	}
	unlock, err := r.folder.takeEmpty()
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.manifest.verify(ctx, r.dir, r.tell); err != nil {
		return err
	}
	to := folder{r.folder.join(restoring)}
	if err := os.RemoveAll(to.path); err != nil { // of a restore that was killed
		return err
	}
	if err := os.Mkdir(to.path, 0o700); err != nil {
		return err
	}
	if err := r.fill(ctx, to, keys); err != nil {
		return errors.Join(err, os.RemoveAll(to.path))
	}
	if err := os.Rename(to.path, r.folder.join(restored)); err != nil {
		return err
	}
	return r.folder.moveRestored()
}

// keys returns the keys that open the backup's secrets.
func (r *restoration) keys() (*secret.Keyring, error) {
	in := folder{r.dir}
	switch {
	case r.manifest.Keys.Included: // they were used: see folder.keyring
		if !exists(in.join(keyFile)) {
			return nil, fmt.Errorf("%s is missing", in.join(keyFile))
		}
	case r.settings.EncryptionKeys.IsZero():
		return nil, errors.New("the encryption keys are not in this backup: set IDP_ENCRYPTION_KEYS as it was then")
	}
	keys, err := in.keyring(r.settings.EncryptionKeys)
	if err != nil {
		return nil, err
	}
	if !r.manifest.Keys.opensBy(keys) {
		return nil, errors.New("the keys given by IDP_ENCRYPTION_KEYS do not open the secrets in this backup")
	}
	return keys, nil
}

// takeEmpty makes the folder if it does not exist, locks it, and refuses one with content.
func (f folder) takeEmpty() (unlock func(), err error) {
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return nil, err
	}
	if unlock, err = f.lock(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(f.path)
	for _, e := range entries {
		if !slices.Contains([]string{"LOCK", restoring, "lost+found"}, e.Name()) {
			err = fmt.Errorf("the data folder %s is not empty (it has %s): a restore replaces nothing; "+
				"choose another folder with IDP_DATA_DIR", f.path, e.Name())
			break
		}
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// fill makes a whole data folder, on disk, in an empty one.
func (r *restoration) fill(ctx context.Context, to folder, keys *secret.Keyring) error {
	for _, file := range r.manifest.Files {
		if slices.ContainsFunc(r.manifest.Streams, func(s streamFile) bool { return s.File == file.Name }) {
			continue
		}
		if _, err := copyFile(ctx, to.join(file.Name), filepath.Join(r.dir, file.Name)); err != nil {
			return err
		}
		if file.Size > 1<<20 {
			r.tell("%s is copied", file.Name)
		}
	}
	server, err := embedded.Start(embedded.Config{StoreDir: to.join("nats"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer server.Stop()
	for _, s := range r.manifest.Streams {
		if err := r.stream(ctx, server, s); err != nil {
			return err
		}
	}
	for _, spec := range specs(r.settings) {
		if !exists(to.join(spec.Name + ".db")) {
			continue // the backup is older than this service
		}
		if err := r.forgetPublished(ctx, server, spec, to, keys); err != nil {
			return fmt.Errorf("%s: %w", spec.Name, err)
		}
	}
	server.Stop()
	if err := r.raiseIDs(to); err != nil {
		return err
	}
	return filepath.WalkDir(to.path, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, syncPath(path))
	})
}

func (r *restoration) stream(ctx context.Context, server *embedded.Server, s streamFile) error {
	file, err := os.Open(filepath.Join(r.dir, s.File))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := server.Restore(s.Config, file); err != nil {
		return err
	}
	nc, err := nats.Connect("", nats.InProcessServer(server.Conn()))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	r.tell("%s is restored: %d events", s.Config.Name, s.Messages)
	return bus.KeepEpoch(ctx, js, s.Config.Name, s.Epoch)
}

// forgetPublished removes from a store's outbox what the stream has: the relay had published it, and had not removed it
// at the moment of the backup. It would publish it once more, and JetStream drops that only within two minutes. That
// opens the store, so it also shows that this program can.
func (r *restoration) forgetPublished(
	ctx context.Context, server *embedded.Server, spec service.Spec, to folder, keys *secret.Keyring,
) (err error) {
	engine, err := sqlitestore.Open(ctx, sqlitestore.Options{
		Path: to.join(spec.Name + ".db"), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	store, err := spec.Open(ctx, engine, clock.System, keys)
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	waiting, err := outboxOf(ctx, store)
	if err != nil || len(waiting) == 0 {
		return err
	}
	var published []int64
	err = server.EachID(ctx, bus.EventStream, func(id string) {
		if seq, found := waiting[id]; found {
			published = append(published, seq)
		}
	})
	if err != nil {
		return err
	}
	if n := len(waiting) - len(published); n > 0 {
		r.tell("%s: %d events wait for the first start, which publishes them", spec.Name, n)
	}
	return store.Published(ctx, published)
}

// outboxOf returns the numbers of the events that wait in a store, by their ids.
func outboxOf(ctx context.Context, store *docstore.Store) (map[string]int64, error) {
	const page = 1000
	waiting, after := map[string]int64{}, int64(0)
	for {
		list, err := store.Pending(ctx, after, page)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			waiting[m.ID], after = m.Seq, m.Seq
		}
		if len(list) < page {
			return waiting, nil
		}
	}
}

// raiseIDs makes the stores give out no id that they have given out since the backup.
func (r *restoration) raiseIDs(to folder) error {
	state, err := to.readStores()
	if err != nil {
		return err
	}
	for _, store := range state.Stores {
		store.restored(time.Now())
	}
	return state.write()
}

func (f folder) errRestoring() error {
	return fmt.Errorf("data folder %s: a restore was interrupted: run it again, or delete %s", f.path,
		f.join(restoring))
}

// completeRestore ends a restore that was interrupted after its last copy, and refuses a folder in which it was
// interrupted before.
func (f folder) completeRestore() error {
	if exists(f.join(restored)) {
		unlock, err := f.lock()
		if err != nil {
			return err
		}
		defer unlock()
		return f.moveRestored()
	}
	if exists(f.join(restoring)) {
		return f.errRestoring()
	}
	return nil
}

// moveRestored moves what was restored into the folder itself.
func (f folder) moveRestored() error {
	if err := f.sync(); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.join(restored))
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	for _, e := range entries {
		if err := os.Rename(f.join(restored, e.Name()), f.join(e.Name())); err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
	}
	if err := f.sync(); err != nil {
		return err
	}
	if err := os.Remove(f.join(restored)); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	return f.sync()
}
