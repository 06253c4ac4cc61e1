package mongostore

import (
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// thing is the tests' document, with an index of every kind.
type thing struct {
	docstore.Meta
	Name  string     `json:"name"`
	Rank  int64      `json:"rank"`
	Words []string   `json:"words"`
	Keys  []string   `json:"keys,omitempty"`
	Until clock.Time `json:"until"`
}

var things = docstore.Define(docstore.Schema[thing]{
	Name: "things", Noun: "thing", Revision: 3,
	Indexes: []docstore.Index[thing]{
		docstore.Unique(docstore.ByText("name", func(v *thing) string { return v.Name }), "name"),
		docstore.Unique(docstore.ByNumber("rank", func(v *thing) docstore.Value {
			return docstore.Number(v.Rank)
		}), "rank"),
		docstore.ByList("words", func(v *thing) []string { return v.Words }),
		docstore.Unique(docstore.ByList("keys", func(v *thing) []string { return v.Keys }), "keys"),
	},
	Due: func(v *thing) clock.Time { return v.Until },
})

var def = things.Def()

// entry is what the typed layer makes of v.
func entry(v *thing) *docstore.Entry {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	e := &docstore.Entry{
		Tenant: v.TenantID, ID: v.ID, Stamp: docstore.Stamp{Version: v.Version}, Doc: v, JSON: body,
		Keys: []docstore.Value{docstore.Text(v.Name), docstore.Number(v.Rank)}, Lists: [][]string{v.Words, v.Keys},
	}
	if !v.Until.IsZero() {
		e.Due = v.Until.Millis()
	}
	return e
}

func newThing(id string) *thing {
	at, err := clock.Parse("2026-01-31T09:30:00.123Z")
	if err != nil {
		panic(err)
	}
	return &thing{Meta: docstore.Meta{ID: id, TenantID: "t1", Version: 1, TimeCreated: at, TimeModified: at},
		Name: "Ada", Rank: 7}
}
