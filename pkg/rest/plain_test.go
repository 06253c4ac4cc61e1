package rest

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"
)

// parcel has a member of each kind that a plain body can have, and some that it cannot.
type parcel struct {
	Name   string         `json:"name" minLength:"1" maxLength:"4"`
	Kind   string         `json:"kind,omitempty" enum:"box,bag"`
	Weight int            `json:"weight,omitempty" minimum:"1" maximum:"50"`
	Gift   bool           `json:"gift,omitempty"`
	Tags   []string       `json:"tags,omitempty" minItems:"1" maxItems:"2"`
	Inside []parcel       `json:"inside,omitempty"`
	Notes  map[string]any `json:"notes,omitempty"`
	Mail   string         `json:"mail,omitempty" format:"email"`
	Price  float64        `json:"price,omitempty"`
}

func parcelSchema() (huma.Registry, *huma.Schema) {
	r := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	return r, r.Schema(reflect.TypeFor[parcel](), true, "")
}

// valid reports whether a body passes all other checks.
func valid(r huma.Registry, s *huma.Schema, body []byte) bool {
	_, unknown, err := checkJSON(body, shapeOf(r, s, map[*huma.Schema]*shape{}))
	var v any
	if err != nil || len(unknown) > 0 || len(body) == 0 || decodeJSON(body, &v) != nil {
		return false
	}
	var result huma.ValidateResult
	huma.Validate(r, s, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, v, &result)
	return len(result.Errors) == 0
}

var plainBodies = []string{
	`{"name":"a"}`, ` { "name" : "äöü€" , "weight":50 , "gift" : false } `, `{"name":"a","kind":"bag","tags":["x","y"]}`,
	`{"name":"a","inside":[{"name":"b","inside":[]}]}`,
	`{"name":"a","notes":{"a":1,"b":[true,null,{"c":"d"},-7,0]}}`,
}

var otherBodies = []string{
	``, `{}`, `[]`, `null`, `{"name":""}`, `{"name":"abcde"}`, `{"name":"a","name":"b"}`, `{"name":"a"}x`,
	`{"name":"a","kind":"bax"}`, `{"name":"a","weight":0}`, `{"name":"a","weight":51}`, `{"name":"a","weight":1.5}`,
	`{"name":"a","weight":01}`, `{"name":"a","gift":1}`, `{"name":"a","tags":[]}`, `{"name":"a","tags":["a","b","c"]}`,
	`{"name":"a","tags":[1]}`, `{"name":"a","size":1}`, `{"name":"a","inside":[{}]}`, `{"name":"a",}`, `{"name" "a"}`,
	`{"name":"a","tags":["x",]}`, `{"name":"a","notes":{"x":1,"x":2}}`, `{"name":"a","mail":"x"}`, `{"Name":"a"}`,
	"{\"name\":\"a\tb\"}", "{\"name\":\"\xff\"}", `{"name":"a","notes":{"x":-0}}`, `{"name":"a","notes":{"x":1e400}}`,
	`{"name":"a\n"}`, `{"name":"a","price":1.5}`, `{"name":"a","weight":null}`,
	`{"name":"a","notes":` + strings.Repeat(`{"x":`, 200) + `1` + strings.Repeat(`}`, 200) + `}`,
}

func TestPlainBodies(t *testing.T) {
	t.Parallel()
	r, s := parcelSchema()
	p := plainOf(r, s, map[*huma.Schema]*plain{})
	for _, body := range plainBodies {
		require.True(t, p.accepts([]byte(body)), body)
	}
	for _, body := range otherBodies {
		require.False(t, p.accepts([]byte(body)), body)
	}
}

// Bodies with a few bytes changed are plain only if they pass all other checks.
func TestChangedBodies(t *testing.T) {
	t.Parallel()
	r, s := parcelSchema()
	p := plainOf(r, s, map[*huma.Schema]*plain{})
	random := rand.New(rand.NewPCG(1, 2))
	const bytesOfJSON = "{}[]\":,\\ \n0123456789-.eEtruefalsn\x00\x80\xff"
	accepted := 0
	for range 30_000 {
		body := []byte(plainBodies[random.IntN(len(plainBodies))])
		for range 1 + random.IntN(3) {
			at := random.IntN(len(body))
			switch random.IntN(3) {
			case 0:
				body[at] = bytesOfJSON[random.IntN(len(bytesOfJSON))]
			case 1:
				body = slices.Delete(body, at, at+1)
			default:
				body = slices.Insert(body, at, body[random.IntN(len(body))])
			}
		}
		if p.accepts(body) {
			accepted++
			require.True(t, valid(r, s, body), "%q", body)
		}
	}
	require.Greater(t, accepted, 1000)
}

// FuzzPlain: a body that is plain passes all other checks, and so would not have needed them.
func FuzzPlain(f *testing.F) {
	r, s := parcelSchema()
	p := plainOf(r, s, map[*huma.Schema]*plain{})
	for _, body := range append(plainBodies, otherBodies...) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if p.accepts(body) && !valid(r, s, body) {
			t.Fatalf("%q", body)
		}
	})
}

// BenchmarkPlain compares one pass with the checks that it replaces.
func BenchmarkPlain(b *testing.B) {
	r, s := parcelSchema()
	p, of := plainOf(r, s, map[*huma.Schema]*plain{}), shapeOf(r, s, map[*huma.Schema]*shape{})
	one := `{"name":"abcd","kind":"box","weight":12,"tags":["heavy","from far away"],"notes":{"for":"the neighbour"}}`
	body := []byte(`{"name":"all","inside":[` + one + strings.Repeat(","+one, 99) + `]}`)
	b.Run("plain", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if !p.accepts(body) {
				b.Fatal("it is plain")
			}
		}
	})
	b.Run("all checks", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			var v any
			if _, _, err := checkJSON(body, of); err != nil {
				b.Fatal(err)
			}
			if err := json.Unmarshal(body, &v); err != nil {
				b.Fatal(err)
			}
			var result huma.ValidateResult
			huma.Validate(r, s, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, v, &result)
		}
	})
}

// Schemas that refer to each other: where one of them has a constraint that plain does not check, no value of it is
// recognized, also inside the other.
func TestPlainOfSchemasThatReferToEachOther(t *testing.T) {
	t.Parallel()
	least := 2
	limited := &huma.Schema{Type: huma.TypeObject, MinProperties: &least}
	other := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{"limited": limited}}
	limited.Properties = map[string]*huma.Schema{"other": other}
	seen := map[*huma.Schema]*plain{}
	require.False(t, plainOf(nil, limited, seen).accepts([]byte(`{}`)))
	require.True(t, plainOf(nil, other, seen).accepts([]byte(`{}`)))
	require.False(t, plainOf(nil, other, seen).accepts([]byte(`{"limited":{}}`)))
}
