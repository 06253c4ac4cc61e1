package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/schema"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

// catalogueOf is the file with the event types of a service, seen from its tests. The events service serves it.
func catalogueOf(service string) string {
	return filepath.Join("..", "events", "internal", "catalogue", "types", service+".json")
}

// eventType is a type in the catalogue.
type eventType struct {
	Type        string          `json:"type"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Example     json.RawMessage `json:"example"`
}

// EventTypes writes the service's part of the catalogue of event types (see Golden), from an event of each type that it
// tells. start is the time of the test's clock at the first of them. records says which schema of the service's OpenAPI
// document describes the record in the events about a noun, such as user → User. The schema of the members beside it,
// and of all members for a noun without one, follows from the events. All events must agree with the schemas.
func EventTypes(t testing.TB, s *Service, service string, start clock.Time, events []stream.Event,
	records map[string]string) {
	t.Helper()
	document := s.description()
	found, beside := map[string]eventType{}, map[string]map[string]any{}
	for _, e := range events {
		collect(t, beside, strings.TrimPrefix(e.Type, "idp."), e.Data)
	}
	for _, e := range events {
		kind := strings.TrimPrefix(e.Type, "idp.")
		noun, action, _ := strings.Cut(kind, ".")
		listed, known := found[kind]
		if !known {
			listed = eventType{Type: kind, Description: describeType(noun, action), Example: dated(t, start, e.Data)}
			if name, ok := records[noun]; ok {
				require.Contains(t, document.Components.Schemas, name)
				listed.Schema = schemaOfData(t, document.Components.Schemas, name, beside[kind])
			} else {
				listed.Schema = marshal(t, inferred(t, e.Data))
			}
			found[kind] = listed
		}
		checker, err := schema.Compile(listed.Schema)
		require.NoError(t, err, kind)
		var faults apperr.Faults
		checker.Check(&faults, dated(t, start, e.Data))
		require.NoError(t, faults.Err(), "an event of the type %s does not agree with its schema", kind)
	}
	var all []eventType
	for _, one := range found {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b eventType) int { return strings.Compare(a.Type, b.Type) })
	text := bytes.NewBufferString("[\n")
	for i, one := range all { // a line for each schema and each example, so that changes are easy to read
		fmt.Fprintf(text, `{"type": %q, "description": %q,`+"\n"+`"schema": %s,`+"\n"+`"example": %s}`,
			one.Type, one.Description, compact(t, one.Schema), compact(t, one.Example))
		text.WriteString(map[bool]string{true: "\n]\n", false: ",\n"}[i == len(all)-1])
	}
	basic.Golden(t, catalogueOf(service), text.Bytes())
}

// TestTells says that the test itself publishes the events about a noun, which need not be in the catalogue.
func (s *Service) TestTells(noun string) { s.foreign = noun }

// inCatalogue checks that the catalogue has the type of an event that the service tells.
func (s *Service) inCatalogue(eventType string) {
	s.t.Helper()
	text, err := os.ReadFile(catalogueOf(s.unit.Name))
	kind := strings.TrimPrefix(eventType, "idp.")
	if err != nil || os.Getenv("IDP_TEST_UPDATE") == "1" || s.foreign != "" && strings.HasPrefix(kind, s.foreign+".") {
		return // a service without a file is one of a package's tests, not of the platform
	}
	assert.True(s.t, strings.Contains(string(text), fmt.Sprintf(`"type": %q`, kind)),
		"the catalogue of event types lacks %s, which the service tells; see EventTypes", kind)
}

func compact(t testing.TB, text json.RawMessage) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, json.Compact(&b, text))
	return b.Bytes()
}

// describeType says what a type means, such as: A node was moved. The login of a user failed.
func describeType(noun, action string) string {
	subject := words(noun)
	article := "a "
	if strings.ContainsAny(subject[:1], "aeio") { // u is that of user and unit
		article = "an "
	}
	verb := "was "
	if strings.HasSuffix(subject, "settings") {
		article, verb = "the ", "were "
	}
	subject = article + subject
	switch i := strings.LastIndex(action, "_"); {
	case action == "stepped_up":
		action = words(action)
	case i > 0:
		subject, action = "the "+words(action[:i])+" of "+subject, action[i+1:]
	}
	switch action {
	case "ended", "expired", "failed", "finished", "resigned":
		verb = ""
	case "failing", "gone":
		verb = "is "
	}
	return strings.ToUpper(subject[:1]) + subject[1:] + " " + verb + action + "."
}

// words are those of a name, such as: KV object.
func words(name string) string {
	all := strings.Split(strings.ReplaceAll(name, "sign_in", "sign-in"), "_")
	for i, word := range all {
		switch word {
		case "idp", "kv", "mfa", "saml", "scim", "sso":
			all[i] = strings.ToUpper(word)
		}
	}
	return strings.Join(all, " ")
}

// dated moves the times in an example from the time of the test to a fixed day, so that they are the same in every run.
func dated(t testing.TB, start clock.Time, data []byte) json.RawMessage {
	base := time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC)
	data = sinceForm.ReplaceAllFunc(data, func(b []byte) []byte { // times that Since has replaced
		after, err := time.ParseDuration(strings.TrimPrefix(string(b), "start + "))
		require.NoError(t, err)
		return []byte(start.Add(after).String())
	})
	return basic.TimeForm.ReplaceAllFunc(data, func(b []byte) []byte {
		moment, err := clock.Parse(string(b))
		require.NoError(t, err)
		return []byte(clock.Of(base.Add(moment.Sub(start))).String())
	})
}

var sinceForm = regexp.MustCompile(`start \+ [0-9hms.]+`)

// collect adds the members beside the record in an event's data to the schemas of those of its type. A member whose
// values differ in type may have any.
func collect(t testing.TB, beside map[string]map[string]any, kind string, data json.RawMessage) {
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &members))
	if beside[kind] == nil {
		beside[kind] = map[string]any{}
	}
	for name, member := range members {
		if name == "record" || name == "previous" {
			continue
		}
		described := inferred(t, member)
		if before, again := beside[kind][name]; again && !reflect.DeepEqual(before, described) {
			described = map[string]any{}
		}
		beside[kind][name] = described
	}
}

// schemaOfData is the schema of an event's data with a record that a component of the document describes, and other
// members beside it. Records may have further members.
func schemaOfData(t testing.TB, components map[string]any, name string, beside map[string]any) json.RawMessage {
	defs := map[string]any{}
	var need func(name string)
	var open func(v any) any
	open = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			copied := map[string]any{}
			for key, member := range v {
				if ref, ok := member.(string); ok && key == "$ref" {
					name := strings.TrimPrefix(ref, "#/components/schemas/")
					need(name)
					copied[key] = "#/$defs/" + name
				} else if key != "additionalProperties" || member != false {
					copied[key] = open(member)
				}
			}
			return copied
		case []any:
			copied := make([]any, len(v))
			for i := range v {
				copied[i] = open(v[i])
			}
			return copied
		}
		return v
	}
	need = func(name string) {
		if _, ok := defs[name]; !ok {
			defs[name] = nil
			defs[name] = open(components[name])
		}
	}
	need(name)
	properties := map[string]any{
		"record":   map[string]any{"$ref": "#/$defs/" + name},
		"previous": map[string]any{"type": "object", "description": "The former values of changed members"},
	}
	maps.Copy(properties, beside)
	return marshal(t, map[string]any{
		"type": "object", "required": []string{"record"}, "$defs": defs, "properties": properties,
	})
}

// inferred makes a schema from an example: the names and types of its members.
func inferred(t testing.TB, example json.RawMessage) map[string]any {
	var v any
	require.NoError(t, json.Unmarshal(example, &v))
	switch v := v.(type) {
	case map[string]any:
		properties := map[string]any{}
		for name, member := range v {
			properties[name] = inferred(t, marshal(t, member))
		}
		return map[string]any{"type": "object", "properties": properties}
	case []any:
		array := map[string]any{"type": "array"}
		for i, item := range v {
			of := inferred(t, marshal(t, item))
			if i > 0 && !reflect.DeepEqual(of, array["items"]) {
				return map[string]any{"type": "array"}
			}
			array["items"] = of
		}
		return array
	case string:
		return map[string]any{"type": "string"}
	case float64:
		return map[string]any{"type": "number"}
	case bool:
		return map[string]any{"type": "boolean"}
	}
	return map[string]any{}
}

func marshal(t testing.TB, v any) json.RawMessage {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}
