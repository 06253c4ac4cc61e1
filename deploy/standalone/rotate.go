package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// rotate seals all secrets of a folder again: under the first configured key or, if none is configured, under a new key
// that replaces the folder's own. If it is interrupted, the folder stays usable, and the next run continues.
func rotate(ctx context.Context, s settings, f folder, log *slog.Logger) error {
	if s.EncryptionKeys.IsZero() {
		if err := f.addKey(); err != nil {
			return err
		}
	}
	keys, err := f.keyring(s.EncryptionKeys)
	if err != nil {
		return err
	}
	state, err := f.readStores()
	if err != nil {
		return err
	}
	if _, err := state.begin(s.stores(), nil); err != nil {
		return err
	}
	for _, spec := range specs(s) {
		if !exists(f.join(spec.Name + ".db")) {
			continue // the platform was never started with this service
		}
		if err := reseal(ctx, spec, f, keys, log.With("service", spec.Name)); err != nil {
			return err
		}
	}
	if s.EncryptionKeys.IsZero() {
		return f.dropKeys()
	}
	return nil
}

func reseal(ctx context.Context, spec service.Spec, f folder, keys *secret.Keyring, log *slog.Logger) error {
	engine, err := sqlitestore.Open(ctx, sqlitestore.Options{Path: f.join(spec.Name + ".db"), Log: log})
	if err != nil {
		return fmt.Errorf("%s: %w", spec.Name, err)
	}
	store, err := spec.Open(ctx, engine, clock.System, keys)
	if err != nil {
		return err
	}
	err = service.Deps{Store: store, Keys: keys, Log: log, Metrics: telemetry.NewRegistry()}.Reseal(ctx)
	if err = errors.Join(err, store.Close()); err != nil {
		return fmt.Errorf("%s: %w", spec.Name, err)
	}
	return nil
}

// addKey puts a new key before the folder's own. If there are several keys, a rotation was interrupted, and its new key
// is the first already.
func (f folder) addKey() error {
	entries, err := f.ownKeys()
	if err != nil || len(entries) > 1 {
		return err
	}
	return f.replace(keyFile, secret.NewKey().Reveal()+","+entries[0])
}

// dropKeys removes all of the folder's own keys but the first.
func (f folder) dropKeys() error {
	entries, err := f.ownKeys()
	if err != nil {
		return err
	}
	return f.replace(keyFile, entries[0])
}

func (f folder) ownKeys() ([]string, error) {
	text, err := os.ReadFile(f.join(keyFile))
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	return strings.Split(strings.TrimSpace(string(text)), ","), nil
}
