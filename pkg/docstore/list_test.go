package docstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// FuzzParseSort: an accepted sort names sortable fields, each once, and keeps its meaning.
func FuzzParseSort(f *testing.F) {
	for _, seed := range []string{
		"", "name", "name[desc]", "name[asc],time_created", "name[up]", "name,name", ",", " name , time_created[desc]",
		"name[desc", "Name",
	} {
		f.Add(seed)
	}
	sortable := []string{"time_created", "name"}
	f.Fuzz(func(t *testing.T, text string) {
		order, err := parseSort(text, sortable)
		if err != nil {
			require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
			refusal, _ := errors.AsType[*apperr.Error](err)
			require.Equal(t, "page_sort", refusal.Faults[0].Location)
			return
		}
		require.NotEmpty(t, order)
		require.LessOrEqual(t, len(order), len(sortable))
		var again []string
		for _, o := range order {
			require.Contains(t, sortable, o.Index)
			again = append(again, o.Index+map[bool]string{true: "[desc]", false: "[asc]"}[o.Desc])
		}
		reread, err := parseSort(strings.Join(again, ","), sortable)
		require.NoError(t, err)
		require.Equal(t, order, reread)
	})
}
