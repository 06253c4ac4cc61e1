package rest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

func TestContentTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, registerPoke)
	c := w.client()
	for i, contentType := range []string{"application/json", "application/json; charset=utf-8",
		"application/json;charset=utf-8;x=y", "APPLICATION/JSON", " application/json ;"} {
		c.With("Content-Type", contentType).Post("/v1/things", fmt.Sprintf(`{"name":"n%d"}`, i)).OK(nil)
	}
	for _, contentType := range []string{" ", "text/plain", "text/json", "application/jsonx", "application/json+x",
		"application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "json", "application/json, text/plain",
		`application/json"`} {
		c.With("Content-Type", contentType).Post("/v1/things", `{"name":"n"}`).Problem(http.StatusUnsupportedMediaType,
			"unsupported_media_type")
		c.With("Content-Type", contentType).With("Idempotency-Key", "k").Post("/v1/things", `{"name":"n"}`).
			Problem(http.StatusUnsupportedMediaType, "unsupported_media_type")
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/things", strings.NewReader(`{"name":"n"}`))
	r.Header.Set("Authorization", "Bearer "+w.Token("acme", auth.UsersWrite))
	answer := httptest.NewRecorder()
	w.Handler.ServeHTTP(answer, r)
	require.Equal(t, http.StatusUnsupportedMediaType, answer.Code, "a missing Content-Type is not JSON")
	patch := c.With("Content-Type", "Application/Merge-Patch+JSON; charset=utf-8")
	id := c.Post("/v1/things", `{"name":"patched"}`).ID()
	require.Contains(t, string(patch.Patch("/v1/things/"+id, `{"count":7}`).OK(nil).Body), `"count":7`)
	patch.Post("/v1/things", `{"name":"n"}`).Problem(http.StatusUnsupportedMediaType, "unsupported_media_type")
}

// An integer is one however JSON writes it, and a fault names its member.
func TestIntegersHaveManyForms(t *testing.T) {
	t.Parallel()
	c := newWorld(t).client()
	id := c.Post("/v1/things", `{"name":"a","count":1.0,"props":{"count":1.0}}`).ID()
	require.Contains(t, string(c.Get("/v1/things/"+id).OK(nil).Body), `"count":1,"props":{"count":1.0}`)
	for text, want := range map[string]string{
		"3.6e1": "36", "-2E0": "-2", "0.50e1": "5", "1e+2": "100", "120e-1": "12",
	} {
		answer := c.Patch("/v1/things/"+id, `{ "count" : `+text+` }`)
		require.Contains(t, string(answer.OK(nil).Body), `"count":`+want+`,`, text)
	}
	for _, text := range []string{"1.5", "1e-1", "1.0000000000000000001", "1e300", "\"1.0\""} {
		c.Patch("/v1/things/"+id, `{"count":`+text+`}`).
			Problem(http.StatusBadRequest, "invalid_parameters", "body.count")
	}
}

type poked struct {
	Why  string `json:"why"`
	Body bool   `json:"body"`
}

// registerPoke adds an operation with an optional body, and one without a body.
func registerPoke(s *rest.Server, _ service.Deps) {
	type input struct {
		Body *struct {
			Why string `json:"why,omitempty"`
		}
	}
	rest.Handle(s, rest.Op{ID: "poke", Method: http.MethodPost, Path: "/v1/poke", Scope: auth.UsersWrite,
		Summary: "Poke"},
		func(_ context.Context, in *input) (poked, error) {
			if in.Body == nil {
				return poked{}, nil
			}
			return poked{in.Body.Why, true}, nil
		})
	rest.Handle(s, rest.Op{ID: "nudge", Method: http.MethodPost, Path: "/v1/nudge", Scope: auth.UsersWrite,
		Summary: "Nudge"},
		func(context.Context, *struct{}) (rest.Empty, error) { return rest.Empty{}, nil })
}

