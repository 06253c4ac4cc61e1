package docstoretest

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Thing is the suite's document: an index of every kind, and content of every kind.
type Thing struct {
	docstore.Meta
	Name   string          `json:"name"`
	Code   string          `json:"code"`
	Kind   string          `json:"kind"`
	Rank   int64           `json:"rank"`
	Count  int64           `json:"count"`
	Seen   clock.Time      `json:"seen"`
	Until  clock.Time      `json:"until"`
	Over   bool            `json:"over"`
	Words  []string        `json:"words"`
	Logins []string        `json:"logins"`
	Props  json.RawMessage `json:"props,omitempty"`
	Image  []byte          `json:"image,omitempty"`
}

func (v *Thing) clone() *Thing {
	c := *v
	c.Words, c.Logins = slices.Clone(v.Words), slices.Clone(v.Logins)
	c.Props, c.Image = slices.Clone(v.Props), slices.Clone(v.Image)
	return &c
}

var thingIndexes = []docstore.Index[Thing]{
	docstore.ByText("name", func(v *Thing) string { return v.Name }),
	docstore.Unique(docstore.ByText("code", func(v *Thing) string { return v.Code }), "code"),
	docstore.ByList("words", func(v *Thing) []string { return v.Words }),
	docstore.Facet(docstore.ByText("kind", func(v *Thing) string { return v.Kind }), "name", "rank"),
	docstore.ByNumber("rank", func(v *Thing) docstore.Value { return docstore.Number(v.Rank) }),
	docstore.Unique(docstore.ByList("logins", func(v *Thing) []string { return v.Logins }), "login", "more_logins"),
	docstore.ByNumber("seen", func(v *Thing) docstore.Value { return docstore.Moment(v.Seen) }),
	docstore.Counted(docstore.Grouped(docstore.ByText("group", func(v *Thing) string { return v.Kind }), "rank")),
}

// thingSchema declares the collection of Things with other indexes or another revision, for the cases about changed
// declarations.
func thingSchema(revision int, indexes ...docstore.Index[Thing]) docstore.Schema[Thing] {
	return docstore.Schema[Thing]{
		Name: "things", Noun: "thing", Indexes: indexes, Revision: revision,
		Due: func(v *Thing) clock.Time {
			if v.Over {
				return clock.Time{}
			}
			return v.Until
		},
		ApplyDue: func(v *Thing, _ clock.Time) { v.Over = true },
		Counts:   func(v *Thing) []*int64 { return []*int64{&v.Count} },
	}
}

// Things is the collection that the suite works on.
var Things = docstore.Define(thingSchema(1, thingIndexes...))

// Part belongs to the Thing with the same id.
type Part struct {
	docstore.Meta
	Note string `json:"note"`
}

// Parts is a second collection, without indexes of its own.
var Parts = docstore.Define(docstore.Schema[Part]{Name: "parts", Noun: "part", NoIfMatch: true})

// manualClock stands still until a test moves it.
type manualClock struct {
	mu  sync.Mutex
	now clock.Time
}

func (c *manualClock) Now() clock.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func thing(id string, set ...func(*Thing)) *Thing {
	v := &Thing{Meta: docstore.Meta{ID: id}}
	for _, f := range set {
		f(v)
	}
	return v
}

func name(s string) func(*Thing)        { return func(v *Thing) { v.Name = s } }
func code(s string) func(*Thing)        { return func(v *Thing) { v.Code = s } }
func kind(s string) func(*Thing)        { return func(v *Thing) { v.Kind = s } }
func rank(n int64) func(*Thing)         { return func(v *Thing) { v.Rank = n } }
func seen(t clock.Time) func(*Thing)    { return func(v *Thing) { v.Seen = t } }
func until(t clock.Time) func(*Thing)   { return func(v *Thing) { v.Until = t } }
func words(list ...string) func(*Thing) { return func(v *Thing) { v.Words = list } }
func logins(list ...string) func(*Thing) {
	return func(v *Thing) { v.Logins = list }
}
