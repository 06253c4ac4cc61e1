package docstoretest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
)

func due(t *testing.T, s *suite) {
	f := s.open(t)
	t1, t2 := in(t, "t1"), in(t, "t2")
	f.insert(t, t1, thing("a", until(epoch.Add(2*time.Second))), thing("b"),
		thing("c", until(epoch.Add(time.Millisecond))))
	f.insert(t, t2, thing("d", until(epoch.Add(time.Second))))
	list := func(limit int) []docstore.Ref {
		t.Helper()
		refs, err := f.things.Due(t.Context(), f.Store, limit)
		require.NoError(t, err)
		return refs
	}
	require.Empty(t, list(10))
	f.clock.advance(time.Millisecond)
	require.Equal(t, []docstore.Ref{{Tenant: "t1", ID: "c"}}, list(10), "in the exact millisecond")
	require.True(t, f.get(t, t1, "c").Over, "reads apply what is due")
	require.False(t, f.get(t, t1, "a").Over)
	f.clock.advance(2 * time.Second)
	require.Equal(t, []docstore.Ref{{Tenant: "t1", ID: "c"}, {Tenant: "t2", ID: "d"}, {Tenant: "t1", ID: "a"}},
		list(10), "of all tenants, earliest first")
	require.Len(t, list(2), 2)

	require.NoError(t, f.change(t1, "c", func(v *Thing) { v.Over = true }))
	require.NoError(t, f.change(t1, "a", func(v *Thing) { v.Until = f.Now().Add(time.Hour) }))
	require.NoError(t, f.delete(t2, "d"))
	require.Empty(t, list(10))
	next, err := f.engine.NextDue(t.Context(), f.things.Def())
	require.NoError(t, err)
	require.Equal(t, f.Now().Add(time.Hour).Millis(), next)

	f.insert(t, t2, thing("e", until(f.Now().Add(time.Second))))
	f.clock.advance(time.Second)
	require.Equal(t, []docstore.Ref{{Tenant: "t2", ID: "e"}}, list(10), "found though nothing was due a moment ago")
	require.NoError(t, f.delete(t1, "a"))
	require.NoError(t, f.delete(t2, "e"))
	next, err = f.engine.NextDue(t.Context(), f.things.Def())
	require.NoError(t, err)
	require.Zero(t, next)
}
