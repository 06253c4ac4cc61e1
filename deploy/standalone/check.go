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
)

// check prints the settings, secrets masked, and looks for damage in the data folder, which it does not change. The
// platform must not run. What it cannot see: a value in a SQLite file that was changed to another that is possible,
// since SQLite has no checksums; and changes that are gone with a log (users.db-wal) after a stop in good order, when
// there is none.
func check(ctx context.Context, args []string, out, _ io.Writer) error {
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
		fmt.Fprintln(out, "  nothing is in it yet: the first start makes it")
		return nil
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
	for _, spec := range s.specs() {
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
		return fmt.Errorf("check: %d part(s) of the platform are not well", c.failures)
	}
	return nil
}

// checking is a run of check.
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

// lookAtFolder opens a folder without writing to it, and locks it if it has a lock: one that has none is nobody's.
func lookAtFolder(path string) (f folder, unlock func(), err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return folder{}, nil, err
	}
	f = folder{abs}
	text, err := os.ReadFile(f.join("VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		if hasContent(f.join(signingFile)) || hasContent(f.join(storesFile)) {
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

// checkKeys sees whether the encryption key is there, and fits the signing keys of a platform that was older.
func (f folder) checkKeys(s settings) error {
	if s.EncryptionKeys.IsZero() && !exists(f.join("encryption.key")) {
		return errors.New("encryption.key is missing")
	}
	keys, err := f.keyring(s.EncryptionKeys)
	if err != nil {
		return err
	}
	_, err = f.formerKeys(keys)
	return err
}

// store checks a copy of a store's file: opening a SQLite file may change it, to take its log in or to bring an older
// one up to date.
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
			return fmt.Errorf("%s: copy it to %s: %w; TMPDIR says where copies go", c.folder.join(file), dir, err)
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
		})
		fmt.Fprintf(c.out, "  event stream     %d events\n", found[bus.EventStream])
		return err
	})
}

func isEvent(stream, subject string, body []byte) error {
	if stream == bus.EventStream {
		_, err := bus.Decode(subject, body)
		return err
	}
	if !json.Valid(body) {
		return errors.New("it is not JSON")
	}
	return nil
}

// slowest is what is read at least of what is checked, in bytes a second: damaged files may lead in circles.
const slowest = 4 << 20

// bounded runs a check that ends in time, or is given up.
func (c *checking) bounded(size int64, do func(context.Context) error) error {
	limit := time.Minute + time.Duration(size/slowest)*time.Second
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("so damaged that reading it fails: %v", p)
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
		part, err = io.CopyN(target, source, 64<<20) // in the system, without a buffer of ours
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