func TestOperationsThatNeedNoBody(t *testing.T) {
	t.Parallel()
	c := newWorld(t, registerPoke).client()
	const form, multi = "application/x-www-form-urlencoded", "multipart/form-data; boundary=b1"
	for _, x := range []struct {
		contentType, body string
		want              poked
	}{
		{"", "", poked{}}, {form, "", poked{}}, {multi, "", poked{}}, {multi, "--b1--", poked{}},
		{multi, "\r\n--b1--\r\n", poked{}}, {"text/plain", "", poked{}},
		{"application/json", "", poked{}}, {"application/json", `{"why":"李"}`, poked{"李", true}},
		{"application/json", "{}", poked{"", true}},
	} {
		var got poked
		c.With("Content-Type", x.contentType).Post("/v1/poke", strings.NewReader(x.body)).OK(&got)
		require.Equal(t, x.want, got, "%+v", x)
		c.With("Content-Type", x.contentType).Post("/v1/nudge", strings.NewReader(x.body)).OK(nil)
	}
	for contentType, body := range map[string]string{
		form: "why=x", multi: "--b1\r\nContent-Disposition: form-data; name=\"why\"\r\n\r\nx\r\n--b1--",
		"text/plain": "x", "": "{}",
	} {
		c.With("Content-Type", contentType).Post("/v1/poke", strings.NewReader(body)).
			Problem(http.StatusUnsupportedMediaType, "unsupported_media_type")
		c.With("Content-Type", contentType).Post("/v1/nudge", strings.NewReader(body)).OK(nil)
	}
	c.Post("/v1/poke", `{"why":1}`).Problem(http.StatusBadRequest, "invalid_parameters", "body.why")
	c.Post("/v1/poke", `{"why":"a","why":"b"}`).Problem(http.StatusBadRequest, "invalid_parameters", "body.why")

	// A body that is not read is not part of the request: clients make a new multipart boundary for every attempt.
	keyed := c.With("Idempotency-Key", "k")
	keyed.With("Content-Type", "multipart/form-data; boundary=b1").
		Post("/v1/nudge", strings.NewReader("--b1--")).OK(nil)
	again := keyed.With("Content-Type", "multipart/form-data; boundary=b2").
		Post("/v1/nudge", strings.NewReader("--b2--")).OK(nil)
	require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
	c.Do(http.MethodDelete, "/v1/poke", "{}").Problem(http.StatusMethodNotAllowed, "method_not_allowed")
}

// huma's errors contain the rejected values, for an unknown member the whole body, and parsers repeat what they could
// not parse.
func TestNoRejectedValueIsEchoed(t *testing.T) {
	t.Parallel()
	c := newWorld(t).client()
	const value = "hunter2"
	for body, locations := range map[string][]string{
		`{"name":"n","password":"` + value + `"}`:                           {"body.password"},
		`{"name":"n","mail":"` + value + `@@x"}`:                            {"body.mail"},
		`{"name":"n","site":"http://[` + value + `"}`:                       {"body.site"},
		`{"name":"n","uuid":"urn:` + value + `"}`:                           {"body.uuid"},
		`{"name":"n","uuid":"` + value + strings.Repeat("x", 38) + `"}`:     {"body.uuid"},
		`{"name":"n","span":"` + value + `"}`:                               {"body.span"},
		`{"name":"n","match":"(` + value + `"}`:                             {"body.match"},
		`{"name":"n","size":{"width":1,"height":1,"unit":"` + value + `"}}`: {"body.size.unit"},
		`{"name":["` + value + `"]}`:                                        {"body.name"},
		`{"name":"n","count":"` + value + `"}`:                              {"body.count"},
		`"` + value + `"`:                                                   {"body"},
		`["` + value + `"]`:                                                 {"body"},
		`{"name":"` + value:                                                 {"body"},
		`{"name":"n","count":` + value + `}`:                                {"body"},
		`{"name":"n","tags":["` + value + `",1]}`:                           {"body.tags[1]"},
		`{"password":"` + value + `","NAME":"` + value + `","size":{"w":true}}`: {"body.password", "body.NAME",
			"body.name", "body.size.width", "body.size.height", "body.size.w"},
	} {
		answer := c.Post("/v1/things", body)
		answer.Problem(http.StatusBadRequest, "invalid_parameters", locations...)
		require.NotContains(t, string(answer.Body), value, body)
		require.NotContains(t, string(answer.Body), "%!", body)
	}
	for query, location := range map[string]string{"page_size": "query.page_size", "count": "query.count",
		"page_token": "query.page_token", "page_sort": "query.page_sort"} {
		answer := c.Get("/v1/things?" + query + "=" + value)
		answer.Problem(http.StatusBadRequest, "invalid_parameters", location)
		require.NotContains(t, string(answer.Body), value, query)
	}
}

