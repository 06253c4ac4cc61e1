package transfer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFailuresGoOn checks that failures which were written, but not yet noted in the progress, are not there twice.
func TestFailuresGoOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.failed.csv")
	s := &source{format: CSV, header: []string{"user"}}
	first := &record{cells: []string{"x"}}
	f, err := openFailures(path, s, 0)
	require.NoError(t, err)
	require.NoError(t, f.add(first, "one"))
	noted := f.size
	require.NoError(t, f.add(first, "two"))
	require.NoError(t, f.close())

	f, err = openFailures(path, s, noted)
	require.NoError(t, err)
	require.NoError(t, f.add(first, "two again"))
	require.NoError(t, f.close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "reason,user\none,x\ntwo again,x\n", string(content))

	_, err = openFailures(path, s, 1000)
	require.ErrorContains(t, err, "it has become shorter")
	_, err = openFailures(path+"x", s, noted)
	require.Error(t, err, "what has failed before must not be lost silently")
}

func TestMeter(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	began := time.Now()
	m := &meter{out: &out, terminal: true, things: "users", total: 1000, began: began}
	m.begin.Store(100)
	m.done.Store(300)
	line := m.line(began.Add(2 * time.Second))
	assert.Equal(t, "300 of 1000 users (30 %), 100 a second, 7s left", line)
	m.show(line)
	m.note("a note")
	m.show("short")
	m.show("x")
	m.clear()
	blank := strings.Repeat(" ", len(line))
	assert.Equal(t, "\r"+line+"\r"+blank+"\ra note\n\rshort\rx    \r     \r", out.String())

	out.Reset()
	m = &meter{out: &out, things: "users", began: began}
	m.done.Store(7)
	m.show(m.line(began.Add(time.Second)))
	m.clear()
	assert.Equal(t, "7 users, 7 a second\n", out.String())
}

func TestFailedPath(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"people.csv": "people.failed.csv", "a.b/people": "a.b/people.failed.csv", "-": "import.failed.csv",
		"people.failed.csv": "people.failed.failed.csv",
	} {
		assert.Equal(t, want, failedPath(file, CSV))
	}
}

// TestPlaces checks that a reader which begins at the end of any record gives the same records, at the same lines.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"a.csv": "\ufeffusername,\"display\n_name\"\r\n\r\na,\"x\n\ny\"\r\n\n\nb,\nfew\n\"c\",\"\"\"\"\n\nd,e",
		"a.jsonl": "\ufeff\n{\"username\":\"a\"}\r\n\n\n[]\n{\"username\":\"b\",\"username\":\"c\"}\n" +
			"{\"username\":\"d\"}",
	} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		l, err := newLayout(users().columns, []string{"display\n_name=display_name"}, nil)
		require.NoError(t, err)
		s, err := openSource(path, "", nil, l)
		require.NoError(t, err)
		read := func(p place) (all []record) {
			s.records = 0
			line, err := s.survey(p.Offset, nil)
			require.NoError(t, err)
			records := s.from(p, line)
			for r, err := records.next(); err == nil; r, err = records.next() {
				all = append(all, *r)
			}
			return all
		}
		all := read(s.first())
		require.Greater(t, len(all), 3)
		require.Equal(t, int64(len(all)), s.records)
		for n, r := range all {
			require.Equal(t, all[n+1:], append([]record{}, read(r.end)...), "%s after record %d", name, n)
		}
		require.NoError(t, s.close())
	}
}
