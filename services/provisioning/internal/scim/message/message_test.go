package message_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/message"
)

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	var faults apperr.Faults
	faults.Add("userName", "is required")
	faults.Add("emails[0].value", "must be a text")
	for want, c := range map[string]struct {
		status int
		err    error
	}{
		// RFC 7644 §3.12
		`"status":"404","detail":"no such user"`: {404, apperr.Missing("user")},
		`"status":"400","scimType":"mutability","detail":"id is read-only"`: {
			400, scim.Invalid(scim.Mutability, "id", "is read-only"),
		},
		`"status":"409","scimType":"uniqueness","detail":"a unique value is taken: userName"`: {409, apperr.Taken("userName")},
		`"status":"400","scimType":"invalidValue","detail":"userName is required; emails[0].value must be a text"`: {
			400, faults.Err(),
		},
		`"status":"412","detail":"it has changed"`:        {412, apperr.New(apperr.VersionMismatch, "it has changed")},
		`"status":"501","detail":"no /Me"`:                {501, apperr.New(apperr.InvalidParameters, "no /Me")},
		`"status":"500","detail":"Internal Server Error"`: {500, errors.New("a secret")},
		`"status":"409","scimType":"uniqueness","detail":"such a group"`: {
			409, scim.With(scim.Uniqueness, apperr.New(apperr.InvalidState, "such a group")),
		},
	} {
		require.JSONEq(t, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],`+want+`}`,
			toJSON(t, message.NewError(c.status, c.err)))
	}
	many := apperr.Faults{}
	for range 100 {
		many.Add("x", "is odd")
	}
	require.Equal(t, 19, strings.Count(message.NewError(http.StatusBadRequest, many.Err()).Detail, ";"))
}

func TestList(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],"totalResults":2,"itemsPerPage":1,
		"startIndex":1,"Resources":[{"id":"1"}]}`,
		toJSON(t, message.NewList(2, 1, "", []json.RawMessage{json.RawMessage(`{"id":"1"}`)})))
	require.JSONEq(t, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],"totalResults":2,"itemsPerPage":0,
		"nextCursor":"c","Resources":[]}`, toJSON(t, message.NewList(2, 0, "c", nil)))
}

// TestSearch: the example of RFC 7644 §3.4.3, and what else clients send.
func TestSearch(t *testing.T) {
	t.Parallel()
	s, err := message.ParseSearch([]byte(`{"schemas":["urn:ietf:params:scim:api:messages:2.0:SearchRequest"],
		"attributes":["displayName","userName"],"filter":"displayName sw \"smith\"","startIndex":1,"count":10}`))
	require.NoError(t, err)
	require.Equal(t, message.Search{
		Attributes: []string{"displayName", "userName"}, Filter: `displayName sw "smith"`, StartIndex: 1, Count: 10,
	}, s)

	s, err = message.ParseSearch([]byte(`{"SORTBY":"userName","SortOrder":"DESCENDING","startIndex":-3,"count":1000,
		"excludedAttributes":"members,groups","cursor":"","filter":null,"startindex2":5}`))
	require.NoError(t, err)
	require.Equal(t, message.Search{
		Excluded: []string{"members,groups"}, SortBy: "userName", Descending: true, StartIndex: 1, Count: 200,
		HasCursor: true,
	}, s)

	for query, want := range map[string]message.Search{
		"":                           {StartIndex: 1, Count: 100},
		"count=0":                    {StartIndex: 1, Count: 0},
		"count=-1":                   {StartIndex: 1, Count: 0},
		"startIndex=0&count=200":     {StartIndex: 1, Count: 200},
		"cursor=":                    {StartIndex: 1, Count: 100, HasCursor: true},
		"cursor=abc&count=5":         {StartIndex: 1, Count: 5, Cursor: "abc", HasCursor: true},
		"sortOrder=ascending":        {StartIndex: 1, Count: 100},
		"attributes=a,b&startIndex=": {StartIndex: 1, Count: 100, Attributes: []string{"a,b"}},
	} {
		s, err := message.SearchOf(parameters(query))
		require.NoError(t, err, query)
		require.Equal(t, want, s, query)
	}
	for query, want := range map[string]scim.Type{
		"count=ten":           scim.InvalidValue,
		"count=ten&cursor=":   scim.InvalidCount,
		"count=1.5":           scim.InvalidValue,
		"startIndex=x":        scim.InvalidValue,
		"sortOrder=downwards": scim.InvalidValue,
	} {
		_, err := message.SearchOf(parameters(query))
		require.Equal(t, want, scim.TypeOf(err), query)
	}
	for body, want := range map[string]scim.Type{
		`{"schemas":["urn:x"]}`:            scim.InvalidSyntax,
		`{"schemas":7}`:                    scim.InvalidSyntax,
		`[]`:                               scim.InvalidSyntax,
		`{"attributes":[7]}`:               scim.InvalidValue,
		`{"filter":{}}`:                    scim.InvalidValue,
		`{"count":true}`:                   scim.InvalidValue,
		`{"startIndex":1e400}`:             scim.InvalidValue,
		`{"count":9999999999999999999999}`: scim.InvalidValue,
	} {
		_, err := message.ParseSearch([]byte(body))
		require.Equal(t, want, scim.TypeOf(err), body)
	}
}

func parameters(query string) func(string) ([]string, bool) {
	values := map[string][]string{}
	for part := range strings.SplitSeq(query, "&") {
		if name, value, is := strings.Cut(part, "="); is {
			values[name] = append(values[name], value)
		}
	}
	return func(name string) ([]string, bool) {
		v, has := values[name]
		return v, has
	}
}

func bulk(t *testing.T, operations string) message.Bulk {
	t.Helper()
	b, err := message.ParseBulk([]byte(
		`{"schemas":["urn:ietf:params:scim:api:messages:2.0:BulkRequest"],"failOnErrors":1,"Operations":` + operations + `}`))
	require.NoError(t, err)
	return b
}

// TestBulk: the examples of RFC 7644 §3.7.
func TestBulk(t *testing.T) {
	t.Parallel()
	b := bulk(t, `[
		{"method":"post","path":"/Groups","bulkId":"ytrewq","data":{"displayName":"Group B","members":[{"type":"Group","value":"bulkId:qwerty"},
			{"type":"User","value":"bulkId:later"},{"value":"26118915"}]}},
		{"method":"POST","path":"/Groups","bulkId":"qwerty","data":{"displayName":"Group A"}},
		{"method":"PUT","path":"/Users/b7c14771","version":"W/\"3694e05e9dff592\"","data":{"userName":"Bob"}},
		{"method":"PATCH","path":"/Groups/bulkId:qwerty","data":{"Operations":[{"op":"add","path":"members","value":[{"value":"BULKID:later"}]}]}},
		{"method":"DELETE","path":"/Users/e9025315","data":null},
		{"method":"POST","path":"/Users","bulkId":"later","data":{"userName":"Alice"}}]`)
	require.Equal(t, 1, b.FailOnErrors)
	require.Equal(t, []int{1, 5, 0, 2, 3, 4}, b.Order)
	for _, op := range b.Operations {
		require.NoError(t, op.Err)
	}
	require.Equal(t, `W/"3694e05e9dff592"`, b.Operations[2].Version)
	ids := map[string]string{"qwerty": "7", "later": "8"}
	find := func(bulkID string) (string, bool) {
		id, has := ids[bulkID]
		return id, has
	}
	require.NoError(t, b.Operations[0].Resolve(find))
	require.JSONEq(t, `{"displayName":"Group B","members":[{"type":"Group","value":"7"},{"type":"User","value":"8"},{"value":"26118915"}]}`,
		toJSON(t, b.Operations[0].Data))
	require.NoError(t, b.Operations[3].Resolve(find))
	require.Equal(t, "/Groups/7", b.Operations[3].Path)
	require.JSONEq(t, `{"Operations":[{"op":"add","path":"members","value":[{"value":"8"}]}]}`, toJSON(t, b.Operations[3].Data))

	unknown := bulk(t, `[{"method":"DELETE","path":"/Users/bulkId:nobody"}]`)
	require.Equal(t, scim.InvalidValue, scim.TypeOf(unknown.Operations[0].Resolve(find)))

	response := message.NewBulkResponse([]message.BulkResult{
		{
			Method: "POST", BulkID: "qwerty", Version: `W/"1"`, Location: "https://example.com/v2/Groups/7",
			Status: "201",
		},
		{
			Method: "PUT", Location: "https://example.com/v2/Users/9", Status: "412",
			Response: message.NewError(412, nil),
		},
	})
	require.JSONEq(t, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:BulkResponse"],"Operations":[
		{"method":"POST","bulkId":"qwerty","version":"W/\"1\"","location":"https://example.com/v2/Groups/7","status":"201"},
		{"method":"PUT","location":"https://example.com/v2/Users/9","status":"412","response":{
			"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"status":"412","detail":"Precondition Failed"}}]}`, toJSON(t, response))
	require.JSONEq(t, `[]`, toJSON(t, message.NewBulkResponse(nil).Operations))
}