// decodes has a body that is decoded into a struct, not kept as JSON.
type decodes struct {
	Body struct {
		When  time.Time      `json:"when,omitzero"`
		Small int8           `json:"small,omitempty"`
		Big   int64          `json:"big,omitempty"`
		Any   map[string]any `json:"any,omitempty"`
	}
}

func registerDecode(s *rest.Server, _ service.Deps) {
	rest.Handle(s, rest.Op{ID: "decode", Method: http.MethodPost, Path: "/v1/decode", Scope: auth.UsersWrite,
		Summary: "Decode"},
		func(_ context.Context, in *decodes) (map[string]int64, error) {
			return map[string]int64{"small": int64(in.Body.Small), "big": in.Body.Big}, nil
		})
}

// A value that the schema accepts and Go's types cannot hold is the client's fault, and is reported without the value.
func TestValuesThatDoNotFit(t *testing.T) {
	t.Parallel()
	c := newWorld(t, registerDecode).client()
	for _, body := range []string{`{"small":4711}`, `{"big":9223372036854775808}`, `{"big":1e400}`, `{"big":1.5}`,
		`{"when":"4711-13-01T00:00:00Z"}`, `{"when":"2026-01-31T24:00:00Z"}`} {
		answer := c.Post("/v1/decode", body)
		answer.Problem(http.StatusBadRequest, "invalid_parameters")
		require.NotContains(t, string(answer.Body), "4711")
		require.NotContains(t, string(answer.Body), "json:")
		require.NotContains(t, string(answer.Body), "parsing")
	}
	require.JSONEq(t, `{"small":-128,"big":9223372036854775807}`,
		string(c.Post("/v1/decode", `{"small":-128,"big":9223372036854775807}`).OK(nil).Body))
	require.Contains(t, string(c.Post("/v1/decode", `{"big":9007199254740993}`).OK(nil).Body), "9007199254740993")
}

// Of a repeated object, validation would see the last, and decoding would mix both.
func TestMembersGivenTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, registerDecode)
	c := w.client()
	for body, location := range map[string]string{
		`{"name":"a","name":"b"}`:                                         "body.name",
		`{"name":"a","n\u0061me":"b"}`:                                    "body.name",
		`{"name":"a","size":{"width":"x"},"size":{"width":1,"height":1}}`: "body.size",
		`{"name":"a","size":{"width":1,"height":1,"width":1}}`:            "body.size.width",
		`{"name":"a","props":{"list":[{"x":1},{"x":1,"x":2}]}}`:           "body.props.list[1].x",
		`{"name":"a","props":{"":1,"":2}}`:                                "body.props.",
		`{"name":"a","props":{"\"":1,"\u0022":2}}`:                        `body.props."`,
		`{"name":"a","props":{"a":[[],[0,{"b":{}}],{"c":{},"c":0}]}}`:     "body.props.a[2].c",
	} {
		c.Post("/v1/things", body).Problem(http.StatusBadRequest, "invalid_parameters", location)
		c.Patch("/v1/things/1", body).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
	require.Zero(t, w.count())
	c.Post("/v1/things",
		`{"name":"a","props":{"a":{"x":1},"b":{"x":1},"x":["x","x",{"x":"a"},{"x":"a"}],"y":"{\"x\":1,\"x\":1}","z\\":"\\"}}`).OK(nil)
}

