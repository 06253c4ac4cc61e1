package basic

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
)

// Golden checks that a file, usually in testdata, has this content. IDP_TEST_UPDATE=1 writes it.
func Golden(t testing.TB, file string, got []byte) {
	t.Helper()
	if os.Getenv("IDP_TEST_UPDATE") == "1" {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "%s is not up to date; `make generate` updates it", file)
}

// TimeForm is the form of times in records and events.
var TimeForm = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)

// Since replaces the times in a text by the time since start, so that the text is the same in every run.
func Since(t testing.TB, start clock.Time, text []byte) []byte {
	t.Helper()
	return TimeForm.ReplaceAllFunc(text, func(b []byte) []byte {
		moment, err := clock.Parse(string(b))
		require.NoError(t, err)
		return []byte("start + " + moment.Sub(start).String())
	})
}
