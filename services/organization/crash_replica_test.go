package organization_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/organization"
)

// crashDatabase tells a copy of the test program that it is the replica to be killed.
const crashDatabase = "ORGANIZATION_TEST_CRASH_DATABASE"

const holds = "the change is written, not committed"

// frozen is an engine whose transactions that add nodes stop for ever before they commit, once it is on.
type frozen struct {
	docstore.Engine
	on atomic.Bool
}

func (f *frozen) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	return f.Engine.Write(ctx, func(tx docstore.EngineTx) error {
		watched := &nodeWatch{EngineTx: tx}
		if err := fn(watched); err != nil || !watched.added || !f.on.Load() {
			return err
		}
		if err := tx.Flush(ctx); err != nil {
			return err
		}
		fmt.Println(holds)
		select {}
	})
}

// nodeWatch notes whether a transaction adds nodes.
type nodeWatch struct {
	docstore.EngineTx
	added bool
}

func (w *nodeWatch) Insert(ctx context.Context, def *docstore.Def, e *docstore.Entry) error {
	w.added = w.added || def.Name == "tree_nodes"
	return w.EngineTx.Insert(ctx, def, e)
}

// A replica that is killed in the middle of a change stops nobody: others change the same tree, and the same request
// with the same Idempotency-Key is done by another replica within 10 s.
func TestReplicaKilledInAChange(t *testing.T) {
	t.Parallel()
	if os.Getenv("IDP_TEST_MONGO_URI") == "" {
		t.Skip("an SQLite file has one process")
	}
	database := basic.NewDatabase()
	s := testkit.Start(t, organization.Spec(), testkit.Options{Database: database})
	(&rules{}).answer(t, s.Deps.Bus)
	c := in(s, "acme")
	addObject(t, c, "company")

	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestFreezingReplica$")
	cmd.Env = append(os.Environ(), crashDatabase+"="+database, "TMPDIR="+t.TempDir())
	dying := startChild(t, cmd)
	dying.until(t, holds)
	dying.kill(t)

	begun := time.Now()
	addNode(t, c, "company", "", "of the survivor")
	t.Log("the survivor's change took", time.Since(begun))

	again := func() *testkit.Answer { return keyed(c) }
	again().Problem(http.StatusConflict, "request_in_progress")
	s.Clock.Advance(10 * time.Second)
	wait.Until(t, func() bool { return again().Status == http.StatusOK })
	nodes := c.Get("/v1/tree-nodes?object_code=company&name=survivor").Object()["items"].([]any)
	require.Len(t, nodes, 1)
	require.Len(t, c.Get("/v1/tree-nodes?object_code=company&name=twice").Object()["items"], 1, "once")
	verify(t, s)
}

// keyed is the change that the replica dies in.
func keyed(c *testkit.Client) *testkit.Answer {
	return c.With("Idempotency-Key", "the dead one's").Post("/v1/tree-nodes", object{"object_code": "company",
		"parent_id": "", "name": "not twice"})
}

// TestFreezingReplica is the replica that is killed. Run alone it does nothing.
func TestFreezingReplica(t *testing.T) {
	database := os.Getenv(crashDatabase)
	if database == "" {
		t.Skip("runs as a child of TestReplicaKilledInAChange")
	}
	engine := &frozen{}
	s := testkit.Start(t, organization.Spec(), testkit.Options{Database: database,
		Engine: func(e docstore.Engine) docstore.Engine { engine.Engine = e; return engine }})
	c := in(s, "acme")
	addNode(t, c, "company", "", "before")
	engine.on.Store(true)
	keyed(c)
	require.Fail(t, "it was not killed")
}
