// Package mongotest provides tests with servers that speak MongoDB's protocol. It is a module of its own, so that its
// dependencies are not part of the product.
package mongotest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/mongodb"
)

// Environment variables.
const (
	// EnvURI names a running MongoDB to use instead of a container.
	EnvURI = "IDP_TEST_MONGO_URI"
	// EnvRequired makes tests that need MongoDB fail, instead of being skipped, if there is none.
	EnvRequired = "IDP_TEST_MONGO_REQUIRED"
)

// Image is the version of MongoDB that tests run on.
const Image = "mongo:8"

// startTimeout bounds the start of a container, with the download of the image.
const startTimeout = 5 * time.Minute

// MongoDB returns the URI of a MongoDB replica set: that of IDP_TEST_MONGO_URI, or a container that stops at the end of
// the test. Without either, the test is skipped with the reason, or fails if IDP_TEST_MONGO_REQUIRED is 1.
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

// Start runs MongoDB in a container, as a replica set of one member, until stop is called. The server refuses queries
// that no index serves. Start fails if no Docker engine answers.
func Start(ctx context.Context) (uri string, stop func() error, err error) {
	if err := dockerAnswers(ctx); err != nil {
		return "", nil, err
	}
	container, err := mongodb.Run(ctx, Image, mongodb.WithReplicaSet("rs0"),
		testcontainers.WithCmdArgs("--setParameter", "notablescan=1"))
	stop = func() error { return testcontainers.TerminateContainer(container) }
	if err != nil {
		_ = stop() // the first error is returned
		return "", nil, fmt.Errorf("start %s: %w", Image, err)
	}
	address, err := container.PortEndpoint(ctx, "27017/tcp", "mongodb")
	if err != nil {
		_ = stop()
		return "", nil, fmt.Errorf("address of %s: %w", Image, err)
	}
	// The replica set knows its member by an address that only the containers' network has, so the driver must not ask
	// for it.
	return address + "/?directConnection=true", stop, nil
}

func dockerAnswers(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // testcontainers panics if it finds no socket
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

// silent drops what testcontainers logs.
type silent struct{}

func (silent) Printf(string, ...any) {}
