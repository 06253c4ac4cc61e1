package rest

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/openapi"
	"github.com/idplatform/idplatform/pkg/problem"
)

// Tagged returns the server for operations about one noun. The document lists them together under the noun; the
// sentence describes it.
func (s *Server) Tagged(noun, sentence string) *Server {
	document := s.api.OpenAPI()
	document.Tags = append(document.Tags, &huma.Tag{Name: noun, Description: sentence})
	tagged := *s
	tagged.tag = noun
	return &tagged
}

// describe makes the operation's part of the document, from the types of its input and of its answer's body.
func (s *Server) describe(op *Op, input, output reflect.Type) huma.Operation {
	registry := s.api.OpenAPI().Components.Schemas
	o := huma.Operation{
		OperationID: op.ID, Method: op.Method, Path: op.Path, Summary: op.Summary, Description: op.Doc,
		Tags: []string{s.tag}, Deprecated: op.Deprecated != nil, Extensions: op.marks(),
		Responses:     map[string]*huma.Response{strconv.Itoa(op.success()): success(registry, op, output)},
		DefaultStatus: op.success(),
		RequestBody:   requestBody(registry, op, input),
		MaxBodyBytes:  -1, BodyReadTimeout: -1, // readBody handles both
	}
	if op.CatchAllParam != "" {
		o.Metadata = map[string]any{slashesKey: op.CatchAllParam}
	}
	o.Security = []map[string][]string{} // says that the operation is open
	if !op.open() {
		o.Security = []map[string][]string{{"bearer": op.scopeNames()}}
	}
	for _, name := range sharedParameters(op, output) {
		if declares(input, s.api.OpenAPI().Components.Parameters[name]) {
			continue // huma adds the input's own
		}
		o.Parameters = append(o.Parameters, &huma.Param{Ref: "#/components/parameters/" + name})
	}
	if op.Method == http.MethodGet && isTagged(output) {
		o.Responses["304"] = &huma.Response{Description: "Not modified"}
	}
	describeErrors(&o, registry, op)
	return o
}

// marks are the extensions of an operation, nil if it has none.
func (op *Op) marks() map[string]any {
	marks := map[string]any{}
	if op.Scope != "" {
		marks["x-scope"] = strings.Join(op.scopeNames(), " ")
	}
	if op.NoReplay {
		marks["x-momentary"] = true
	}
	if op.RecentSignIn != "" {
		marks["x-fresh"] = op.RecentSignIn
	}
	if op.ErrorPage != nil {
		marks["x-page"] = true
		if op.CrossSite {
			marks["x-cross-site"] = true
		}
	}
	if op.Lenient {
		marks["x-lenient"] = true
	}
	if op.MaxBody != maxBody {
		marks["x-max-body"] = op.MaxBody
	}
	if op.Experimental {
		marks["x-development-status"] = "developing"
	}
	if len(marks) == 0 {
		return nil
	}
	return marks
}

func (op *Op) scopeNames() []string {
	names := []string{} // not null in the document
	for _, scope := range op.scopes() {
		names = append(names, string(scope))
	}
	return names
}

// success describes the answer of an operation that has done its work.
func success(registry huma.Registry, op *Op, output reflect.Type) *huma.Response {
	ok := &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{}, Headers: map[string]*huma.Header{}}
	if isTagged(output) {
		ok.Headers["ETag"] = &huma.Header{Ref: "#/components/headers/ETag"}
	}
	if op.Deprecated != nil {
		text := &huma.Schema{Type: huma.TypeString}
		ok.Headers["Deprecation"] = &huma.Header{Description: "Since when (RFC 9745)", Schema: text}
		ok.Headers["Link"] = &huma.Header{Description: "What to use instead: rel=successor-version", Schema: text}
	}
	if op.success() == http.StatusNoContent {
		return &huma.Response{Description: "No content"}
	}
	if op.SCIM != nil {
		schema := registry.Schema(output, true, op.ID+"-response")
		ok.Content = scimContent(&huma.MediaType{Schema: schema, Example: op.Response})
		return ok
	}
	if len(op.ContentTypes) == 0 || op.ContentTypes[0] == "application/json" {
		schema := registry.Schema(output, true, op.ID+"-response")
		example := exampleOf(registry, schema, op.Response)
		ok.Content["application/json"] = &huma.MediaType{Schema: schema, Example: example}
	}
	for _, contentType := range op.ContentTypes {
		if contentType == "application/json" {
			continue
		}
		text := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}, Example: op.Response}
		if ok.Content["application/json"] != nil {
			text.Example = nil // the example is that of the JSON
		}
		ok.Content[contentType] = text
	}
	return ok
}

