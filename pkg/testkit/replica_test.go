package testkit_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/testkit"
)

type note struct{ docstore.Meta }

var notes = docstore.Define(docstore.Schema[note]{Name: "notes", Noun: "note"})

// A replica reads what another one writes; their ids differ.
func TestReplicasShareADatabase(t *testing.T) {
	t.Parallel()
	spec := service.Spec{Name: "notes", Collections: []*docstore.Def{notes.Def()},
		New: func(context.Context, service.Deps) (service.App, error) {
			return service.App{Handler: http.NotFoundHandler()}, nil
		}}
	one := testkit.Start(t, spec)
	other := one.Replica(spec)
	ctx := request.System(t.Context(), "acme")
	id, err := one.Deps.Store.NewID(ctx)
	require.NoError(t, err)
	_, err = docstore.Write(ctx, one.Deps.Store, func(tx *docstore.Tx) (docstore.Doc[note], error) {
		return notes.Insert(ctx, tx, &note{docstore.Meta{ID: id}})
	})
	require.NoError(t, err)
	_, err = notes.Find(ctx, other.Deps.Store, id)
	require.NoError(t, err)
	next, err := other.Deps.Store.NewID(ctx)
	require.NoError(t, err)
	require.NotEqual(t, id, next)
	require.NotSame(t, one.Deps.Bus, other.Deps.Bus)
}
