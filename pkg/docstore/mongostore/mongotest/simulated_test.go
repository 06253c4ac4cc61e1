package mongotest

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/docstoretest"
	"github.com/idplatform/idplatform/pkg/docstore/mongostore"
	"github.com/idplatform/idplatform/pkg/docstore/mongostore/mongotest/replicaset"
	"github.com/idplatform/idplatform/pkg/testkit/rounds"
)

// simulated starts a simulated replica set, which stops at the end of the test.
func simulated(t *testing.T, o replicaset.Options) *replicaset.Server {
	t.Helper()
	s, err := replicaset.Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestSimulated(t *testing.T) {
	t.Parallel()
	dbs := newDatabases(simulated(t, replicaset.Options{}).URI())
	t.Run("suite", func(t *testing.T) {
		docstoretest.Run(t, dbs.open, docstoretest.Options{SkipPhantoms: phantoms, Reopen: dbs.reopen})
	})
	t.Run("engine", func(t *testing.T) { runEngineCases(t, dbs) })
}

// TestSimulatedOlder: MongoDB 7.0 has no bulkWrite; writes go to each collection separately.
func TestSimulatedOlder(t *testing.T) {
	t.Parallel()
	dbs := newDatabases(simulated(t, replicaset.Options{Wire: 21}).URI())
	docstoretest.Run(t, dbs.open, docstoretest.Options{SkipPhantoms: phantoms, Reopen: dbs.reopen})
}

// Environment variables: how many seeds TestSimulatedBySeed runs, and the first of them.
const (
	envSeeds = "IDP_TEST_MONGO_SEEDS"
	envSeed  = "IDP_TEST_MONGO_SEED"
)

// TestSimulatedBySeed is the suite with faults, in make verify. It shows its progress on standard error if it runs many
// seeds.
func TestSimulatedBySeed(t *testing.T) {
	t.Parallel()
	first, seeds := number(t, envSeed, 1), number(t, envSeeds, rounds.Of(0, 2))
	failed := 0
	began := time.Now()
	for seed := first; seed < first+seeds; seed++ {
		// Seeds run one after the other. In parallel, none would end before all have begun.
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					failed++
				}
				if n := seed - first + 1; n%10 == 0 {
					fmt.Fprintf(os.Stderr, "%d of %d seeds, %d failed, %s\n", n, seeds, failed,
						time.Since(began).Round(time.Second))
				}
			})
			docstoretest.Run(t, func(t *testing.T) docstore.Engine {
				// Each test has a replica set of its own, so that only its commands are in the queue.
				set := simulated(t, replicaset.Options{Members: 3, Schedule: &replicaset.Schedule{
					Seed: uint64(seed), Delay: time.Millisecond, Faults: replicaset.AllFaults,
				}})
				return openPatiently(t, set.URI())
			}, docstoretest.Options{SkipPhantoms: phantoms,
				Reopen: func(t *testing.T, closed docstore.Engine) docstore.Engine {
					return openPatiently(t, closed.(*patient).uri)
				}})
		})
	}
}

func number(t *testing.T, env string, otherwise int) int {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, env)
	return n
}

// TestDependence: a transaction runs again if another has changed what it read, or counted by the same filter. Others
// may change what it read through Peek, and what it counted.
func TestDependence(t *testing.T) {
	t.Parallel()
	dbs := newDatabases(simulated(t, replicaset.Options{}).URI())
	ctx, tagged := system(), docstore.Eq("tags", docstore.Text("x"))
	change := func(tx *docstore.Tx) error {
		v, err := first.Load(ctx, tx, "a")
		if err != nil {
			return err
		}
		v.Text += "!"
		_, err = first.Replace(ctx, tx, v)
		return err
	}
	count := func(f docstore.Filter) func(*docstore.Tx) error {
		return func(tx *docstore.Tx) error { _, err := first.Count(ctx, tx, f); return err }
	}
	countAndAdd := func(tx *docstore.Tx) error {
		if err := count(tagged)(tx); err != nil {
			return err
		}
		_, err := first.Insert(ctx, tx, newNote("counted", "new"))
		return err
	}
	find := func(tx *docstore.Tx) error { _, err := first.Find(ctx, tx, "a"); return err }
	peek := func(tx *docstore.Tx) error { _, err := first.Find(ctx, tx.Peek(), "a"); return err }
	for name, c := range map[string]struct {
		read      func(*docstore.Tx) error
		meanwhile func(*docstore.Tx) error
		runs      int
	}{
		"what was read changes":                        {find, change, 2},
		"what was read through Peek changes":           {peek, change, 1},
		"what was counted changes":                     {count(tagged), change, 1},
		"another transaction counts by the filter":     {count(tagged), countAndAdd, 2},
		"another transaction counts by another filter": {count(docstore.Filter{}), countAndAdd, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := openStore(t, dbs.open(t), first)
			insert(t, store, first, newNote("a", "old"))
			runs := 0
			err := docstore.Do(ctx, store, func(tx *docstore.Tx) error {
				if err := c.read(tx); err != nil {
					return err
				}
				if runs++; runs == 1 {
					other := make(chan error, 1) // a transaction cannot run inside another
					go func() { other <- docstore.Do(ctx, store, c.meanwhile) }()
					if err := <-other; err != nil {
						return err
					}
				}
				_, err := first.Insert(ctx, tx, newNote("b", "new"))
				return err
			})
			require.NoError(t, err)
			require.Equal(t, c.runs, runs)
		})
	}
}

// TestProbeIsRepeated: a transaction's transient error must not keep the engine from starting.
func TestProbeIsRepeated(t *testing.T) {
	t.Parallel()
	set := simulated(t, replicaset.Options{})
	set.Inject(replicaset.Conflict, 3)
	o := mongostore.Options{URI: set.URI(), Database: "db", Log: slog.New(slog.DiscardHandler)}
	engine, err := mongostore.Open(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, engine.Close())
}