// requestBody describes the body of an operation, nil if it has none.
func requestBody(registry huma.Registry, op *Op, input reflect.Type) *huma.RequestBody {
	if len(op.Consumes) > 0 {
		described := &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{}}
		for _, contentType := range op.Consumes {
			described.Content[contentType] = &huma.MediaType{
				Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}, Example: op.Request,
			}
		}
		return described
	}
	body, has := input.FieldByName("Body")
	if !has {
		return nil
	}
	if op.SCIM != nil {
		schema := huma.SchemaFromField(registry, body, op.ID+"-request")
		content := scimContent(&huma.MediaType{Schema: schema, Example: op.Request})
		return &huma.RequestBody{Required: true, Content: content}
	}
	schema := huma.SchemaFromField(registry, body, op.ID+"-request")
	content := &huma.MediaType{Schema: schema, Example: exampleOf(registry, schema, op.Request)}
	types := map[string]*huma.MediaType{"application/json": content}
	if op.Method == http.MethodPatch {
		types[mergePatchType] = content
	}
	return &huma.RequestBody{Required: op.jsonBody == required, Content: types}
}

// declares reports whether the operation's input has a parameter of this name and place itself.
func declares(input reflect.Type, p *huma.Param) bool {
	for _, field := range reflect.VisibleFields(input) {
		if field.Tag.Get(p.In) == p.Name {
			return true
		}
	}
	return false
}

// describeErrors adds a response for each status of the operation's errors.
func describeErrors(o *huma.Operation, registry huma.Registry, op *Op) {
	errorType, errorSchema := problem.ContentType, &huma.Schema{Ref: "#/components/schemas/Problem"}
	switch {
	case op.ErrorPage != nil:
		errorType, errorSchema = "text/html", &huma.Schema{Type: huma.TypeString}
	case op.OAuth:
		errorType, errorSchema = "application/json", registry.Schema(reflect.TypeFor[OAuthFault](), true, "")
	}
	if op.SCIM != nil {
		errorType, errorSchema = SCIMType, registry.Schema(reflect.TypeFor[SCIMError](), true, "")
	}
	codes := map[int][]string{}
	for _, kind := range op.kinds() {
		codes[problem.Status(kind)] = append(codes[problem.Status(kind)], string(kind))
	}
	for status, list := range codes {
		slices.Sort(list)
		o.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: strings.Join(slices.Compact(list), ", "),
			Content:     map[string]*huma.MediaType{errorType: {Schema: errorSchema}},
		}
	}
}

// describeForm adds the form body to the document. It does so after the registration; otherwise huma would read the
// body itself.
func (s *Server) describeForm(op *Op) {
	document := s.api.OpenAPI()
	document.Paths[op.Path].Post.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		FormType: {Schema: document.Components.Schemas.Schema(op.form.of, true, op.ID+"-request"), Example: op.Request},
	}}
}

func sharedParameters(op *Op, output reflect.Type) []string {
	var names []string
	if op.writes() && op.ErrorPage == nil {
		names = append(names, "DryRun")
		if op.target != "" || op.Singleton {
			names = append(names, "IfMatch")
		}
	} else if isTagged(output) {
		names = append(names, "IfNoneMatch")
	}
	if op.hasKey() {
		names = append(names, "IdempotencyKey")
	}
	if !op.open() {
		names = append(names, "TenantID", "PayloadOrigin")
	}
	return names
}

// kinds are the errors that an operation can answer with: its own, and those that follow from its form.
func (op *Op) kinds() []apperr.Kind {
	kinds := append([]apperr.Kind{apperr.InvalidParameters, apperr.RateLimited, apperr.Internal, apperr.Unavailable},
		op.Errors...)
	if op.writes() && !op.NoReplay {
		kinds = append(kinds, apperr.OutcomeUnknown)
	}
	if !op.open() {
		kinds = append(kinds, apperr.Unauthenticated, apperr.Forbidden)
	}
	if strings.Contains(op.Path, "{") {
		kinds = append(kinds, apperr.NotFound)
		if op.writes() {
			kinds = append(kinds, apperr.VersionMismatch)
		}
	}
	if op.jsonBody != absent || op.form != nil {
		if kinds = append(kinds, apperr.TooLarge); !op.Lenient {
			kinds = append(kinds, apperr.UnsupportedMediaType)
		}
	}
	if op.hasKey() && !op.Streams {
		kinds = append(kinds, apperr.RequestInProgress, apperr.IdempotencyKeyReused)
	}
	return kinds
}

// documents are the forms of the OpenAPI document.
func (s *Server) documents() (openapi.Forms, error) {
	generated, err := json.Marshal(s.api.OpenAPI())
	if err != nil {
		return openapi.Forms{}, err
	}
	document, err := openapi.Parse(generated)
	if err != nil {
		return openapi.Forms{}, err
	}
	openapi.Finish(document)
	return openapi.FormsOf(document)
}

func (s *Server) serveDocuments() {
	documents := sync.OnceValues(s.documents) // after the last Handle: requests arrive only when the server listens
	serve := func(path, contentType string, form func(openapi.Forms) []byte) {
		s.engine.GET(path, func(c *gin.Context) {
			all, err := documents()
			if err != nil {
				problem.Write(c.Writer, err)
				return
			}
			c.Data(http.StatusOK, contentType, form(all))
		})
	}
	serve("/openapi.json", "application/openapi+json", func(f openapi.Forms) []byte { return f.JSON })
	serve("/openapi.yaml", "application/openapi+yaml", func(f openapi.Forms) []byte { return f.YAML })
	serve("/openapi-3.0.json", "application/openapi+json", func(f openapi.Forms) []byte { return f.JSON30 })
}
