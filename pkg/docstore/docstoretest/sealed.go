package docstoretest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
)

var sealedCases = []testCase{
	{name: "sealed/a value is shown as a mask and stored nowhere else", run: sealedIsMasked},
	{name: "sealed/masks keep, texts replace, nothing removes", run: sealedIsKept},
	{name: "sealed/a value goes with its record", run: sealedGoes},
	{name: "sealed/values stay through a rotation of the keys", run: sealedRotates},
	{name: "sealed/a dry run seals nothing", run: sealedDryRun, needs: []Feature{Transactions}},
}

// Safe is a document with sealed members: one that is declared, others that its data names.
type Safe struct {
	docstore.Meta
	Name   string                  `json:"name"`
	Secret secret.Text             `json:"secret"`
	Others map[string]*secret.Text `json:"others,omitempty"`
}

// Safes is a collection with sealed members.
var Safes = docstore.Define(docstore.Schema[Safe]{
	Name: "safes", Noun: "safe",
	Sealed: func(v *Safe) map[string]*secret.Text {
		members := map[string]*secret.Text{"secret": &v.Secret}
		for name, text := range v.Others {
			members["others."+name] = text
		}
		return members
	},
})

var (
	firstKey  = secret.NewKey()
	secondKey = secret.NewKey()
	keyring   = mustRing(firstKey.Reveal())
)

func mustRing(entries string) *secret.Keyring {
	ring, err := secret.ParseKeyring(secret.New(entries))
	if err != nil {
		panic(err)
	}
	return ring
}

// putSafe inserts a safe, or replaces it with what a client sends.
func (f *fixture) putSafe(t *testing.T, ctx context.Context, id, body string) docstore.Doc[Safe] {
	t.Helper()
	doc, err := docstore.Write(ctx, f.Store, func(tx *docstore.Tx) (docstore.Doc[Safe], error) {
		found, err := Safes.LoadMany(ctx, tx, []string{id})
		if err != nil {
			return docstore.Doc[Safe]{}, err
		}
		if len(found) == 0 {
			v := &Safe{Meta: docstore.Meta{ID: id}}
			if err := json.Unmarshal([]byte(body), v); err != nil {
				return docstore.Doc[Safe]{}, err
			}
			return Safes.Insert(ctx, tx, v)
		}
		v := found[0]
		v.Secret, v.Others = secret.Text{}, nil
		if err := json.Unmarshal([]byte(body), v); err != nil {
			return docstore.Doc[Safe]{}, err
		}
		return Safes.Replace(ctx, tx, v)
	})
	require.NoError(t, err)
	return doc
}

func (f *fixture) reveal(t *testing.T, ctx context.Context, id, member string) string {
	t.Helper()
	value, err := Safes.Reveal(ctx, f.Store, id, member)
	require.NoError(t, err)
	return value.Reveal()
}

func sealedIsMasked(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	written := f.putSafe(t, ctx, "1", `{"name":"n","secret":"hunter2","others":{"pin":"4711"}}`)
	read, err := Safes.Find(ctx, f.Store, "1")
	require.NoError(t, err)
	for _, doc := range []docstore.Doc[Safe]{written, read} {
		body, err := doc.JSON()
		require.NoError(t, err)
		require.Contains(t, string(body), `"secret":"******","others":{"pin":"******"}`)
	}
	require.Equal(t, "hunter2", f.reveal(t, ctx, "1", "secret"))
	require.Equal(t, "4711", f.reveal(t, ctx, "1", "others.pin"))
	require.Empty(t, f.reveal(t, ctx, "1", "name"))
	require.Empty(t, f.reveal(t, ctx, "2", "secret"))
	require.Empty(t, f.reveal(t, in(t, "t2"), "1", "secret"), "another tenant's")
	rows, err := f.engine.Get(ctx, Safes.Def(), "t1", []string{"1"})
	require.NoError(t, err)
	require.False(t, strings.Contains(string(rows[0].Data), "hunter2") || strings.Contains(string(rows[0].Data), "v1."), "neither value nor sealed form")
}

func sealedIsKept(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.putSafe(t, ctx, "1", `{"secret":"hunter2","others":{"pin":"4711"}}`)
	f.clock.advance(time.Minute)

	same := f.putSafe(t, ctx, "1", `{"secret":"******","others":{"pin":"******"}}`)
	require.False(t, same.Changed())
	same = f.putSafe(t, ctx, "1", `{"secret":"hunter2","others":{"pin":"4711"}}`)
	require.False(t, same.Changed(), "the same value is no change")
	require.EqualValues(t, 1, same.Version)

	changed := f.putSafe(t, ctx, "1", `{"secret":"hunter3","others":{"pin":"******"}}`)
	require.EqualValues(t, 2, changed.Version, "a new value is a change though the record looks the same")
	require.Equal(t, "hunter3", f.reveal(t, ctx, "1", "secret"))
	require.Equal(t, "4711", f.reveal(t, ctx, "1", "others.pin"))

	removed := f.putSafe(t, ctx, "1", `{"secret":"","others":{"other":"******"}}`)
	body, err := removed.JSON()
	require.NoError(t, err)
	require.Contains(t, string(body), `"secret":"","others":{"other":""}`, "a mask that stands for nothing is nothing")
	for _, member := range []string{"secret", "others.pin", "others.other"} {
		require.Empty(t, f.reveal(t, ctx, "1", member))
	}
	f.putSafe(t, ctx, "1", `{"secret":"again"}`)
	require.Equal(t, "again", f.reveal(t, ctx, "1", "secret"))
}

func sealedGoes(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	for _, id := range []string{"1", "2", "3"} {
		f.putSafe(t, ctx, id, `{"secret":"hunter2"}`)
	}
	require.NoError(t, f.write(ctx, func(tx *docstore.Tx) error {
		v, err := Safes.Load(ctx, tx, "1")
		if err != nil {
			return err
		}
		if _, err := Safes.Delete(ctx, tx, v); err != nil {
			return err
		}
		return Safes.DeleteWhere(ctx, tx, docstore.ID("2"), nil)
	}))
	require.Empty(t, f.reveal(t, ctx, "1", "secret"))
	require.Empty(t, f.reveal(t, ctx, "2", "secret"))
	require.Equal(t, "hunter2", f.reveal(t, ctx, "3", "secret"))
}

func sealedRotates(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.putSafe(t, ctx, "1", `{"secret":"hunter2"}`)
	f.SealWith(mustRing(secondKey.Reveal() + "," + firstKey.Reveal()))
	require.Equal(t, "hunter2", f.reveal(t, ctx, "1", "secret"))
	f.SealWith(mustRing(secondKey.Reveal()))
	_, err := Safes.Reveal(ctx, f.Store, "1", "secret")
	require.ErrorIs(t, err, secret.ErrOpen)
	require.NotContains(t, err.Error(), "hunter2")
	f.putSafe(t, ctx, "1", `{"secret":"hunter2"}`)
	require.Equal(t, "hunter2", f.reveal(t, ctx, "1", "secret"), "a value given anew is sealed under the new key")
}

func sealedDryRun(t *testing.T, s *suite) {
	f, ctx := s.open(t), in(t, "t1")
	f.putSafe(t, docstore.WithDryRun(ctx), "1", `{"secret":"hunter2"}`)
	require.Empty(t, f.reveal(t, ctx, "1", "secret"))
}