func TestMemberNamesAreExact(t *testing.T) {
	t.Parallel()
	c := newWorld(t).client()
	c.Post("/v1/things", `{"Name":"a","name":"a"}`).Problem(http.StatusBadRequest, "invalid_parameters", "body.Name")
	// ſ folds to s, but ſize is not size
	c.Post("/v1/things", `{"name":"a","ſize":{}}`).Problem(http.StatusBadRequest, "invalid_parameters", "body.ſize")
	doc := c.Post("/v1/things", `{"name":"a","`+strings.Repeat("李", 10_000)+`":1}`).
		Problem(http.StatusBadRequest, "invalid_parameters")
	require.Less(t, len(doc.Errors[0].Location), 300, "a name that the client made up does not fill the answer")
	require.NotContains(t, doc.Errors[0].Location, "\ufffd")
}

// Numbers, escapes and depth are stored as they were sent.
func TestPropsAreKeptExactly(t *testing.T) {
	t.Parallel()
	c := newWorld(t).client()
	for i, props := range []string{
		`{"big":123456789012345678901234567890,"exact":0.1000000000000000055511151231257827,"e":1e300,"neg":-0}`,
		`{"html":"<a href=\"x\">&</a>","cjk":"李伟","emoji":"👩‍👩‍👧","nul":"\u0000","sep":"\u2028","lone":"\ud800"}`,
		`{"deep":` + strings.Repeat("[", 98) + strings.Repeat("]", 98) + `}`,
	} {
		id := c.Post("/v1/things", fmt.Sprintf(`{"name":"n%d","props":%s}`, i, props)).ID()
		require.Contains(t, string(c.Get("/v1/things/"+id).OK(nil).Body), props)
		changed := c.Patch("/v1/things/"+id, `{"count":9007199254740993}`)
		require.Contains(t, string(changed.OK(nil).Body), props, "a patch of another member does not change it")
		require.Contains(t, string(changed.Body), `"count":9007199254740993`)
		require.Equal(t, changed.Header.Get("ETag"), c.Patch("/v1/things/"+id, `{"props":`+props+`}`).
			OK(nil).Header.Get("ETag"), "nor does a patch with the same props")
		merged := c.Patch("/v1/things/"+id, `{"props":{"added":18446744073709551616}}`)
		require.Contains(t, string(merged.OK(nil).Body), `"added":18446744073709551616`)
		require.Contains(t, string(merged.Body), strings.TrimSuffix(props[strings.Index(props, ":")+1:], "}")[:20],
			"nor does a patch of a member beside it")
	}
	// The number is beyond what this test's own decoder can hold.
	require.Contains(t, string(c.Post("/v1/things", `{"name":"huge","props":{"n":1e400}}`).OK(nil).Body),
		`"props":{"n":1e400}`)
}

