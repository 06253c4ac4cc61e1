package openapi_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/openapi"
)

// change puts a schema into a document, applies to to the document, and returns the changed schema.
func change(t *testing.T, schema string, to func(map[string]any)) string {
	t.Helper()
	document, err := openapi.Parse([]byte(
		`{"openapi":"3.1.0","webhooks":{},"components":{"schemas":{"name":{"type":"string"},"type":` + schema + `}}}`))
	require.NoError(t, err)
	to(document)
	changed, err := json.Marshal(document["components"].(map[string]any)["schemas"].(map[string]any)["type"])
	require.NoError(t, err)
	return string(changed)
}

func TestFinish(t *testing.T) {
	t.Parallel()
	for before, after := range map[string]string{
		`{"type":["string","null"],"enum":["1","0"]}`:                         `{"type":["string","null"],"enum":["1","0",null]}`,
		`{"type":["string","null"],"enum":["1",null]}`:                        `{"type":["string","null"],"enum":["1",null]}`,
		`{"type":"string","enum":["1"]}`:                                      `{"type":"string","enum":["1"]}`,
		`{"properties":{"enum":{"type":["string","null"],"enum":["1"]}}}`:     `{"properties":{"enum":{"type":["string","null"],"enum":["1",null]}}}`,
		`{"example":{"type":["string","null"],"enum":["1"]}}`:                 `{"example":{"type":["string","null"],"enum":["1"]}}`,
		`{"items":{"anyOf":[{"type":["integer","null"],"enum":[1]}]},"a":[]}`: `{"items":{"anyOf":[{"type":["integer","null"],"enum":[1,null]}]},"a":[]}`,
	} {
		require.JSONEq(t, after, change(t, before, openapi.Finish))
	}
}

func TestDowngrade(t *testing.T) {
	t.Parallel()
	for before, after := range map[string]string{
		`{"type":["string","null"],"enum":["1","0",null]}`:           `{"type":"string","nullable":true,"enum":["1","0"]}`,
		`{"examples":["a","b"],"type":"string"}`:                     `{"example":"a","type":"string"}`,
		`{"examples":[],"type":"string"}`:                            `{"type":"string"}`,
		`{"exclusiveMinimum":0,"exclusiveMaximum":9007199254740993}`: `{"minimum":0,"exclusiveMinimum":true,"maximum":9007199254740993,"exclusiveMaximum":true}`,
		`{"const":1}`: `{"enum":[1]}`,
		`{"type":"string","contentEncoding":"base64"}`: `{"type":"string","format":"byte"}`,
		`{"anyOf":[{"$ref":"#/x"},{"type":"null"}]}`:   `{"allOf":[{"$ref":"#/x"}],"nullable":true,"type":"object"}`,
		`{"anyOf":[{"$ref":"#/components/schemas/name"},{"type":"null"}]}`: `{"allOf":[{"$ref":"#/components/schemas/name"}],` +
			`"nullable":true,"type":"string"}`,
		`{"$ref":"#/x","description":"beside"}`:        `{"allOf":[{"$ref":"#/x"}],"description":"beside"}`,
		`{"anyOf":[{"$ref":"#/x"},{"type":"string"}]}`: `{"anyOf":[{"$ref":"#/x"},{"type":"string"}]}`,
		`{"properties":{"examples":{"type":["object","null"]},"const":{}}}`: `{"properties":` +
			`{"examples":{"type":"object","nullable":true},"const":{}}}`,
		`{"default":{"type":["a","null"]}}`: `{"default":{"type":["a","null"]}}`,
		`{"example":{"const":1}}`:           `{"example":{"const":1}}`,
	} {
		require.JSONEq(t, after, change(t, before, openapi.Downgrade))
	}
	document, err := openapi.Parse([]byte(`{"openapi":"3.1.0","webhooks":{},"jsonSchemaDialect":"x","paths":{}}`))
	require.NoError(t, err)
	openapi.Downgrade(document)
	require.Equal(t, map[string]any{"openapi": "3.0.3", "paths": map[string]any{}}, document)
	_, err = openapi.Parse([]byte(`nothing`))
	require.Error(t, err)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	const head = `"servers":[{"url":"/"}],"security":[]`
	for document, faults := range map[string]int{
		`{"openapi":"3.1.0",` + head + `}`: 0,
		`{"openapi":"3.1.0","paths":{}}`:   1,
		`{"openapi":"3.1.0","servers":[{"url":"/"}],"paths":{"/x":{"get":{"responses":{}}}}}`:                             1,
		`{"openapi":"3.1.0","servers":[{"url":"/"}],"paths":{"/x":{"get":{"responses":{},"security":[]}}}}`:               0,
		`{"openapi":"3.1.0",` + head + `,"paths":{"/x/{a}/y":{},"/x/{b}/y":{},"/x/{a}":{}}}`:                              1,
		`{"openapi":"3.1.0",` + head + `,"paths":{"/x":{"get":{"operationId":"a"},"put":{"operationId":"a"}}}}`:           1,
		`{"openapi":"3.1.0",` + head + `,"paths":{"/x":{"get":{"operationId":"a"},"put":{}},"/y":{"get":{}}}}`:            0,
		`{"openapi":"3.0.3",` + head + `,"components":{"schemas":{"a":{"nullable":true}}}}`:                               1,
		`{"openapi":"3.1.0",` + head + `,"components":{"schemas":{"a":{"properties":{"b":{},"c":{"description":"C"}}}}}}`: 1,
		`{"openapi":"3.0.3",` + head + `,"components":{"schemas":{"a":{"$ref":"#/b","description":""}}}}`:                 1,
		`{"openapi":"3.1.0",` + head + `,"components":{"schemas":{"a":{"$ref":"#/b","description":""}}}}`:                 0,
	} {
		parsed, err := openapi.Parse([]byte(document))
		require.NoError(t, err)
		require.Len(t, openapi.Faults(parsed), faults, document)
	}
}
