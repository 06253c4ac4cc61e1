package outbox_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
)

var covers = outbox.DefineSingleton("cover", "/cover", docstore.Schema[note]{Name: "covers", Noun: "cover"},
	func(id string) *note { return &note{Meta: docstore.Meta{ID: id}, Text: "blank"} })

func TestSingleton(t *testing.T) {
	t.Parallel()
	ctx, store := caller(t.Context()), opened(t, covers.Def())
	write := func(text string) func(*note) error {
		return func(n *note) error {
			n.Text = n.Text + "+" + text
			return nil
		}
	}
	text := func(doc docstore.Doc[note], err error) string {
		t.Helper()
		require.NoError(t, err)
		v, err := doc.Value()
		require.NoError(t, err)
		return fmt.Sprintf("%s v%d", v.Text, v.Version)
	}
	pending := func() int {
		all, err := store.Pending(ctx, 0, 100)
		require.NoError(t, err)
		return len(all)
	}

	v, err := covers.Value(ctx, store)
	require.NoError(t, err)
	require.Equal(t, note{Text: "blank"}, *v)
	require.Equal(t, "blank+dry v2", text(covers.Edit(docstore.WithDryRun(ctx), store, write("dry"))))
	require.Equal(t, "blank v1", text(covers.Get(ctx, store)))
	require.Equal(t, "blank v1", text(covers.Get(ctx, store)))
	require.Zero(t, pending(), "reading is no event")

	seventh := docstore.WithExpected(ctx, "", func(version int64) bool { return version == 7 })
	_, err = covers.Edit(seventh, store, write("late"))
	require.Equal(t, apperr.VersionMismatch, apperr.KindOf(err))
	require.Equal(t, "blank+a v2", text(covers.Edit(ctx, store, write("a"))))
	require.Equal(t, 1, pending())
}

// Each of the first changes takes effect, and the tenant has one record.
func TestSingletonChangedAtOnce(t *testing.T) {
	t.Parallel()
	ctx, store := caller(t.Context()), opened(t, covers.Def())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := covers.Edit(ctx, store, func(n *note) error { n.Text += "+"; return nil })
			require.NoError(t, err)
		})
	}
	all.Wait()
	v, err := covers.Value(ctx, store)
	require.NoError(t, err)
	require.Equal(t, "blank++++++++", v.Text)
}
