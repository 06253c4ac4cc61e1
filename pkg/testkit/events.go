package testkit

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

// GoldenEvents compares a service's events with testdata/events.json.golden: they are a format that others rely on.
// They must be of exactly these types, such as user.created; those of one noun must carry records with the same
// members. Times are written as the time since start.
func GoldenEvents(t testing.TB, start clock.Time, events []stream.Event, types ...string) {
	t.Helper()
	told := map[string]bool{}
	whole := map[string][]string{} // the members of a record, by noun
	var list []map[string]any
	for _, e := range events {
		kind := strings.TrimPrefix(e.Type, "idp.")
		noun, _, _ := strings.Cut(kind, ".")
		told[kind] = true
		require.NotEmpty(t, e.ID)
		if e.Actor != "system" { // the platform's own work has no request
			require.NotEmpty(t, e.RequestID)
		}
		var data struct{ Record map[string]json.RawMessage }
		require.NoError(t, json.Unmarshal(e.Data, &data))
		members := slices.Sorted(maps.Keys(data.Record))
		if whole[noun] == nil {
			whole[noun] = members
		}
		require.Equal(t, whole[noun], members, "%s carries the whole record", e.Type)
		list = append(list, map[string]any{
			"type": e.Type, "source": e.Source, "subject": e.Subject, "time": e.Time, "tenantid": e.Tenant,
			"actor":         e.Actor,
			"payloadorigin": e.PayloadOrigin, "sequence": strconv.FormatInt(e.Sequence, 10), "data": e.Data,
		})
	}
	require.ElementsMatch(t, types, slices.Collect(maps.Keys(told)))
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(list))
	basic.Golden(t, "testdata/events.json.golden", basic.Since(t, start, text.Bytes()))
}
