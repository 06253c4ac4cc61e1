package rest_test

import (
	"reflect"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/rest"
)

type lamp struct {
	Made  string   `json:"time_created" readOnly:"true" doc:"When it was made"`
	Name  string   `json:"name" doc:"What it is called" example:"desk"`
	Watts int      `json:"watts" doc:"What it draws"`
	Tags  []string `json:"tags" nullable:"false"`
	State string   `json:"state" readOnly:"true" enum:"on,off"`
	Dim   bool     `json:"dim" changedBy:"dim-lamp light-lamp"`
}

// LampInput creates a lamp.
type LampInput struct {
	rest.MembersOf[lamp]
	Name  string `json:"name"`
	Watts int    `json:"watts,omitempty" doc:"60 if absent"`
	PIN   string `json:"pin,omitempty" doc:"Not of the record"`
}

func TestMembersOf(t *testing.T) {
	t.Parallel()
	r := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	s := huma.SchemaFromType(r, reflect.TypeFor[LampInput]())
	require.Equal(t, []string{"name"}, s.Required, "a member of the record is optional unless the body says otherwise")
	require.Equal(t, "What it is called", s.Properties["name"].Description, "the record's words")
	require.Equal(t, []any{"desk"}, s.Properties["name"].Examples)
	require.Equal(t, "60 if absent", s.Properties["watts"].Description, "the body's own words")
	require.Equal(t, "Not of the record", s.Properties["pin"].Description)
	require.Equal(t, huma.TypeArray, s.Properties["tags"].Type)
	require.Contains(t, s.Properties, "time_created", "what was read can be sent back")
	require.Equal(t, map[string]any{"x-changed-by": []string{"dim-lamp", "light-lamp"}}, s.Properties["dim"].Extensions)

	check := func(body map[string]any) []error {
		var result huma.ValidateResult
		huma.Validate(r, s, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, body, &result)
		return result.Errors
	}
	require.Empty(t, check(map[string]any{"name": "desk", "state": "dimmed"}), "what is ignored is not checked")
	require.NotEmpty(t, check(map[string]any{}), "the name is missing")
	require.NotEmpty(t, check(map[string]any{"name": "desk", "volts": 1}))

	record := huma.SchemaFromType(r, reflect.TypeFor[lamp]())
	require.Equal(t, []any{"on", "off"}, record.Properties["state"].Enum, "the record's schema stays as it is")
}
