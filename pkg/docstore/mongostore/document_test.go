package mongostore

import (
	"bytes"
	"encoding/json"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// level has a JSON form of its own, read and written by methods of different receivers.
type level int

func (l level) MarshalJSON() ([]byte, error) { return json.Marshal("level " + string(rune('0'+l))) }
func (l *level) UnmarshalJSON(b []byte) error {
	*l = level(b[len(b)-2] - '0')
	return nil
}

// switched is text that only its decoder treats specially.
type switched string

func (s *switched) UnmarshalJSON(b []byte) error {
	*s = switched(strings.Trim(string(b), `"`))
	return nil
}

// hidden has MarshalJSON on the pointer only.
type hidden struct{ inside string }

func (h *hidden) MarshalJSON() ([]byte, error) { return json.Marshal(h.inside) }
func (h *hidden) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &h.inside) }

type address struct {
	City  string      `json:"city"`
	Since clock.Time  `json:"since"`
	Until *clock.Time `json:"until,omitempty"`
	Lines []string    `json:"lines,omitempty"`
}

type audit struct {
	By string `json:"by"`
}

// Label is exported, as an embedded struct with a member name must be.
type Label struct {
	Text string `json:"text"`
}

// everything has a member of every kind that documents may have.
type everything struct {
	docstore.Meta
	audit                // its members are inlined
	Label `json:"label"` // it has a name, so it is a member

	Text     string               `json:"text"`
	Omitted  string               `json:"omitted,omitempty"`
	Flag     bool                 `json:"flag"`
	Int      int                  `json:"int"`
	Int64    int64                `json:"int64"`
	Quoted   int64                `json:"quoted,string"`
	Uint32   uint32               `json:"uint32"`
	Float    float64              `json:"float"`
	Pointer  *int64               `json:"pointer"`
	Bytes    []byte               `json:"bytes"`
	Image    []byte               `json:"image,omitempty"`
	Time     clock.Time           `json:"time"`
	Zero     clock.Time           `json:"zero,omitzero"`
	TimePtr  *clock.Time          `json:"time_ptr"`
	Times    []clock.Time         `json:"times"`
	Exact    time.Time            `json:"exact"`
	Nested   address              `json:"nested"`
	NestedP  *address             `json:"nested_p"`
	Many     []address            `json:"many"`
	ManyP    []*address           `json:"many_p"`
	Texts    []string             `json:"texts"`
	Lists    [][]int64            `json:"lists"`
	Fixed    [2]int64             `json:"fixed"`
	Raw      json.RawMessage      `json:"raw,omitempty"`
	RawP     *json.RawMessage     `json:"raw_p"`
	Raws     []json.RawMessage    `json:"raws"`
	Map      map[string]any       `json:"map"`
	Typed    map[string]address   `json:"typed"`
	Numbered map[int64]clock.Time `json:"numbered"`
	Any      any                  `json:"any"`
	Anys     []any                `json:"anys"`
	Number   json.Number          `json:"number"`
	Level    level                `json:"level"`
	Levels   []level              `json:"levels"`
	Switched switched             `json:"switched"`
	Hidden   hidden               `json:"hidden"`
	HiddenP  *hidden              `json:"hidden_p"`
	Addr     netip.Addr           `json:"addr"`
	Duration time.Duration        `json:"duration"`
	Untagged string
	//lint:ignore U1000 that it is left alone is the test
	private string
	Ignored string `json:"-"`
}

