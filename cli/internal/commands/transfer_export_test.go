package commands

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExportIsWhole checks that an export which breaks off leaves no file, and the old one as it was.
func TestExportIsWhole(t *testing.T) {
	t.Parallel()
	p := newPlay(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = io.WriteString(w, "{\"username\":\"x\"}\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	path := writeFile(t, "people.csv", "old")
	got := p.run("users", "export", path)
	assert.Equal(t, 7, got.code, got.err)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "old", string(content))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

// TestExportForms checks the forms and the columns of an export.
func TestExportForms(t *testing.T) {
	t.Parallel()
	p := newPlay(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = io.WriteString(w, `{"id":"7","username":"x","display_name":"=a\r\nb","email":"","version":3,`+
			`"locked":false,"email_verified":true,"free_ext_props":{"z":1,"a":"<&"},"sys_ext_props":{}}`+"\n")
	})
	got := p.run("users", "export", "--status", "1", "--search-type", "generic", "--fields",
		"id,username,display_name,free_ext_props")
	require.Equal(t, 0, got.code, got.err)
	assert.Equal(t, "id,username,display_name,free_ext_props\n7,x,\"=a\r\nb\",\"{\"\"z\"\":1,\"\"a\"\":\"\"<&\"\"}\"\n",
		got.out)
	assert.Contains(t, got.err, "1 cells have CR LF")
	assert.Equal(t, "/v1/users/export?format=ndjson&search_type=generic&status=1", p.last().target)
	got = p.run("users", "export", "-o", "jsonl")
	assert.Equal(t, `{"username":"x","display_name":"=a\r\nb","email_verified":true,`+
		`"free_ext_props":{"z":1,"a":"<&"}}`+"\n", got.out)
	path := filepath.Join(t.TempDir(), "x.ndjson")
	require.Equal(t, 0, p.run("users", "export", path).code)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, got.out, string(content))
	assert.Equal(t, 2, p.run("users", "export", "a", "b").code)
	assert.Equal(t, 2, p.run("users", "export", "--dry-run").code)
}
