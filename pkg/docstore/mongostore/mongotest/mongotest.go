// Package mongotest gives tests servers that speak MongoDB's protocol. It is a module of its own, so that what it needs for that is no
// part of the product.
package mongotest

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/FerretDB/FerretDB/ferretdb"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/mongodb"
)

// Environment variables.
const (
	// EnvURI names a running MongoDB to be used instead of a container.
	EnvURI = "IDP_TEST_MONGO_URI"
	// EnvRequired makes tests that need MongoDB fail, not skip, where there is none.
	EnvRequired = "IDP_TEST_MONGO_REQUIRED"
)

// Image is the MongoDB that tests run on.
const Image = "mongo:8"

// startTimeout covers the image's download.
const startTimeout = 5 * time.Minute

// FerretDB starts FerretDB 1.24 on SQLite in this process and returns its URI. It ends with the test. It is a standalone server.
func FerretDB(t testing.TB) string {
	t.Helper()
	dir := url.URL{Scheme: "file", Path: t.TempDir() + "/"}
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Logger:    slog.New(slog.DiscardHandler),
		Handler:   "sqlite",
		SQLiteURL: dir.String(),
	})
	if err != nil {
		t.Fatalf("start FerretDB: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("FerretDB: %v", err)
		}
	})
	return server.MongoDBURI()
}

// MongoDB returns the URI of a MongoDB replica set: that of IDP_TEST_MONGO_URI, or a container that ends with the test. Without
// either the test is skipped, with the reason, or fails if IDP_TEST_MONGO_REQUIRED is 1.
func MongoDB(t testing.TB) string {
	t.Helper()
	if uri := os.Getenv(EnvURI); uri != "" {
		return uri
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	uri, stop, err := Start(ctx)
	if err != nil {
		if os.Getenv(EnvRequired) == "1" {
			t.Fatalf("%s=1, but there is no MongoDB: %v", EnvRequired, err)
		}
		t.Skipf("no MongoDB: %v", err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stop MongoDB: %v", err)
		}
	})
	return uri
}

// Start runs MongoDB as a replica set of one in a container, until stop. The server refuses queries that no index serves. It fails where
// no Docker engine answers.
func Start(ctx context.Context) (uri string, stop func() error, err error) {
	if err := dockerAnswers(ctx); err != nil {
		return "", nil, err
	}
	// Where a query finds no index, the server refuses it.
	container, err := mongodb.Run(ctx, Image, mongodb.WithReplicaSet("rs0"), testcontainers.WithCmdArgs("--setParameter", "notablescan=1"))
	stop = func() error { return testcontainers.TerminateContainer(container) }
	if err != nil {
		_ = stop() // the first error counts
		return "", nil, fmt.Errorf("start %s: %w", Image, err)
	}
	address, err := container.PortEndpoint(ctx, "27017/tcp", "mongodb")
	if err != nil {
		_ = stop()
		return "", nil, fmt.Errorf("address of %s: %w", Image, err)
	}
	// The set knows its member by an address that only the containers' network has, so the driver must not ask for it.
	return address + "/?directConnection=true", stop, nil
}

func dockerAnswers(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // testcontainers panics where it finds no socket
			err = fmt.Errorf("no Docker engine answers: %v", p)
		}
	}()
	provider, err := testcontainers.NewDockerProvider(testcontainers.WithLogger(silent{}))
	if err != nil {
		return fmt.Errorf("no Docker engine answers: %w", err)
	}
	defer func() { _ = provider.Close() }()
	if err := provider.Health(ctx); err != nil {
		return fmt.Errorf("no Docker engine answers: %w", err)
	}
	return nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}
