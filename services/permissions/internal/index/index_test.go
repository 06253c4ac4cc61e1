package index

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/permissions/internal/grant"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// A deletion is remembered only until its event arrives, whichever of the two comes first.
func TestDeletionsAreForgotten(t *testing.T) {
	t.Parallel()
	ctx := request.System(t.Context(), "acme")
	event := bus.Event{Type: "idp.auth_rule.deleted", Subject: "60", Tenant: "acme", Sequence: 2}
	own := grant.Change{Entity: "auth_rule", ID: "60", Deleted: true}
	for name, order := range map[string][]func(*Index){
		"own write first": {
			func(x *Index) { x.Apply(ctx, []grant.Change{own}) },
			func(x *Index) { require.NoError(t, x.handleGrant(ctx, event)) },
		},
		"event first": {
			func(x *Index) { require.NoError(t, x.handleGrant(ctx, event)) },
			func(x *Index) { x.Apply(ctx, []grant.Change{own}) },
		},
	} {
		x := New(Deps{Log: testkit.Log(t), Metrics: prometheus.NewRegistry()})
		for _, step := range order {
			step(x)
		}
		require.Empty(t, x.grants.deleted, name)
	}
}
