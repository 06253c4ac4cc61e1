package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/bus/embedded"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/config"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// check prints the settings, with secrets masked, and looks for damage in the data folder. It changes nothing, unless
// --rotate-keys is given: then it first calls rotate. The platform must be stopped. It cannot find two kinds of damage:
// a value in a SQLite file that was replaced by another valid value, because SQLite has no checksums; and changes that
// were lost with a log file (users.db-wal) that an orderly stop would have merged into the store.
func check(ctx context.Context, args []string, out, notes io.Writer) error {
	args, rotating := service.TakeFlag(args, "--rotate-keys")
	s, err := load(args, out)
	if err != nil {
		return err
	}
	standard := defaults()
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, setting := range config.Describe(&s, &standard) {
		fmt.Fprintf(table, "%s\t%s\n", setting.Env, setting.Value)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	f, unlock, err := lookAtFolder(s.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	fmt.Fprintf(out, "\ndata folder %s\n", f.path)
	if !exists(f.join("VERSION")) {
		fmt.Fprintln(out, "  it is empty: the first start fills it")
		return nil
	}

	if rotating {
		if err := rotate(ctx, s, f, telemetry.NewLogger(notes, s.Log.Level, s.Log.Format)); err != nil {
			return fmt.Errorf("rotate the encryption keys: %w", err)
		}
	}
	c := checking{ctx: ctx, folder: f, out: out}
	c.report("keys", f.checkKeys(s))
	state, err := f.readStores()
	c.report("stores", err)
	if err != nil {
		state = &stores{folder: f}
	}
	lost, faults := state.lost(s.stores())
	missing := map[string]error{}
	for i, name := range lost {
		missing[name] = fmt.Errorf("%s: the next start refuses it without --accept-loss %s", faults[i], name)
	}
	for _, spec := range specs(s) {
		err := missing[spec.Name]
		if err == nil && exists(f.join(spec.Name+".db")) {
			err = c.store(spec)
		}
		c.report("store of "+spec.Name, err)
	}
	if err = missing[natsStore]; err == nil && exists(f.join("nats")) {
		err = c.events()
	}
	c.report("event stream", err)
	if c.failures > 0 {
		return fmt.Errorf("check: %d part(s) of the platform have faults", c.failures)
	}
	return nil
}

// checking is one run of check.
type checking struct {
	ctx      context.Context
	folder   folder
	out      io.Writer
	failures int
}

func (c *checking) report(part string, err error) {
	if err == nil {
		fmt.Fprintf(c.out, "  %-16s ok\n", part)
		return
	}
	c.failures++
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(c.out, "  %-16s %s\n", part, line)
		part = ""
	}
}

// lookAtFolder opens a folder without writing to it. It locks the folder if there is a lock file; without one no
// platform can be running.
func lookAtFolder(path string) (f folder, unlock func(), err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return folder{}, nil, err
	}
	f = folder{abs}
	if exists(f.join(restored)) {
		return f, nil, fmt.Errorf("data folder %s: a restore was interrupted at its end: the next start completes it",
			abs)
	}
	if exists(f.join(restoring)) {
		return f, nil, f.errRestoring()
	}
	text, err := os.ReadFile(f.join("VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		if hasContent(f.join(storesFile)) {
			return f, nil, fmt.Errorf("data folder %s: VERSION is missing", abs)
		}
		return f, func() {}, nil
	}
	if err != nil {
		return f, nil, fmt.Errorf("data folder: %w", err)
	}
	if err := f.checkVersion(string(text)); err != nil {
		return f, nil, err
	}
	if !exists(f.join("LOCK")) {
		return f, func() {}, nil
	}
	unlock, err = f.lock()
	return f, unlock, err
}

// checkKeys checks that the encryption key exists and can be read.
func (f folder) checkKeys(s settings) error {
	if s.EncryptionKeys.IsZero() && !exists(f.join(keyFile)) {
		return errors.New(keyFile + " is missing")
	}
	_, err := f.keyring(s.EncryptionKeys)
	return err
}

// store checks a copy of a store's file, because opening a SQLite file can change it: SQLite merges its log, and the
// store is migrated to the present version.
func (c *checking) store(spec service.Spec) (err error) {
	dir, err := os.MkdirTemp("", "idp-check-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var size int64
	name := spec.Name + ".db"
	for _, file := range []string{name, name + "-wal"} {
		n, err := copyFile(c.ctx, filepath.Join(dir, file), c.folder.join(file))
		if errors.Is(err, fs.ErrNotExist) && file != name {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: copy it to %s: %w; set TMPDIR to copy to another place",
				c.folder.join(file), dir, err)
		}
		size += n
	}
	err = c.bounded(size, func(ctx context.Context) error {
		copied := sqlitestore.Options{Path: filepath.Join(dir, name), Log: slog.New(slog.DiscardHandler)}
		engine, err := sqlitestore.Open(ctx, copied)
		if err != nil {
			return err
		}
		store, err := spec.Open(ctx, engine, clock.System, nil)
		if err != nil {
			return err
		}
		return errors.Join(store.Check(ctx), store.Close())
	})
	if err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), filepath.Join(dir, name), c.folder.join(name)))
	}
	return nil
}

// events checks the files of the event streams.
func (c *checking) events() error {
	var size int64
	_ = filepath.WalkDir(c.folder.join("nats"), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil {
			if info, err := entry.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return c.bounded(size, func(ctx context.Context) error {
		found, err := embedded.Verify(ctx, c.folder.join("nats"), embedded.Verification{
			Whole: []string{bus.EventStream}, Streams: []string{bus.DeadLetterStream}, Each: isEvent,
			Dropped: bus.DroppedOfAll,
		})
		fmt.Fprintf(c.out, "  event stream     %d events\n", found[bus.EventStream])
		return err
	})
}

func isEvent(of, subject string, body []byte) error {
	if of == bus.EventStream {
		_, err := stream.Decode(subject, body)
		return err
	}
	if !json.Valid(body) {
		return errors.New("it is not JSON")
	}
	return nil
}

// slowest is the least speed at which a check must read, in bytes a second. Damaged files can make it read the same
// data again and again.
const slowest = 4 << 20

// bounded runs a check of a file of that many bytes and gives it up if it takes too long.
func (c *checking) bounded(size int64, do func(context.Context) error) error {
	limit := time.Minute + time.Duration(size/slowest)*time.Second
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("it is too damaged to be read: %v", p)
			}
		}()
		done <- do(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(limit + 10*time.Second):
		return fmt.Errorf("not read within %s: it is damaged, or the disk is very slow", limit)
	}
}

func copyFile(ctx context.Context, to, from string) (n int64, err error) {
	source, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	for err == nil {
		var part int64
		part, err = io.CopyN(target, source, 64<<20) // copied by the operating system, without a buffer in this process
		n += part
		if ctx.Err() != nil {
			err = ctx.Err()
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, errors.Join(err, target.Close())
}
