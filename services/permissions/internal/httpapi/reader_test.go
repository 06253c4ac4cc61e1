package httpapi

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/rest"
)

const wholeCheck = `{"identity_id":"17","identity_type":"user","application_id":"9","object_type":"api","uri":"/a b",` +
	`"method":"GET","object_code":"é","object_id":"","action":"read","context":{"a":{"b":"}{"},"c":[{},"x"]},` +
	`"subject_properties":{},"resource_properties": { "x" : 1.50 } , "action_properties":{"n":null}}`

func bodyOf[W any](t *testing.T, text string) (body rest.JSON[W]) {
	t.Helper()
	require.NoError(t, body.UnmarshalJSON([]byte(text)))
	return body
}

// The reader reads what the general decoder would read, and leaves to it what it does not expect.
func TestReader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body  string
		reads bool
	}{
		{`{"checks":[` + wholeCheck + `]}`, true},
		{` { "checks" : [ { "action" : "x" , "uri" : "y" } , ` + wholeCheck + ` ] } `, true},
		{`{"checks":[]}`, true},
		{`{"checks":[{"action":"a\n"}]}`, false},
		{`{"checks":[{"context":{"\u007d":1}}]}`, false},
		{`{"checks":[{"action":null}]}`, false},
		{`{"checks":[{"context":null}]}`, false},
		{`{"checks":null}`, false},
		{`{}`, false},
	} {
		r, ok := newReader(c.body)
		require.Equal(t, c.reads, ok && r.batch(&batch{}), c.body)
		requireSame(t, c.body)
	}
}

// A batch is as long as its body says, and lacks what the body lacks, also in memory that held a longer one.
func TestReusedBatch(t *testing.T) {
	t.Parallel()
	b := &batch{}
	require.NoError(t, b.read(bodyOf[Checks](t, `{"checks":[`+wholeCheck+strings.Repeat(","+wholeCheck, 5)+`]}`)))
	require.Len(t, b.Checks, 6)
	clear(b.Checks) // as release does
	b.Checks = b.Checks[:0]
	for _, text := range []string{`{"checks":[{"action":"a"},{"uri":"u"}]}`, `{"checks":[{"action":"\u0061"},{"uri":"u"}]}`} {
		require.NoError(t, b.read(bodyOf[Checks](t, text)))
		require.Equal(t, []asked{{Action: "a"}, {URI: "u"}}, b.Checks)
		clear(b.Checks)
		b.Checks = b.Checks[:0]
	}
}

// requireSame reads a batch in both ways.
func requireSame(t *testing.T, text string) {
	t.Helper()
	r, ok := newReader(text)
	var read, decoded batch
	if !ok || !r.batch(&read) {
		return
	}
	require.NoError(t, bodyOf[Checks](t, text).Into(&decoded), text)
	require.Len(t, read.Checks, len(decoded.Checks))
	for i := range decoded.Checks {
		require.Equal(t, decoded.Checks[i], read.Checks[i], text)
	}
}

// FuzzReader reads whatever rest lets through: JSON in UTF-8.
func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"checks":[` + wholeCheck + `]}`))
	f.Add([]byte(` { "checks" : [ { "action" : "x" , "context" : {"a":"{\"","b":[]} } , {} ] } `))
	f.Fuzz(func(t *testing.T, body []byte) {
		if utf8.Valid(body) && json.Valid(body) {
			requireSame(t, string(body))
		}
	})
}

func BenchmarkReader(b *testing.B) {
	text := `{"checks":[` + wholeCheck + strings.Repeat(","+wholeCheck, 99) + `]}`
	var body rest.JSON[Checks]
	require.NoError(b, body.UnmarshalJSON([]byte(text)))
	for name, read := range map[string]func(*batch) error{
		"reader":  func(to *batch) error { return to.read(body) },
		"decoder": func(to *batch) error { return body.Into(to) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				var to batch
				require.NoError(b, read(&to))
			}
		})
	}
}
