package mongostore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/idplatform/idplatform/pkg/docstore"
)

func TestIndexes(t *testing.T) {
	t.Parallel()
	var got []string
	for _, x := range indexes(def) {
		keys, err := bson.Marshal(x.keys)
		require.NoError(t, err)
		line := x.name + " " + plainNumbers(keys)
		if x.unique {
			line += " unique"
		}
		if x.partial != nil {
			partial, err := bson.Marshal(x.partial)
			require.NoError(t, err)
			line += " where " + bson.Raw(partial).String()
		}
		got = append(got, line)
		require.True(t, isOurs(x.name))
	}
	require.Equal(t, strings.TrimSpace(`
due {"_due": 1} where {"_due": {"$exists": true}}
order.name {"tenant_id": 1,"_ix.name": 1,"_id": 1}
unique.name.text.3 {"tenant_id": 1,"_ix.name": 1} unique where {"_ix.name": {"$gt": ""}}
order.rank {"tenant_id": 1,"_ix.rank": 1,"_id": 1}
unique.rank.number.3 {"tenant_id": 1,"_ix.rank": 1} unique where {"_ix.rank": {"$gt": {"$numberLong":"-9223372036854775808"}}}
list.words {"tenant_id": 1,"_ix.words": 1,"_id": 1}
list.keys {"tenant_id": 1,"_ix.keys": 1,"_id": 1}
unique.keys.list.3 {"tenant_id": 1,"_ix.keys": 1} unique where {"_ix.keys": {"$gt": ""}}`),
		strings.ReplaceAll(strings.ReplaceAll(strings.Join(got, "\n"), `{"$numberInt":"1"}`, "1"), "\n\n", "\n"))
	require.False(t, isOurs("_id_"))
	require.False(t, isOurs("an operator's"))
}

func TestIndexesOfAFacet(t *testing.T) {
	t.Parallel()
	d := &docstore.Def{Name: "c", Indexes: []docstore.IndexDef{{Name: "state", Orders: []string{"name"}},
		{Name: "name", Slot: 1}}}
	all := indexes(d)
	require.Equal(t, "facet.state.name", all[2].name)
	require.Equal(t, ascending("tenant_id", "_ix.state", "_ix.name", "_id"), all[2].keys)
	require.True(t, isOurs(all[2].name))
}

func TestSignature(t *testing.T) {
	t.Parallel()
	base := func() *docstore.Def {
		return &docstore.Def{Name: "c", Revision: 1, Indexes: []docstore.IndexDef{{Name: "a"}, {Name: "b", Many: true}}}
	}
	want := signature(base())
	require.Equal(t, want, signature(base()))
	for name, change := range map[string]func(*docstore.Def){
		"revision": func(d *docstore.Def) { d.Revision++ },
		"one more": func(d *docstore.Def) { d.Indexes = append(d.Indexes, docstore.IndexDef{Name: "c"}) },
		"one less": func(d *docstore.Def) { d.Indexes = d.Indexes[:1] },
		"renamed":  func(d *docstore.Def) { d.Indexes[0].Name = "x" },
		"number":   func(d *docstore.Def) { d.Indexes[0].Number = true },
		"list":     func(d *docstore.Def) { d.Indexes[0].Many = true },
	} {
		d := base()
		change(d)
		require.NotEqual(t, want, signature(d), name)
	}
	d := base()
	d.Indexes[0].Unique = true
	require.Equal(t, want, signature(d), "the entries are the same")
}
