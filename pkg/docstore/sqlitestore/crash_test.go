package sqlitestore_test

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/request"
)

// crashFile tells a copy of the test program that it is the process to be killed.
const crashFile = "SQLITESTORE_TEST_CRASH_FILE"

// TestCrash kills a process with eight writers, several times on one file. Everything that it had acknowledged is
// there, and nothing is there in part.
func TestCrash(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "crash.db")
	acknowledged := map[string]bool{}
	for _, acks := range []int{1, 100, 500, 1000} {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestCrashingProcess$")
		child.Env = append(os.Environ(), crashFile+"="+path)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		for range acks {
			require.True(t, lines.Scan(), "the child process ended by itself")
			acknowledged[lines.Text()] = true
		}
		require.NoError(t, child.Process.Kill())
		for lines.Scan() { // acknowledged before the kill and read after it; a short write to a pipe is never cut
			acknowledged[lines.Text()] = true
		}
		require.NoError(t, lines.Err())
		require.Error(t, child.Wait())

		f := openAt(t, path, notes)
		ctx := tenant(t)
		require.NoError(t, f.Check(ctx), "list entries, keys and counters match the documents")
		n := f.count(t)
		require.GreaterOrEqual(t, n, int64(len(acknowledged)))
		backlog, err := f.Backlog(ctx)
		require.NoError(t, err)
		require.Equal(t, n, backlog, "each document has its event")
		var ids []string
		for id := range acknowledged {
			ids = append(ids, id)
		}
		docs, err := notes.FindMany(ctx, f.Store, ids)
		require.NoError(t, err)
		require.Len(t, docs, len(acknowledged), "what was acknowledged is there")
		require.NoError(t, f.Close())
	}
}

// TestCrashingProcess is the process that is killed. Run alone it does nothing.
func TestCrashingProcess(t *testing.T) {
	path := os.Getenv(crashFile)
	if path == "" {
		t.Skip("runs as a child of TestCrash")
	}
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: path, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	store, err := docstore.Open(t.Context(), engine, clock.System, notes.Def())
	require.NoError(t, err)
	ctx := request.With(t.Context(), request.Info{Tenant: "t1"})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				id, err := store.NewID(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = docstore.Write(ctx, store, func(tx *docstore.Tx) (int, error) {
					n := &note{Meta: docstore.Meta{ID: id}, Title: "t", Words: []string{"all", id}, Keys: []string{id}}
					if _, err := notes.Insert(ctx, tx, n); err != nil {
						return 0, err
					}
					return 0, tx.Append(ctx, docstore.Message{ID: id, Subject: "s", Record: id})
				})
				if err != nil {
					t.Error(err)
					return
				}
				fmt.Println(id)
			}
		})
	}
	wg.Wait()
}
