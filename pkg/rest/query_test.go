package rest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
)

func TestReadTime(t *testing.T) {
	t.Parallel()
	var faults apperr.Faults
	require.True(t, ReadTime(&faults, "from", "").IsZero())
	require.Equal(t, "2026-01-31T08:30:00.000Z", ReadTime(&faults, "from", "2026-01-31T09:30:00+01:00").String())
	require.Equal(t, "2026-01-31T00:00:00.000Z", ReadTime(&faults, "to", "2026-01-31").String())
	require.NoError(t, faults.Err())
	require.True(t, ReadTime(&faults, "to", "yesterday").IsZero())
	require.ErrorContains(t, faults.Err(), "to must be an RFC 3339 time or a date")
}