func jsonOf(t require.TestingT, v any) string {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// roundTrip encodes and decodes, and checks that the JSON form is the same.
func roundTrip[T any](t require.TestingT, v *T) *T {
	raw, err := encode(v)
	require.NoError(t, err)
	require.NoError(t, raw.Validate())
	back := new(T)
	require.NoError(t, (*Engine)(nil).Decode(raw, back))
	require.Equal(t, jsonOf(t, v), jsonOf(t, back))
	return back
}

func full(t *testing.T) *everything {
	at, err := clock.Parse("1969-12-31T23:59:59.999Z")
	require.NoError(t, err)
	n, raw, h := int64(math.MinInt64), json.RawMessage(`{"a.b":[1e400,-0],"$x":null}`), hidden{"京"}
	home := address{City: "北京\x00", Since: at, Until: &at, Lines: []string{"1", ""}}
	return &everything{
		Meta:  docstore.Meta{ID: "a", TenantID: "t1", Version: 1 << 60, TimeCreated: at, TimeModified: at},
		audit: audit{"ada"}, Label: Label{"l"},
		Text: "<ü🙂>\x00", Flag: true, Int: -5, Int64: math.MaxInt64, Quoted: 1<<53 + 1, Uint32: math.MaxUint32,
		Float: 0.1, Pointer: &n,
		Bytes: []byte{0, 255}, Image: []byte{1}, Time: at, TimePtr: &at, Times: []clock.Time{at, {}},
		Exact:  time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		Nested: home, NestedP: &home, Many: []address{home, {}}, ManyP: []*address{&home, nil},
		Texts: []string{"x", ""}, Lists: [][]int64{{1}, {}, nil},
		Fixed: [2]int64{1, 2}, Raw: raw, RawP: &raw, Raws: []json.RawMessage{raw, json.RawMessage(`null`),
			json.RawMessage(`"s"`)},
		Map:   map[string]any{"": nil, "$a": 1.5, "a.b": "x", "\x00": []any{true}},
		Typed: map[string]address{"a.b": home}, Numbered: map[int64]clock.Time{-1: at},
		Any: map[string]any{"n": nil}, Anys: []any{nil, "1", 2.5, []any{}}, Number: "123456789012345678901234567890",
		Level: 3, Levels: []level{1, 2},
		Switched: "1", Hidden: h, HiddenP: &h, Addr: netip.MustParseAddr("::1"), Duration: time.Second, Untagged: "u",
	}
}

func TestDocumentsComeBackExactly(t *testing.T) {
	t.Parallel()
	v := full(t)
	require.Equal(t, v, roundTrip(t, v))
	zero := &everything{Number: "0"} // the empty Number has this JSON form, too
	require.Equal(t, zero, roundTrip(t, &everything{}))

	empty := &everything{
		Bytes: []byte{}, Times: []clock.Time{}, Texts: []string{}, Lists: [][]int64{}, Raws: []json.RawMessage{},
		Map:   map[string]any{},
		Typed: map[string]address{}, Numbered: map[int64]clock.Time{}, Many: []address{}, Anys: []any{}, Number: "1",
		Any: []any{}, Levels: []level{},
	}
	require.Equal(t, empty, roundTrip(t, empty), "an empty list is not nil")
}

// Go promotes neither of two fields ID, but they are different members.
func TestEmbeddedStructsWithFieldsOfOneName(t *testing.T) {
	t.Parallel()
	type owner struct {
		ID string `json:"owner_id"`
	}
	type owned struct {
		docstore.Meta
		owner
	}
	v := &owned{docstore.Meta{ID: "a", TenantID: "t1"}, owner{"b"}}
	require.Equal(t, v, roundTrip(t, v))
}

func TestDocumentsComeBackExactlyAtRandom(t *testing.T) {
	t.Parallel()
	texts := rapid.StringOfN(rapid.RuneFrom([]rune("a.$_京\x00\"<\U0010FFFF")), 0, 5, -1)
	times := rapid.Custom(func(t *rapid.T) clock.Time {
		if rapid.Bool().Draw(t, "zero") {
			return clock.Time{}
		}
		return clock.FromMillis(rapid.Int64Range(-62135596800000, 253402300799999).Draw(t, "ms"))
	})
	homes := rapid.Custom(func(t *rapid.T) address {
		return address{City: texts.Draw(t, "city"), Since: times.Draw(t, "since"), Lines: rapid.SliceOfN(texts, 0, 2).
			Draw(t, "lines")}
	})
	rapid.Check(t, func(t *rapid.T) {
		v := &everything{
			Text: texts.Draw(t, "text"), Omitted: texts.Draw(t, "omitted"), Int: rapid.Int().Draw(t, "int"),
			Int64: rapid.Int64().Draw(t, "int64"),
			Float: rapid.Float64().Draw(t, "float"), Bytes: rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"),
			Time: times.Draw(t, "time"),
			Zero: times.Draw(t, "zero"), Nested: homes.Draw(t, "nested"), Many: rapid.SliceOfN(homes, 0, 2).
				Draw(t, "many"),
			Texts: rapid.SliceOf(texts).Draw(t, "texts"), Typed: rapid.MapOfN(texts, homes, 0, 2).Draw(t, "typed"),
			Number: "0",
			Raw:    json.RawMessage(jsonOf(t, rapid.MapOf(texts, texts).Draw(t, "raw"))),
		}
		roundTrip(t, v)
	})
}

func TestStoredDocument(t *testing.T) {
	t.Parallel()
	v := newThing("a")
	v.Words, v.Until = []string{"w"}, clock.FromMillis(5)
	raw, err := stored(def, entry(v))
	require.NoError(t, err)
	want := bson.D{
		{Key: "_id", Value: "t1/a"}, {Key: "id", Value: "a"}, {Key: "tenant_id", Value: "t1"},
		{Key: "version", Value: int64(1)},
		{Key: "time_created", Value: bson.DateTime(v.TimeCreated.Millis())},
		{Key: "time_modified", Value: bson.DateTime(v.TimeModified.Millis())},
		{Key: "name", Value: "Ada"}, {Key: "rank", Value: int64(7)}, {Key: "words", Value: bson.A{"w"}},
		{Key: "until", Value: bson.DateTime(5)},
		{Key: "_due", Value: bson.DateTime(5)},
		{Key: "_ix", Value: bson.D{{Key: "name", Value: "Ada"}, {Key: "rank", Value: int64(7)},
			{Key: "words", Value: bson.A{"w"}}, {Key: "keys", Value: bson.A{}}}},
	}
	var got bson.D
	require.NoError(t, bson.Unmarshal(raw, &got))
	require.Equal(t, want, got)

	v.Until = clock.Time{}
	raw, err = stored(def, entry(v))
	require.NoError(t, err)
	require.Zero(t, raw.Lookup("_due").Type)
	require.Equal(t, bson.TypeNull, raw.Lookup("until").Type, "a zero time")

	back, err := row(def, "t1", raw, []docstore.Order{{Index: "rank"}, {Index: "name"}}, false)
	require.NoError(t, err)
	require.Equal(t, docstore.Row{ID: "a", Stamp: docstore.Stamp{Version: 1}, Data: raw,
		Sort: []docstore.Value{docstore.Number(7), docstore.Text("Ada")}}, back)
	_, err = row(def, "t2", raw, nil, false)
	require.ErrorContains(t, err, "another tenant")
	_, err = row(def, "t1", raw, []docstore.Order{{Index: "name"}}, false)
	require.NoError(t, err)
}

func TestStoredDocumentsThatCannotBe(t *testing.T) {
	t.Parallel()
	e := entry(newThing("a"))
	e.Doc = &struct {
		Bad string `json:"_ix"`
	}{}
	_, err := stored(def, e)
	require.ErrorContains(t, err, "_ix")

	e.Doc = &struct {
		thing
		audit
		Author string `json:"by"`
	}{}
	_, err = stored(def, e)
	require.ErrorContains(t, err, `two members "by"`)

	e.Doc = &struct {
		audit `json:"audit"`
	}{}
	_, err = stored(def, e)
	require.ErrorContains(t, err, "not exported")

	e.Doc = &struct{ *audit }{}
	_, err = stored(def, e)
	require.ErrorContains(t, err, "embeds")

	v := newThing("a")
	v.Name = strings.Repeat("x", maxDocument)
	_, err = stored(def, entry(v))
	require.Equal(t, apperr.TooLarge, apperr.KindOf(err))
	v.Name = strings.Repeat("x", maxDocument/2-1000) // the text is in the document and in its index entry
	raw, err := stored(def, entry(v))
	require.NoError(t, err)
	require.Less(t, len(raw), maxDocument)
}

func TestDecodeIgnoresUnknownMembers(t *testing.T) {
	t.Parallel()
	raw, err := bson.Marshal(bson.D{{Key: "_id", Value: "x"}, {Key: "name", Value: "n"},
		{Key: "future", Value: bson.D{{Key: "a", Value: bson.A{1}}}}, {Key: "rank", Value: int32(4)}})
	require.NoError(t, err)
	var v thing
	require.NoError(t, (*Engine)(nil).Decode(raw, &v))
	require.Equal(t, thing{Name: "n", Rank: 4}, v)

	raw, err = bson.Marshal(bson.D{{Key: "name", Value: 5}})
	require.NoError(t, err)
	require.ErrorContains(t, (*Engine)(nil).Decode(raw, &v), "name")
}

func FuzzDecode(f *testing.F) {
	raw, err := stored(def, entry(newThing("a")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(raw))
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var v everything
		if (*Engine)(nil).Decode(bytes.Clone(data), &v) == nil {
			_, _ = json.Marshal(&v) // must not panic
		}
		_, _ = row(def, "t1", data, []docstore.Order{{Index: "name"}}, false)
	})
}