func TestBulkCircles(t *testing.T) {
	t.Parallel()
	b := bulk(t, `[
		{"method":"POST","path":"/Groups","bulkId":"a","data":{"x":"bulkId:b"}},
		{"method":"POST","path":"/Groups","bulkId":"b","data":{"x":"bulkId:c"}},
		{"method":"POST","path":"/Groups","bulkId":"c","data":{"x":"bulkId:b"}},
		{"method":"POST","path":"/Groups","bulkId":"self","data":{"x":"bulkId:self"}},
		{"method":"POST","path":"/Groups","bulkId":"d","data":{"x":"plain"}},
		{"method":"POST","path":"/Groups","bulkId":"d","data":{}}]`)
	var circular []int
	for i, op := range b.Operations {
		if apperr.KindOf(op.Err) == apperr.InvalidState {
			circular = append(circular, i)
		}
	}
	require.Equal(t, []int{1, 2, 3}, circular)
	require.NoError(t, b.Operations[0].Err, "it refers to the circle, and fails when it is resolved")
	require.Equal(t, scim.InvalidSyntax, scim.TypeOf(b.Operations[5].Err))
	order := slices.Sorted(slices.Values(b.Order))
	require.Equal(t, []int{0, 1, 2, 3, 4, 5}, order)
}

