package testkit

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/secret"
)

// markedSecrets: the document says which operations show a new secret, and which members of bodies are secrets. Clients
// ask for a recent sign-in before the former, and keep the latter out of files and logs.
func markedSecrets(t *testing.T, s *Service, r Resource) {
	doc, operations := s.description(), s.operations()
	for _, o := range operations {
		isSecret := func(schema map[string]any) bool { return schema["format"] == "password" }
		if o.Method == http.MethodDelete {
			continue // marked if it deletes many records
		}
		assert.Equal(t, doc.has(o.answerSchema(), isSecret, map[string]bool{}), o.Fresh != "",
			"%s must have Fresh if a member of its answer has the format password, and only then", o.OperationID)
	}
	c := s.As("acme", auth.PlatformAdmin)
	for name, described := range r.Secrets {
		if described.Make == nil {
			continue
		}
		path := described.Make(c)
		record, writes := c.Get(path).Object(), 0
		for _, o := range operations {
			if (o.Method == http.MethodPut || o.Method == http.MethodPatch) && o.takesJSON() && o.isAt(path) {
				schema := doc.decode(o.RequestBody.Content["application/json"].Schema)
				assert.Empty(t, doc.unmarked(record, schema, "body"),
					"%s: members that read as a mask must be writeOnly in bodies", o.OperationID)
				writes++
			}
		}
		assert.Positive(t, writes, "%s: no operation changes %s", name, path)
	}
}

// isAt reports whether the operation is at a path.
func (o operation) isAt(path string) bool {
	pattern := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(o.Path, `[^/]+`)
	return regexp.MustCompile("^" + pattern + "$").MatchString(path)
}

// answerSchema is the schema of the JSON that the operation answers with.
func (o operation) answerSchema() any {
	var response struct {
		Content map[string]struct{ Schema any }
	}
	_ = json.Unmarshal(o.Responses["200"], &response) // an answer without JSON has no schema
	return response.Content["application/json"].Schema
}

func (d description) decode(schema json.RawMessage) (decoded any) {
	_ = json.Unmarshal(schema, &decoded) // it is a part of valid JSON
	return decoded
}

// resolve follows references, and returns nil for what is no schema.
func (d description) resolve(schema any) map[string]any {
	for {
		object, _ := schema.(map[string]any)
		ref, is := object["$ref"].(string)
		if !is {
			return object
		}
		schema = d.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
	}
}

// has reports whether a schema, or one of something inside, is such a one. seen are the references that were followed.
func (d description) has(schema any, is func(map[string]any) bool, seen map[string]bool) bool {
	object, _ := schema.(map[string]any)
	if ref, refers := object["$ref"].(string); refers {
		if seen[ref] {
			return false
		}
		seen[ref] = true
		object = d.resolve(object)
	}
	if is(object) {
		return true
	}
	properties, _ := object["properties"].(map[string]any)
	for _, property := range properties {
		if d.has(property, is, seen) {
			return true
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if inner, nested := object[name].(map[string]any); nested && d.has(inner, is, seen) {
			return true
		}
	}
	return false
}

// unmarked returns the places of masks in a value for which its schema does not say that they are secrets. It leaves
// out what the schema does not describe.
func (d description) unmarked(value, schema any, place string) (places []string) {
	object := d.resolve(schema)
	if len(object) == 0 || object["writeOnly"] == true || object["readOnly"] == true {
		return nil
	}
	switch v := value.(type) {
	case string:
		if v == secret.Mask {
			places = append(places, place)
		}
	case []any:
		for _, item := range v {
			places = append(places, d.unmarked(item, object["items"], place+"[]")...)
		}
	case map[string]any:
		properties, _ := object["properties"].(map[string]any)
		for name, member := range v {
			inner, known := properties[name]
			if !known {
				inner = object["additionalProperties"]
			}
			places = append(places, d.unmarked(member, inner, place+"."+name)...)
		}
	}
	return places
}
