package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/telemetry"
)

// check looks for damage in the service's database. With rotate it first seals everything again under the first
// encryption key. MongoDB may be in use meanwhile; a SQLite file can be used by one process at a time only.
func check(ctx context.Context, c Config, spec Spec, rotate bool, out io.Writer) error {
	log := c.Log.Logger(out, spec.Name)
	keys, err := secret.ParseKeyring(c.EncryptionKeys)
	if err != nil {
		return err
	}
	if c.Mongo.URI.IsZero() { // holding the listener keeps the service from starting meanwhile
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
		if err != nil {
			return fmt.Errorf("check: stop the service first: %w", err)
		}
		defer l.Close()
	}
	store, err := c.openStore(ctx, spec, keys, log)
	if err != nil {
		return err
	}
	if rotate {
		err = Deps{Store: store, Keys: keys, Log: log, Metrics: telemetry.NewRegistry()}.Reseal(ctx)
	}
	err = errors.Join(err, store.Check(ctx), store.Close())
	if err == nil {
		log.InfoContext(ctx, "the database is in order", "database", databaseOf(c))
	}
	return err
}
