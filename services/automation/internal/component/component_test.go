package component

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Update recognizes a draft that it has checked before its transaction, also if that set defaults.
func TestACompleteDraftIsTheCheckedOne(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{"", "null", "{}"} {
		draft := Draft{Profile: Profile{Code: "c", Name: "C", Type: "page", Schema: json.RawMessage(schema)}}
		checked := draft
		require.NoError(t, checked.check())
		require.Equal(t, enabled, checked.Status)
		draft.complete()
		require.True(t, draft.same(&checked.Profile))
		require.Equal(t, checked.Status, draft.Status)
	}
}
