package clock_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-01-31T09:30:00Z":             "2026-01-31T09:30:00.000Z",
		"2026-01-31T09:30:00.5Z":           "2026-01-31T09:30:00.500Z",
		"2026-01-31T09:30:00.123999999Z":   "2026-01-31T09:30:00.123Z",
		"2026-01-31T09:30:00.000+08:00":    "2026-01-31T01:30:00.000Z",
		"2026-01-31T23:30:00-01:00":        "2026-02-01T00:30:00.000Z",
		"2026-01-31t09:30:00z":             "2026-01-31T09:30:00.000Z", // RFC 3339 §5.6
		"2026-01-31":                       "2026-01-31T00:00:00.000Z",
		"1969-12-31T23:59:59.999999999Z":   "1969-12-31T23:59:59.999Z",
		"0001-01-01T00:00:00.001Z":         "0001-01-01T00:00:00.001Z",
		"9999-12-31T23:59:59.999999+00:00": "9999-12-31T23:59:59.999Z",
		"0001-01-01T00:00:00Z":             "", // the zero Time: not set
	} {
		got, err := clock.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got.String(), text)
	}
	for _, text := range []string{
		"", "now", "2026", "2026-13-01", "2026-01-31T09:30:00", "2026-01-31 09:30:00Z", "1769851800",
		"2026-01-31T24:00:00Z", "２０２６-01-31", "2026-01-31T09:30:00,5Z", "2026-01-31T09:30:00+24:00", "2026-01-31T9:30:00Z",
		// In UTC these lie outside the years that RFC 3339 can write.
		"9999-12-31T23:59:59-01:00", "0000-06-01T00:00:00Z", "0001-01-01T00:30:00+01:00",
	} {
		_, err := clock.Parse(text)
		require.EqualError(t, err, "must be an RFC 3339 time or a date like 2026-01-31", text)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	type record struct {
		At   clock.Time `json:"at"`
		Left clock.Time `json:"left,omitzero"`
	}
	for text, want := range map[string]string{
		`{"at":null}`:                        `{"at":null}`,
		`{}`:                                 `{"at":null}`,
		`{"at":"2026-01-31T10:30:00+01:00"}`: `{"at":"2026-01-31T09:30:00.000Z"}`,
		`{"at":null,"left":"2026-01-31"}`:    `{"at":null,"left":"2026-01-31T00:00:00.000Z"}`,
	} {
		r := record{At: clock.FromMillis(7)}
		if text == `{}` {
			r = record{}
		}
		require.NoError(t, json.Unmarshal([]byte(text), &r), text)
		got, err := json.Marshal(r)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	for _, text := range []string{`1769851800`, `true`, `{}`, `[]`, `""`, `"soon"`} {
		var at clock.Time
		require.Error(t, json.Unmarshal([]byte(text), &at), text)
		require.True(t, at.IsZero())
	}
}

func TestArithmetic(t *testing.T) {
	t.Parallel()
	at := clock.Of(time.Date(2026, 1, 31, 9, 30, 0, 123_999_999, time.FixedZone("", 3600)))
	require.Equal(t, "2026-01-31T08:30:00.123Z", at.String())
	require.Equal(t, at, clock.FromMillis(at.Millis()))
	require.Equal(t, at, clock.Of(at.Std()))
	later := at.Add(90 * time.Minute)
	require.Equal(t, 90*time.Minute, later.Sub(at))
	require.True(t, at.Before(later) && later.After(at) && !later.Before(at) && !at.After(later) && !at.Before(at))
	require.Equal(t, at, at.Add(999*time.Microsecond), "parts below a millisecond are dropped")
	require.True(t, clock.Of(time.Time{}).IsZero())
	require.False(t, clock.FromMillis(0).IsZero(), "1970 is a set time")
	now := clock.System.Now()
	require.Equal(t, now, clock.FromMillis(now.Millis()), "the system clock gives whole milliseconds")
}

// FuzzParse checks that a time that Parse accepts can be written and read again unchanged, as text and as JSON.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"2026-01-31", "2026-01-31T09:30:00.123+08:00", "9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00Z",
		"2026-01-31T09:30:00,5Z",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := clock.Parse(text)
		if err != nil || at.IsZero() {
			return
		}
		require.Len(t, at.String(), len(clock.Layout))
		again, err := clock.Parse(at.String())
		require.NoError(t, err)
		require.Equal(t, at, again)
		body, err := json.Marshal(at)
		require.NoError(t, err)
		var decoded clock.Time
		require.NoError(t, json.Unmarshal(body, &decoded))
		require.Equal(t, at, decoded)
		require.Equal(t, at, clock.FromMillis(at.Millis()))
	})
}

func TestPauseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		clock.Pause(ctx, time.Hour)
		close(ended)
	}()
	cancel()
	<-ended
	clock.Pause(t.Context(), time.Nanosecond)
}
