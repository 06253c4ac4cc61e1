package transfer_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	"github.com/idplatform/idplatform/cli/internal/transfer"
)

// held notes the most memory that is in use at some moments.
type held struct {
	mu    sync.Mutex
	most  uint64
	count int
}

func (h *held) look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	h.most = max(h.most, stats.HeapAlloc)
}

// everything is a platform that has everyone and everything, and takes what comes. It looks at the memory now and then.
func everything(h *held, every int) http.Handler {
	requests := 0
	answer := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/users/import", func(w http.ResponseWriter, r *http.Request) {
		lines := 0
		for in := bufio.NewScanner(r.Body); in.Scan(); {
			if lines++; lines%(1000*every) == 0 {
				h.look()
			}
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		out := bufio.NewWriter(w)
		for n := range lines {
			fmt.Fprintf(out, "{\"line\":%d,\"status\":\"created\"}\n", n+1)
		}
		_ = out.Flush()
	})
	mux.HandleFunc("POST /v1/batch/users-exist", func(w http.ResponseWriter, r *http.Request) {
		var question struct{ Items []json.RawMessage }
		_ = json.NewDecoder(r.Body).Decode(&question)
		id, items := "7", make([]map[string]any, len(question.Items))
		for n := range items {
			items[n] = map[string]any{"exists": true, "user_id": id}
		}
		answer(w, map[string]any{"items": items})
	})
	mux.HandleFunc("POST /v1/batch/tree-nodes-check", func(w http.ResponseWriter, r *http.Request) {
		var question struct{ Ids []string }
		_ = json.NewDecoder(r.Body).Decode(&question)
		nodes := map[string]any{}
		for _, n := range question.Ids {
			nodes[n] = map[string]any{"id": "8"}
		}
		answer(w, nodes)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if requests++; requests%every == 0 {
			h.look()
		}
		answer(w, map[string]any{"version": 1})
	})
	return mux
}

// TestMemory checks that no import holds more of its file than a batch, by files that are much longer. It runs alone,
// because it looks at the memory of the whole process. IDP_TEST_IMPORT_BYTES=1073741824 makes the files that long.
func TestMemory(t *testing.T) {
	size, limit := 16<<20, uint64(8<<20)
	if text := os.Getenv("IDP_TEST_IMPORT_BYTES"); text != "" {
		var err error
		size, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	long := strings.Repeat("x", 200)
	lines := map[string]struct{ header, line string }{
		"users":   {"username,display_name,free_ext_props.note", "user%d,\"李, 伟\",\"" + long + "\"\n"},
		"members": {"node,user,title", "company/rd,user%d," + long + "\n"},
	}
	for _, kind := range transfer.Kinds() {
		c, has := lines[kind.Noun]
		if !has {
			continue
		}
		path := filepath.Join(t.TempDir(), "file.csv")
		file, err := os.Create(path)
		require.NoError(t, err)
		out := bufio.NewWriter(file)
		n, written := 0, 0
		for _, err = fmt.Fprintln(out, c.header); err == nil && written < size; n++ {
			var more int
			more, err = fmt.Fprintf(out, c.line, n)
			written += more
		}
		require.NoError(t, err)
		require.NoError(t, out.Flush())
		require.NoError(t, file.Close())

		h := &held{}
		h.look()
		before := h.most
		platform := httptest.NewServer(everything(h, max(1, n/1000/8)))
		var report bytes.Buffer
		s := session.New(session.Terminal{
			Out: &report, Err: io.Discard, Getenv: func(name string) string {
				return map[string]string{"IDPCLI_URL": platform.URL, "IDPCLI_TOKEN": "t"}[name]
			},
		}, session.Options{Format: "json", Wait: time.Second})
		err = kind.Import(t.Context(), s, transfer.ImportOptions{File: path})
		platform.Close()
		require.NoError(t, err)
		value, err := output.Parse(report.Bytes())
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(n), value.(output.Object).Text("created"))
		t.Logf("%s: %d lines, %d bytes, at most %d held (%d looks)", kind.Noun, n, written, h.most-before, h.count)
		require.Greater(t, h.count, 3)
		require.Less(t, h.most-before, limit, kind.Noun)
		require.NoError(t, os.Remove(path))
	}
}
