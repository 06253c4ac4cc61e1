package mongotest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore/docstoretest"
	"github.com/idplatform/idplatform/pkg/docstore/mongostore/mongotest/replicaset"
)

// simulated starts a simulated replica set. It ends with the test.
func simulated(t *testing.T, o replicaset.Options) *replicaset.Server {
	t.Helper()
	s, err := replicaset.Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestSimulated(t *testing.T) {
	t.Parallel()
	dbs := newDatabases(simulated(t, replicaset.Options{}).URI(), false)
	t.Run("suite", func(t *testing.T) {
		docstoretest.Run(t, dbs.open, docstoretest.Options{Reopen: dbs.reopen})
	})
	t.Run("engine", func(t *testing.T) { runEngineCases(t, dbs) })
}
