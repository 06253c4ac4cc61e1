package outbound

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, " 120 ": 2 * time.Minute, "3601": time.Hour, "99999999999999999999": 0,
		"18446744073709551615": time.Hour, "-1": 0, "1.5": 0, "soon": 0,
		"Sat, 31 Jan 2026 09:30:30 GMT": 30 * time.Second, "Sat, 31 Jan 2026 09:29:00 GMT": 0,
		"Sun, 01 Feb 2026 09:30:00 GMT": time.Hour,
	} {
		for status, asks := range map[int]bool{429: true, 503: true, 500: false, 200: false, 404: false} {
			r := &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {text}}}
			if asks {
				require.Equal(t, want, RetryAfter(r, now), "%d %q", status, text)
			} else {
				require.Zero(t, RetryAfter(r, now), "%d %q", status, text)
			}
		}
	}
}
