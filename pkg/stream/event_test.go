package stream

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const eventJSON = `{"specversion":"1.0","id":"0190","source":"/users","type":"idp.user.created","subject":"1048576",
"time":"2026-01-31T09:30:00.123Z","datacontenttype":"application/json","tenantid":"acme","actor":"1","requestid":"r","traceparent":"t",
"payloadorigin":"山田","sequence":"9007199254740993","future":true,"data":{"record":{"name":"山田"}}}`

func TestDecode(t *testing.T) {
	t.Parallel()
	e, err := Decode("idp.events.acme.user.created", []byte(eventJSON))
	require.NoError(t, err)
	require.Equal(t, "2026-01-31T09:30:00.123Z", e.Time.String())
	require.NotEmpty(t, e.JSON)
	e.Time, e.JSON = Event{}.Time, nil
	require.Equal(t, Event{ID: "0190", Source: "/users", Type: "idp.user.created", Subject: "1048576", Tenant: "acme",
		Actor: "1", RequestID: "r",
		TraceParent: "t", PayloadOrigin: "山田", Sequence: 9007199254740993,
		Data: json.RawMessage(`{"record":{"name":"山田"}}`)}, e)
	require.Equal(t, "acme/users/1048576", e.Record())
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"another version of CloudEvents":  {`"1.0"`, `"0.3"`},
		"no id":                           {`"id":"0190"`, `"id":""`},
		"no source":                       {`"source"`, `"sauce"`},
		"no subject":                      {`"subject":"1048576"`, `"subject":""`},
		"a sequence that is not a number": {`"9007199254740993"`, `"nine"`},
		"sequence zero":                   {`"9007199254740993"`, `"0"`},
		"a sequence that is too large":    {`"9007199254740993"`, `"9223372036854775808"`},
		"another tenant than its subject": {`"tenantid":"acme"`, `"tenantid":"other"`},
		"another type than its subject":   {`user.created`, `user.deleted`},
		"an invalid time":                 {`2026-01-31T09:30:00.123Z`, `yesterday`},
		"no JSON":                         {`{`, `[`},
	} {
		_, err := Decode("idp.events.acme.user.created", []byte(strings.Replace(eventJSON, change[0], change[1], 1)))
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "山田", name)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("idp.events.acme.user.created", []byte(eventJSON))
	f.Add("", []byte(`{}`))
	f.Fuzz(func(t *testing.T, subject string, payload []byte) {
		e, err := Decode(subject, payload)
		if err != nil {
			require.Empty(t, e.ID)
			return
		}
		require.NotEmpty(t, e.ID)
		require.Positive(t, e.Sequence)
		require.True(t, strings.HasPrefix(subject, "idp.events."+e.Tenant+"."))
	})
}

// Read and ReadJSON read what encoding/json reads, and tell no content when they cannot.
func TestRead(t *testing.T) {
	t.Parallel()
	type data struct {
		Record struct {
			Name  string          `json:"name"`
			Count int             `json:"count"`
			Rest  json.RawMessage `json:"rest"`
		} `json:"record"`
	}
	for text, fault := range map[string]string{
		`{"record":{"name":"王","count":2,"rest":{"b":1,"a":[]},"other":1},"previous":null}`: "",
		`{"record":{"name":"a","Name":"b","count":2,"count":3}}`:                            "",
		`{"record":null}`:                        "",
		`{}`:                                     "",
		"{\"record\":{\"name\":\"\xff\"}}":       "",
		`{"record":{"name":"a","count":"hush"}}`: `the event's member "/record/count" cannot be read as int`,
		`{"record":["hush"]}`:                    `the event's member "/record" cannot be read as`,
		`{"record":{"hush"`:                      "the event's content is not JSON",
		``:                                       "the event's content is not JSON",
	} {
		var want, got data
		wrong := json.Unmarshal([]byte(text), &want)
		err := (&Event{Data: []byte(text)}).Read(&got)
		if fault == "" {
			require.NoError(t, wrong, text)
			require.NoError(t, err, text)
			require.Equal(t, want, got, text)
			continue
		}
		require.Error(t, wrong, text)
		require.ErrorContains(t, err, fault, text)
		require.NotContains(t, err.Error(), "hush")
	}
}
