package condition

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFromJSON(t *testing.T) {
	t.Parallel()
	object, err := FromJSON([]byte(`{"i": 9007199254740993, "min": -9223372036854775808, "max": 9223372036854775807,
		"more": 9223372036854775808, "zero": -0, "f": 1.0, "e": 1e3, "l": [1, [2.5, {"x": 3}]],
		"t": "2026-01-31T08:00:00.000Z", "b": true, "n": null, "s": "李", "huge": -1e999} `))
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"i": int64(9007199254740993), "min": int64(math.MinInt64), "max": int64(math.MaxInt64),
		"more": float64(1 << 63), "zero": int64(0), "f": 1.0, "e": 1000.0,
		"l": []any{int64(1), []any{2.5, map[string]any{"x": int64(3)}}},
		"t": "2026-01-31T08:00:00.000Z", "b": true, "n": nil, "s": "李", "huge": outOfRange,
	}, object)
	for _, raw := range []string{``, `null`, `[]`, `"x"`, `1`, `{`, `{} {}`, `{}x`, `{"a": 01}`} {
		object, err := FromJSON([]byte(raw))
		require.Error(t, err, raw)
		require.Nil(t, object)
	}
}
