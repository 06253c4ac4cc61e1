package service

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	spec := tiny(nil)
	for _, args := range [][]string{{"version"}, {"version", "--formats"}} {
		var out bytes.Buffer
		// It needs no settings, not even those without which the service does not start.
		err := startTo(t.Context(), "tiny", args, nil, nil, nil, func() Spec { return spec }, &out, io.Discard)
		require.NoError(t, err)
		var told struct {
			Service string
			Build   struct{ Go string }
			Formats *struct {
				Collections []struct {
					Name     string
					Revision int
					Indexes  []string
				}
			}
		}
		require.NoError(t, json.Unmarshal(out.Bytes(), &told))
		require.Equal(t, spec.Name, told.Service)
		require.NotEmpty(t, told.Build.Go)
		if len(args) == 1 {
			require.Nil(t, told.Formats)
			continue
		}
		names := map[string]bool{}
		for _, c := range told.Formats.Collections {
			names[c.Name] = true
			require.NotNil(t, c.Indexes, c.Name)
		}
		require.True(t, names["notes"], "%v", names)
	}
	err := startTo(t.Context(), "tiny", []string{"version", "--format"}, nil, nil, nil, func() Spec { return spec },
		io.Discard, io.Discard)
	require.ErrorContains(t, err, "--formats")
}
