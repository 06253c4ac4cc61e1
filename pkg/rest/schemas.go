package rest

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/problem"
	"github.com/idplatform/idplatform/pkg/secret"
)

// schemaPath is where the document has its schemas.
const schemaPath = "#/components/schemas/"

// components are the parts of the document that all operations share. names are those of schemas that do not have the
// name of their type.
func components(names map[reflect.Type]string) *huma.Components {
	schemas := huma.NewMapRegistry(schemaPath, func(t reflect.Type, hint string) string {
		return cmp.Or(names[deref(t)], schemaName(t, hint))
	})
	schemas.RegisterTypeAlias(reflect.TypeFor[clock.Time](), reflect.TypeFor[time.Time]())
	schemas.RegisterTypeAlias(reflect.TypeFor[json.RawMessage](), reflect.TypeFor[map[string]any]())
	schemas.RegisterTypeAlias(reflect.TypeFor[secret.Text](), reflect.TypeFor[string]())
	schemas.RegisterTypeAlias(reflect.TypeFor[docstore.Flag](), reflect.TypeFor[flagSchema]())
	schemas.Schema(reflect.TypeFor[problem.Document](), true, "")
	text := &huma.Schema{Type: huma.TypeString}
	parameter := func(name, in, description string) *huma.Param {
		return &huma.Param{Name: name, In: in, Description: description, Schema: text}
	}
	return &huma.Components{
		Schemas: schemas,
		SecuritySchemes: map[string]*huma.SecurityScheme{"bearer": {
			Type: "http", Scheme: "bearer", BearerFormat: "JWT",
			Description: "A token of the platform or of a configured OIDC issuer",
		}},
		Headers: map[string]*huma.Header{
			"ETag": {Description: "The version of the record, for If-Match and If-None-Match", Schema: text},
		},
		Parameters: map[string]*huma.Param{
			"DryRun": parameter("dry_run", "query",
				"true: everything is checked and answered as it would be, nothing is changed"),
			"IdempotencyKey": parameter("Idempotency-Key", "header",
				"1…255 printable ASCII characters: the same key and request within 24 h gets the first answer again"),
			"IfMatch": parameter("If-Match", "header", "The ETag that the record must still have; else 412"),
			"IfNoneMatch": parameter("If-None-Match", "header",
				"The ETag that the client has; 304 if it is still the record's"),
			"PayloadOrigin": parameter("X-Payload-Origin", "header",
				"Opaque, up to 4096 bytes; lands in the events' payloadorigin"),
			"TenantID": parameter("X-Tenant-Id", "header",
				"The caller's tenant; another one only with scope platform:admin"),
		},
	}
}

// schemaName names a schema after its Go type, in UpperCamelCase. A wrapper's name follows that of its content
// (ThingBatch); a body without a named type is named after its operation (DeleteThingsRequest).
func schemaName(t reflect.Type, hint string) string {
	if t.Name() == "" && strings.Contains(hint, "-") {
		return camel(hint)
	}
	name := huma.DefaultSchemaNamer(t, hint)
	if item, ok := strings.CutPrefix(name, "BatchOf"); ok && strings.HasSuffix(t.Name(), "]") {
		return item + "Batch"
	}
	if name == "Document" {
		return "Problem"
	}
	if what, ok := strings.CutSuffix(name, "Body"); ok {
		return what + "Request"
	}
	return name
}

// Named names the schema of T in the document of a server, instead of by the type's own name. It panics after an
// operation that has T.
func Named[T any](s *Server, schema string) {
	t := reflect.TypeFor[T]()
	s.mustBeNew(t)
	s.names[t] = schema
}

// DescribedAs gives T, in the document of a server, the schema of another type: of what its JSON is. It panics after an
// operation that has T, if T is a struct; if it is not, only the document shows the mistake.
func DescribedAs[T, Other any](s *Server) {
	t := reflect.TypeFor[T]()
	s.mustBeNew(t)
	s.api.OpenAPI().Components.Schemas.RegisterTypeAlias(t, reflect.TypeFor[Other]())
}

// mustBeNew panics if the document has a schema of a type already: of an operation that came before.
func (s *Server) mustBeNew(t reflect.Type) {
	if s.names[t] == "" && s.api.OpenAPI().Components.Schemas.TypeFromRef(schemaPath+schemaName(t, "")) == t {
		panic(t.String() + " is described after an operation that has it")
	}
}

// camel turns delete-things-request into DeleteThingsRequest.
func camel(kebab string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(kebab, "-") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
