package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/idplatform/idplatform/pkg/docstore/mongostore/mongotest/replicaset"
)

// What docker-compose.yml says to mongod is understood, and nothing else.
func TestArguments(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{
		"--replSet", "rs0", "--bind_ip_all", "--setParameter", "transactionLifetimeLimitSeconds=30",
	})
	require.NoError(t, err)
	require.Equal(t, replicaset.Options{
		Name: "rs0", Listen: ":27017", Address: "mongo:27017", Lifetime: 30 * time.Second,
	}, o)
	_, err = parse([]string{"--setParameter", "notablescan=1"})
	require.Error(t, err)
	_, err = parse([]string{"--auth"})
	require.Error(t, err)
}

// Clients that know only one address of the set learn the others' from it, so a set must say where it is found.
func TestNameAndAddress(t *testing.T) {
	t.Parallel()
	set, err := replicaset.Start(replicaset.Options{Name: "rs0", Listen: "127.0.0.1:0", Address: "localhost:1"})
	require.NoError(t, err)
	defer func() { require.NoError(t, set.Close()) }()
	require.Equal(t, "mongodb://localhost:1/?heartbeatFrequencyMS=500&replicaSet=rs0", set.URI())
}

func TestHealthy(t *testing.T) {
	t.Parallel()
	set, err := replicaset.Start(replicaset.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, set.Close()) }()
	parsed := options.Client().ApplyURI(set.URI())
	require.NoError(t, healthy(t.Context(), parsed.Hosts[0]))
}
