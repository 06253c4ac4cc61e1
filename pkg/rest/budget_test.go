package rest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
)

func TestBudget(t *testing.T) {
	t.Parallel()
	const kib, mib = 1 << 10, 1 << 20
	b := NewBudget(64 * mib)
	take := func(tenant string, n int) hold {
		t.Helper()
		h, err := b.take(tenant, n, false)
		require.NoError(t, err)
		return h
	}
	refused := func(tenant string, n int) {
		t.Helper()
		_, err := b.take(tenant, n, false)
		require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
	}
	first := take("a", 20*mib) // more than the share of a tenant, which has nothing else
	refused("a", mib)
	take("a", 64*kib)
	require.NoError(t, b.room("a"))
	others := []hold{take("b", 16*mib), take("c", 11*mib)}
	refused("d", mib)
	for b.Held() <= 64*mib-64*kib {
		take("d", 64*kib)
	}
	refused("e", 64*kib)
	require.Error(t, b.room("e"))
	require.LessOrEqual(t, b.Held(), int64(64*mib))
	must, err := b.take("e", mib, true)
	require.NoError(t, err, "the answer to a change that was made")
	must.release()
	first.release()
	for _, h := range others {
		h.release()
	}
	take("a", 16*mib-64*kib)
	refused("a", 100*kib)
	require.Zero(t, take("a", 1000).n, "net/http has a buffer of this size anyway")
	require.EqualValues(t, 5, b.Refused())
}