func TestBodiesThatAreNoJSON(t *testing.T) {
	t.Parallel()
	c := newWorld(t).client()
	for name, body := range map[string]string{
		"empty": "", "spaces": "  ", "cut": `{"name":"a"`, "trailing": `{"name":"a"}{}`, "null": "null", "NUL": "\x00",
		"BOM":     "\ufeff{\"name\":\"a\"}",
		"latin-1": "{\"name\":\"\xe9\"}", "surrogate": "{\"name\":\"\xed\xa0\x80\"}",
		"overlong": "{\"name\":\"\xc0\xaf\"}", "key": "{\"\xff\":1}",
		"deep array": strings.Repeat("[", 100_000), "closed": `{"name":"a","props":{"d":` +
			strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}}`,
		"deep object": strings.Repeat(`{"a":`, 50_000), "comment": `{"name":"a"/**/}`,
		"NaN": `{"name":"a","count":NaN}`, "hex": `{"name":"a","count":0x1}`, "single": `{'name':'a'}`,
	} {
		c.Post("/v1/things", body).Problem(http.StatusBadRequest, "invalid_parameters", "body")
		require.NotContains(t, name, "?")
	}
}

// An unknown member is reported together with all other faults, of the schema and of the domain, at any depth. Nothing
// is changed.
func TestUnknownMembersAreToldWithAllElse(t *testing.T) {
	t.Parallel()
	type part struct {
		Name string         `json:"name"`
		Tags []string       `json:"tags,omitempty"`
		Any  map[string]any `json:"any,omitempty"`
	}
	type parts struct {
		Items []part          `json:"items"`
		Named map[string]part `json:"named,omitempty"`
		One   *part           `json:"one,omitempty"`
	}
	w := newWorld(t, func(s *rest.Server, d service.Deps) {
		rest.Handle(s, rest.Op{ID: "add-parts", Method: http.MethodPost, Path: "/v1/parts", Scope: auth.UsersWrite,
			Summary: "Add"},
			func(ctx context.Context, in *struct {
				docstore.Paging
				Body parts
			},
			) (rest.Record[Thing], error) {
				var faults apperr.Faults
				for i, p := range in.Body.Items {
					faults.Within(apperr.Item("items", i)).Check(p.Name != "bad", "name", "is bad")
				}
				if faults.Err() != nil {
					return rest.Record[Thing]{}, faults.Err()
				}
				doc, err := create(ctx, d.Store, thing{Name: "made"})
				return rest.RecordOf[Thing](doc, err)
			})
	})
	c := w.client()
	for body, locations := range map[string][]string{
		`{"items":[],"x":1}`: {"body.x"},
		`{"items":[{"name":"good"},{"name":"bad","x":{"y":"do-not-echo"}},{"Name":"bad","name":"bad"}],"y":[1,{}]}`: {
			"body.items[1].x", "body.items[2].Name", "body.y", "body.items[1].name", "body.items[2].name",
		},
		`{"items":[{"x":1,"any":{"x":{"x":1}}}],"named":{"x":{"name":"n","x":1}},"one":{"name":"n","x":1}}`: {
			"body.items[0].x", "body.named.x.x", "body.one.x", "body.items[0].name",
		},
		`{"items":[{"name":7,"x":1}]}`: {"body.items[0].x", "body.items[0].name"},
		`{"x":1}`:                      {"body.x", "body.items"},
	} {
		answer := c.Post("/v1/parts", body)
		answer.Problem(http.StatusBadRequest, "invalid_parameters", locations...)
		require.NotContains(t, string(answer.Body), "do-not-echo")
	}
	c.Post("/v1/parts?page_size=0", `{"items":[],"x":1}`).Problem(http.StatusBadRequest, "invalid_parameters", "body.x",
		"query.page_size")
	c.With("Idempotency-Key", "k").Post("/v1/parts", `{"items":[],"x":1}`).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.x")
	require.Zero(t, w.count())
	c.With("Idempotency-Key", "k").Post("/v1/parts", `{"items":[]}`).OK(nil)
	require.Equal(t, 1, w.count())
	c.Post("/v1/parts", `{"items":[],"x":1}`).Problem(http.StatusBadRequest, "invalid_parameters", "body.x")
	id := c.Post("/v1/things", map[string]any{"name": "one"}).ID()
	c.Patch("/v1/things/"+id, `{"name":"","size":{"width":1,"height":1,"depth":1}}`).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.size.depth", "body.name")
	c.Patch("/v1/things/1", `{"nam":"x"}`).Problem(http.StatusBadRequest, "invalid_parameters", "body.nam")
}

// TestFaultsOfSchemaAndDomainTogether: what the schema forbids does not hide what the domain finds, unless the domain
// relies on the schema for it.
func TestFaultsOfSchemaAndDomainTogether(t *testing.T) {
	t.Parallel()
	var seen atomic.Int64
	w := newWorld(t, func(s *rest.Server, d service.Deps) {
		rest.Handle(s, rest.Op{ID: "add-shirt", Method: http.MethodPost, Path: "/v1/shirts", Scope: auth.UsersWrite,
			Summary: "Add"},
			func(ctx context.Context, in *struct {
				docstore.Paging
				Body struct {
					Size   string   `json:"size" enum:"S,M"`
					Colour string   `json:"colour" minLength:"3" maxLength:"5"`
					Maker  string   `json:"maker,omitempty"`
					Tags   []string `json:"tags,omitempty" maxItems:"1"`
					Fits   []string `json:"fits,omitempty" enum:"slim,wide"`
				}
			},
			) (rest.Record[Thing], error) {
				seen.Add(1)
				var faults apperr.Faults
				faults.Check(in.Body.Size == "S" || in.Body.Size == "M", "size", "is no size")
				faults.Check(in.Body.Maker != "bad", "maker", "is bad")
				if faults.Err() != nil {
					return rest.Record[Thing]{}, faults.Err()
				}
				doc, err := create(ctx, d.Store, thing{Name: "made"})
				return rest.RecordOf[Thing](doc, err)
			})
	})
	c := w.client()
	for body, want := range map[string]struct {
		locations []string
		seen      bool
	}{
		`{"size":"XXL","colour":"red","maker":"bad"}`:      {[]string{"body.size", "body.maker"}, true},
		`{"size":"XXL","colour":"r","maker":"ok"}`:         {[]string{"body.size", "body.colour"}, true},
		`{"colour":"red","maker":"bad","x":1}`:             {[]string{"body.x", "body.size", "body.maker"}, true},
		`{"size":"S","colour":"yellow","maker":"bad"}`:     {[]string{"body.colour"}, false},
		`{"size":"S","colour":7,"maker":"bad"}`:            {[]string{"body.colour"}, false},
		`{"size":"X","colour":"red","tags":["a","b"]}`:     {[]string{"body.size", "body.tags"}, false},
		`{"size":"X","colour":"red","maker":{"is":"bad"}}`: {[]string{"body.size", "body.maker"}, false},
		`[]`: {[]string{"body"}, false},
	} {
		seen.Store(0)
		c.Post("/v1/shirts", body).Problem(http.StatusBadRequest, "invalid_parameters", want.locations...)
		require.Equal(t, want.seen, seen.Load() == 1, body)
	}
	// The list that is too long is not among the faults that are listed, and the domain still must not see it.
	seen.Store(0)
	many := `{"size":"S","colour":"red","fits":[` + strings.Repeat(`"x",`, 200) + `"x"],"tags":["a","b"]}`
	require.Equal(t, http.StatusBadRequest, c.Post("/v1/shirts", many).Status)
	require.Zero(t, seen.Load())
	c.Post("/v1/shirts?page_size=0", `{"size":"X","colour":"red"}`).
		Problem(http.StatusBadRequest, "invalid_parameters", "body.size", "query.page_size")
	require.Zero(t, w.count())
}

func TestManyFaultsAreCutOff(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&body, `,"m%d":1`, i)
	}
	doc := newWorld(t).client().Post("/v1/things", `{"name":"a"`+body.String()+`}`).
		Problem(http.StatusBadRequest, "invalid_parameters")
	require.Len(t, doc.Errors, 101)
}

func TestBodySize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const most = 1 << 20
	body := func(size int, name string) string {
		b := fmt.Sprintf(`{"name":%q,"props":{"x":""}}`, name)
		return strings.Replace(b, `""}}`, `"`+strings.Repeat("x", size-len(b))+`"}}`, 1)
	}
	for i, key := range []string{"", "k"} {
		c := w.client().With("Idempotency-Key", key).With("Content-Type", "application/json")
		exact, over := body(most, fmt.Sprint("n", i)), body(most+1, "over")
		require.Len(t, exact, most)
		c.Post("/v1/things", exact).OK(nil)
		c.Post("/v1/things", over).Problem(http.StatusRequestEntityTooLarge, "too_large")
		chunked := io.MultiReader(strings.NewReader(over)) // of unknown length
		c.Post("/v1/things", chunked).Problem(http.StatusRequestEntityTooLarge, "too_large")
	}
	announced := &unread{}
	r := httptest.NewRequest(http.MethodPost, "/v1/things", announced)
	r.Header = http.Header{"Authorization": {"Bearer " + w.Token("acme", auth.UsersWrite)},
		"Content-Type": {"application/json"}}
	r.ContentLength = most + 1
	answer := httptest.NewRecorder()
	w.Handler.ServeHTTP(answer, r)
	require.Equal(t, http.StatusRequestEntityTooLarge, answer.Code)
	require.False(t, announced.read, "a body that is declared as too large is not read")
}

// raw sends the text of a request to a server and reads the answer. The request may be incomplete at that time.
func raw(t *testing.T, server *httptest.Server, text string) (*http.Response, net.Conn) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(wait.Long)))
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response, conn
}

func TestBodiesThatArriveTooSlowly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *rest.Server, _ service.Deps) {
		rest.Handle(s, rest.Op{ID: "take", Method: http.MethodPost, Path: "/v1/take", Scope: auth.UsersWrite,
			Summary: "Take", Timeout: 100 * time.Millisecond},
			func(context.Context, *created) (rest.Empty, error) { return rest.Empty{}, nil })
	})
	server := httptest.NewServer(w.Handler)
	defer server.Close()
	for _, extra := range []string{"", "Idempotency-Key: k\r\n"} {
		head := "POST /v1/take HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " +
			w.Token("acme", auth.UsersWrite) + "\r\n" + extra
		response, conn := raw(t, server, head+"Content-Length: 100\r\n\r\n{\"name\":")
		require.Equal(t, http.StatusBadRequest, response.StatusCode)
		_, err := io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "the connection is closed, because the next request on it could not be found")
	}
	require.EqualValues(t, 2, w.requests(t, "take", "400"))
	require.Empty(t, w.logs.with(`"level":"ERROR"`))
}

func TestBodiesThatBreakOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().With("Content-Type", "application/json")
	for _, key := range []string{"", "k"} {
		c.With("Idempotency-Key", key).Post("/v1/things", io.MultiReader(strings.NewReader(`{"name"`), &unread{})).
			Problem(http.StatusBadRequest, "invalid_parameters", "body")
	}
	require.Empty(t, w.logs.with(`"level":"ERROR"`), "which is not the server's fault")
}

// The deadline for the body must be removed afterwards: net/http takes a passed deadline for a client that has
// disconnected.
func TestOperationsMayRunLongerThanTheirBodyTook(t *testing.T) {
	t.Parallel()
	const timeout = 30 * time.Second
	w := newWorld(t, func(s *rest.Server, _ service.Deps) {
		rest.Handle(s, rest.Op{ID: "work", Method: http.MethodPost, Path: "/v1/work", Scope: auth.UsersWrite,
			Summary: "Work", Timeout: timeout, Streams: true},
			func(ctx context.Context, _ *created) (rest.Empty, error) {
				time.Sleep(4 * timeout)
				return rest.Empty{}, ctx.Err()
			})
	})
	head := "POST /v1/work HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 12\r\n" +
		"Authorization: Bearer " + w.Token("acme", auth.UsersWrite) + "\r\n\r\n"
	synctest.Test(t, func(t *testing.T) {
		client := pipe(t, w.Handler)
		_, err := io.WriteString(client, head+`{"name":"a"}`)
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(client), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
	})
}
