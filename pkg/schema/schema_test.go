package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/schema"
)

const example = `{
	"type": "object",
	"properties": {
		"Host": {"type": "string", "pattern": "^[a-z.]+$", "minLength": 2, "maxLength": 9},
		"Port": {"type": "integer", "minimum": 1, "maximum": 65535},
		"From": {"type": "string", "format": "email"},
		"Mode": {"enum": ["tls", "none"]},
		"Scopes": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 2, "uniqueItems": true},
		"Kind": {"const": "a"},
		"Odd": {"multipleOf": 3},
		"Url": {}, "Text": {}
	},
	"required": ["Host"],
	"additionalProperties": false,
	"dependentRequired": {"Port": ["From"]},
	"oneOf": [{"required": ["Url"]}, {"required": ["Text"]}]
}`

func TestCheck(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile([]byte(example))
	require.NoError(t, err)
	for value, want := range map[string][]string{
		`{"Host": "a.b", "Url": 1, "Port": 25, "From": "a@b.test"}`: nil,
		`{`:                                     {"must be JSON"},
		`[]`:                                    {"must be of type object"},
		`{"Url": 1, "secret":1}`:                {"Host is missing", "secret is unknown"},
		`{"Host": "a.b"}`:                       {"must have one of Text, Url"},
		`{"Host": "a.b", "Url": 1, "Text": 1}`:  {"must have only one of the alternatives"},
		`{"Host": "a.b", "Url": 1, "Port": 25}`: {"From is missing; it goes with Port"},
		`{"Host": "SECRET", "Url": 1}`:          {"Host must match ^[a-z.]+$"},
		`{"Host": "a", "Url": 1}`:               {"Host must have at least 2 characters"},
		`{"Host": "aaaaaaaaaa", "Url": 1}`:      {"Host must have at most 9 characters"},
		`{"Host": 1, "Url": 1}`:                 {"Host must be of type string"},
		`{"Host": "a.b", "Url": 1, "Port": 0, "From": "a@b.test"}`:     {"Port must be at least 1"},
		`{"Host": "a.b", "Url": 1, "Port": 65536, "From": "a@b.test"}`: {"Port must be at most 65535"},
		`{"Host": "a.b", "Url": 1, "From": "SECRET"}`:                  {"From must have the format email"},
		`{"Host": "a.b", "Url": 1, "Mode": "SECRET"}`:                  {`Mode must be one of "tls", "none"`},
		`{"Host": "a.b", "Url": 1, "Kind": "SECRET"}`:                  {`Kind must be "a"`},
		`{"Host": "a.b", "Url": 1, "Odd": 4}`:                          {`Odd does not satisfy the keyword "multipleOf" of its schema`},
		`{"Host": "a.b", "Url": 1, "Scopes": []}`:                      {"Scopes must have at least 1 entries"},
		`{"Host": "a.b", "Url": 1, "Scopes": ["a", "b", "c"]}`:         {"Scopes must have at most 2 entries"},
		`{"Host": "a.b", "Url": 1, "Scopes": ["a", "a"]}`:              {"Scopes must not have an entry twice"},
		`{"Host": "a.b", "Url": 1, "Scopes": ["a", ""]}`:               {"Scopes[1] must have at least 1 characters"},
	} {
		var faults apperr.Faults
		s.Check(&faults, []byte(value))
		if want == nil {
			require.NoError(t, faults.Err(), value)
			continue
		}
		refusal, ok := errors.AsType[*apperr.Error](faults.Err())
		require.True(t, ok, value)
		var told []string
		for _, fault := range refusal.Faults {
			told = append(told, strings.TrimSpace(fault.Location+" "+fault.Message))
		}
		require.ElementsMatch(t, want, told, value)
		require.NotContains(t, refusal.Error(), "SECRET")
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON":            `{`,
		"no schema":          `{"type": "elephant"}`,
		"another document":   `{"$ref": "https://schemas.test/other.json"}`,
		"a file":             `{"$ref": "file:///etc/passwd"}`,
		"a reference to air": `{"$ref": "#/$defs/none"}`,
	} {
		_, err := schema.Compile([]byte(text))
		require.Error(t, err, name)
	}
}
