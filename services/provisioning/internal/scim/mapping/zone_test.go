package mapping

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
)

func TestZone(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"W. Europe Standard Time": "Europe/Berlin", "china standard time ": "Asia/Shanghai", "UTC": "Etc/UTC",
		"Europe/Berlin": "Europe/Berlin", "": "", "# The time zones of Windows": "# The time zones of Windows",
		"Mars Standard Time": "Mars Standard Time",
	} {
		require.Equal(t, want, Zone(name), name)
	}
	require.Greater(t, len(zones()), 130)
	for windows, iana := range zones() {
		_, err := time.LoadLocation(iana)
		require.NoError(t, err, windows)
	}
}
