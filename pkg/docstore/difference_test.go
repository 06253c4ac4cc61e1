package docstore

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDifference(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		before, after string
		want          map[string]string
	}{
		"nothing": {`{"id":"1","a":1}`, `{"id":"1","a":1}`, map[string]string{}},
		"what every write sets": {
			`{"version":1,"time_modified":"x","a":1}`, `{"version":2,"time_modified":"y","a":1}`, map[string]string{},
		},
		"other values": {
			`{"a":1,"b":{"x":[1,"}"]},"c":"é\""}`, `{"a":2,"b":{"x":[1,"}"],"y":0},"c":"é\""}`,
			map[string]string{"a": "1", "b": `{"x":[1,"}"]}`},
		},
		"a member that is gone":       {`{"a":1,"b":2,"c":3}`, `{"a":1,"c":3}`, map[string]string{"b": "2"}},
		"the last one is gone":        {`{"a":1,"b":2}`, `{"a":1}`, map[string]string{"b": "2"}},
		"a member that is new":        {`{"a":1,"c":3}`, `{"a":1,"b":2,"c":4}`, map[string]string{"c": "3"}},
		"members in another order":    {`{"a":1,"b":2}`, `{"b":2,"a":1}`, map[string]string{}},
		"a name with an escape in it": {`{"a\u0041":1}`, `{"aA":2}`, map[string]string{"aA": "1"}},
		"text that is not UTF-8":      {"{\"a\":\"\xff\"}", `{"a":""}`, map[string]string{"a": "\"\xff\""}},
		"null":                        {`{"a":null}`, `{}`, map[string]string{"a": "null"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := []byte(row.before)
			got := map[string]string{}
			for name, value := range difference(before, []byte(row.after)) {
				got[name] = string(value)
			}
			require.Equal(t, row.want, got)
			require.Equal(t, row.before, string(before), "the document is left as it is")
		})
	}
	require.Nil(t, difference([]byte(`{"a":`), []byte(`{}`)))
}

func BenchmarkDifference(b *testing.B) {
	before, err := json.Marshal(map[string]any{
		"version": 1, "name": "Report", "state": "pending", "payload": map[string]any{"n": []int{1, 2, 3}},
		"time_created": "2026-01-31T09:30:00.000Z", "time_modified": "2026-01-31T09:30:00.000Z", "progress": 0,
	})
	require.NoError(b, err)
	after := []byte(string(before[:len(before)-1]) + `,"result":null}`)
	b.ReportAllocs()
	for b.Loop() {
		if difference(before, after) == nil {
			b.Fatal("the documents cannot be compared")
		}
	}
}
