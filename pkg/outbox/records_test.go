package outbox_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
)

var memos = outbox.Define("memo", "/memos", docstore.Schema[note]{Name: "memos", Noun: "memo"})

func TestRecordsTellTheirChanges(t *testing.T) {
	t.Parallel()
	ctx := caller(t.Context())
	store := opened(t, memos.Def())
	memo := func(id string) *note { return &note{Meta: docstore.Meta{ID: id}} }
	write := func(fn func(tx *docstore.Tx) error) {
		require.NoError(t, docstore.Do(ctx, store, fn))
	}
	edit := func(r *outbox.Records[note], text string) {
		_, err := r.Edit(ctx, store, "1", func(_ *docstore.Tx, n *note) error {
			n.Text = text
			return nil
		})
		require.NoError(t, err)
	}

	write(func(tx *docstore.Tx) error {
		_, err := memos.Insert(ctx, tx, memo("1"))
		require.NoError(t, err)
		_, err = memos.InsertMany(ctx, tx, func(int) string { return "" }, memo("2"), memo("3"))
		return err
	})
	edit(memos, "new")
	edit(memos, "new") // changes nothing
	edit(memos.As("shortened").With("by", 3).With("unit", "words"), "")
	write(func(tx *docstore.Tx) error {
		n, err := memos.Load(ctx, tx, "1")
		require.NoError(t, err)
		_, err = memos.As("read").Revise(ctx, tx, n)
		require.NoError(t, err)
		_, err = memos.Touch(ctx, tx, n)
		require.NoError(t, err)
		doc, err := memos.Collection.Touch(ctx, tx, n)
		require.NoError(t, err)
		return memos.Tell(ctx, tx, "copied", &doc)
	})
	no := errors.New("no")
	for _, fails := range []func() error{
		func() error {
			_, err := memos.Edit(ctx, store, "1", func(_ *docstore.Tx, n *note) error { n.Text = "lost"; return no })
			return err
		},
		func() error {
			_, err := memos.Remove(ctx, store, "1", func(*docstore.Tx, *note) error { return no })
			return err
		},
	} {
		require.ErrorIs(t, fails(), no)
	}
	deleted, err := memos.As("shredded").Remove(ctx, store, "1", nil)
	require.NoError(t, err)
	require.Equal(t, "1", deleted.ID)
	write(func(tx *docstore.Tx) error { return memos.DeleteWhere(ctx, tx, docstore.ID("2")) })
	write(func(tx *docstore.Tx) error {
		n, err := memos.Load(ctx, tx, "3")
		require.NoError(t, err)
		_, err = memos.Delete(ctx, tx, n)
		return err
	})

	pending, err := store.Pending(ctx, 0, 100)
	require.NoError(t, err)
	var told []string
	for _, m := range pending {
		var e struct {
			Type, Subject string
			Data          struct {
				By   int
				Unit string
			}
		}
		require.NoError(t, json.Unmarshal(m.Payload, &e))
		told = append(told, e.Subject+" "+e.Type)
		if e.Type == "idp.memo.shortened" {
			require.Equal(t, 3, e.Data.By)
			require.Equal(t, "words", e.Data.Unit)
		} else {
			require.Zero(t, e.Data)
		}
	}
	require.Equal(t, []string{
		"1 idp.memo.created", "2 idp.memo.created", "3 idp.memo.created", "1 idp.memo.updated",
		"1 idp.memo.shortened", "1 idp.memo.read", "1 idp.memo.updated", "1 idp.memo.copied",
		"1 idp.memo.shredded", "2 idp.memo.deleted", "3 idp.memo.deleted",
	}, told)
}