func TestBulkRefuses(t *testing.T) {
	t.Parallel()
	for operation, location := range map[string]string{
		`1`: "",
		`{"path":"/Users","bulkId":"a","data":{}}`:       "method",
		`{"method":"GET","path":"/Users/1"}`:             "method",
		`{"method":"POST","bulkId":"a","data":{}}`:       "path",
		`{"method":"POST","path":"/Users","data":{}}`:    "bulkId",
		`{"method":"POST","path":"/Users","bulkId":"a"}`: "data",
		`{"method":"PATCH","path":"/Users/1","data":[]}`: "data",
	} {
		b := bulk(t, `[`+operation+`,{"method":"DELETE","path":"/Users/1"}]`)
		e, is := errors.AsType[*apperr.Error](b.Operations[0].Err)
		require.True(t, is, operation)
		require.Equal(t, location, e.Faults[0].Location)
		require.Equal(t, scim.InvalidSyntax, scim.TypeOf(b.Operations[0].Err))
		require.NoError(t, b.Operations[1].Err, "each operation stands alone")
	}
	for _, body := range []string{`[]`, `{`, `{"Operations":{}}`, `{}`, `{"schemas":["urn:x"],"Operations":[]}`,
		`{"failOnErrors":"1","Operations":[]}`, `{"failOnErrors":-1,"Operations":[]}`, `{"failOnErrors":1.5,"Operations":[]}`} {
		_, err := message.ParseBulk([]byte(body))
		require.Equal(t, scim.InvalidSyntax, scim.TypeOf(err), body)
	}
	many := strings.TrimSuffix(strings.Repeat(`{"method":"DELETE","path":"/Users/1"},`, 1001), ",")
	_, err := message.ParseBulk([]byte(`{"Operations":[` + many + `]}`))
	require.Equal(t, apperr.TooLarge, apperr.KindOf(err))
}
