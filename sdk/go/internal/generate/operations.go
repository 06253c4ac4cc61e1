package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"
	"golang.org/x/tools/imports"
)

// Document is what calls reads of an OpenAPI document.
type Document struct {
	Paths      map[string]map[string]Operation `json:"paths"`
	Components struct {
		Schemas map[string]*Schema `json:"schemas"`
	} `json:"components"`
}

// Operation is one operation of a document.
type Operation struct {
	OperationID, Summary, Description string
	Deprecated                        bool
	Tags                              []string
	Parameters                        []Parameter
	RequestBody                       struct{ Content map[string]Media }
	Responses                         map[string]struct{ Content map[string]Media }
	Security                          []map[string][]string
	Scope                             string `json:"x-scope"`
	Momentary                         bool   `json:"x-momentary"`
}

// Parameter is a parameter of a path or a query. Headers, and those that are a reference, are options of all calls.
type Parameter struct {
	Ref         string `json:"$ref"`
	In, Name    string
	Description string
	Required    bool
	Schema      Schema
}

// Media is the content of one type.
type Media struct{ Schema Schema }

// Schema is what tells the Go type of a value.
type Schema struct {
	Ref                  string `json:"$ref"`
	Type                 string
	Enum                 []any
	Minimum              *float64
	Items                *Schema
	Properties           map[string]*Schema
	AdditionalProperties any
}

//go:embed calls.tmpl
var callsText string

// call is an operation as calls.tmpl needs it.
type call struct {
	Operation
	Name, All, Stream  string // the names of its functions; All and Stream are "" if it has none
	Method, Path       string // Path is a Go expression
	Comment, HTTP      string
	PathParams, Query  []goParameter
	Body               string // the Go type; "" if none
	Binary, Form, Open bool
	Result, Item       string // Go types; "" if the answer is empty, or is no page
	Download           bool   // the answer is not JSON
}

// MethodName is the end of the name of net/http's constant.
func (c call) MethodName() string { return c.Method[:1] + strings.ToLower(c.Method[1:]) }

// Pointer reports whether the result is a pointer: that is so for structs.
func (c call) Pointer() bool {
	return c.Result != "string" && c.Result != "json.RawMessage" && c.Result[0] != '[' &&
		!strings.HasPrefix(c.Result, "map[")
}

// Zero is the result that comes with an error.
func (c call) Zero() string {
	if c.Result == "string" {
		return `""`
	}
	return "nil"
}

type goParameter struct{ Name, Type, Wire, Comment string }

var methods = []string{"get", "head", "post", "put", "patch", "delete"}

// calls makes a file for each tag.
func calls(d Document) (map[string][]byte, error) {
	byTag := map[string][]call{}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range methods {
			operation, ok := d.Paths[path][method]
			if !ok {
				continue
			}
			tag := strings.ToLower(strings.ReplaceAll(cmp.Or(append(operation.Tags, "other")...), " ", "_"))
			byTag[tag] = append(byTag[tag], d.call(path, method, operation))
		}
	}
	t, err := template.New("calls").Parse(callsText)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for tag, of := range byTag {
		var source bytes.Buffer
		if err := t.Execute(&source, of); err != nil {
			return nil, err
		}
		formatted, err := imports.Process(tag+".go", source.Bytes(), nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", tag, err, source.Bytes())
		}
		files["calls_"+tag+".go"] = formatted
	}
	return files, nil
}

func (d Document) call(path, method string, o Operation) call {
	c := call{
		Operation: o, Name: goName(o.OperationID), Method: strings.ToUpper(method), Open: len(o.Security) == 0,
		HTTP: strings.ToUpper(method) + " " + path,
	}
	for _, p := range o.Parameters {
		switch {
		case p.Ref != "" || p.In == "header": // an Option
		case p.In == "path":
			c.PathParams = append(c.PathParams, goParameter{
				Name: localName(p.Name), Type: pathType(p.Schema), Wire: p.Name, Comment: p.Description,
			})
		case p.In == "query":
			c.Query = append(c.Query, goParameter{
				Name: goName(p.Name), Type: queryType(p), Wire: p.Name,
				Comment: paragraphs(comment(p.Description, p.Schema.Enum)),
			})
		}
	}
	c.Path = pathExpression(path, c.PathParams)
	c.Comment = paragraphs(c.Name+": "+lowerFirst(o.Summary)+".", o.Description, "("+c.HTTP+scopeNote(o.Scope)+")")
	c.setBody(o.RequestBody.Content)
	c.setResult(d, o.Responses["200"].Content)
	return c
}

func (c *call) setBody(content map[string]Media) {
	if media, ok := content["application/json"]; ok {
		c.Body = goType(media.Schema)
	} else if media, ok := content["application/x-www-form-urlencoded"]; ok {
		c.Body, c.Form = goType(media.Schema), true
	} else if len(content) > 0 {
		c.Body, c.Binary = "io.Reader", true
	}
}

func (c *call) setResult(d Document, content map[string]Media) {
	media, ok := content["application/json"]
	if !ok {
		c.Download = len(content) > 0
		return
	}
	c.Result = goType(media.Schema)
	if c.Result == "Empty" {
		c.Result = ""
		return
	}
	page := d.Components.Schemas[c.Result]
	if page == nil || page.Properties["items"] == nil {
		return
	}
	paged := page.Properties["next_page_token"] != nil
	if _, streams := content["text/event-stream"]; streams {
		c.Stream = "Stream" + strings.TrimPrefix(c.Name, "List")
		c.Item = goType(*page.Properties["items"].Items)
	}
	if paged {
		c.Item = goType(*page.Properties["items"].Items)
		verb := regexp.MustCompile(`^[A-Z][a-z]*`).FindString(c.Name)
		c.All = verb + "All" + strings.TrimPrefix(c.Name, verb)
	}
}

// goType returns the Go type of a body.
func goType(s Schema) string {
	if _, name, ok := strings.Cut(s.Ref, "#/components/schemas/"); ok {
		return goName(name)
	}
	switch s.Type {
	case "string":
		return "string"
	case "array":
		return "[]" + goType(*s.Items)
	case "object":
		if inner, ok := s.AdditionalProperties.(map[string]any); ok && inner["$ref"] != nil {
			return "map[string]" + goType(Schema{Ref: inner["$ref"].(string)})
		}
	}
	return "json.RawMessage"
}

func pathType(s Schema) string {
	if s.Type == "integer" {
		return "int64"
	}
	return "string"
}

// queryType returns the type of a member of a Params struct, whose zero value means that the parameter is absent.
func queryType(p Parameter) string {
	switch {
	case p.Schema.Type == "integer" && (p.Schema.Minimum == nil || *p.Schema.Minimum <= 0):
		return "*int64"
	case p.Schema.Type == "integer":
		return "int64"
	case len(p.Schema.Enum) == 4 && p.Schema.Enum[0] == "true":
		return "*bool"
	}
	return "string"
}

func pathExpression(path string, parameters []goParameter) string {
	expression := fmt.Sprintf("%q", path)
	for _, p := range parameters {
		value := p.Name
		if p.Type == "string" {
			value = "url.PathEscape(" + value + ")"
		} else {
			value = "strconv.FormatInt(" + value + ", 10)"
		}
		expression = strings.Replace(expression, "{"+p.Wire+"}", `"+`+value+`+"`, 1)
	}
	return strings.TrimSuffix(expression, `+""`)
}

func comment(text string, enum []any) string {
	if len(enum) > 0 && enum[0] != "true" {
		schema := map[string]any{"description": text}
		describe(schema, enum)
		text = schema["description"].(string)
	}
	return text
}

func scopeNote(scope string) string {
	if scope == "" {
		return ""
	}
	return "; scope " + strings.ReplaceAll(scope, " ", " and ")
}

// paragraphs makes a comment; fit breaks its lines.
func paragraphs(texts ...string) string {
	var lines []string
	for _, text := range texts {
		if text != "" {
			lines = append(lines, "// "+strings.Join(strings.Fields(text), " "))
		}
	}
	return strings.Join(lines, "\n//\n")
}

func lowerFirst(s string) string {
	if len(s) > 1 && strings.ToUpper(s[1:2]) == s[1:2] && s[1] != ' ' {
		return s // an abbreviation
	}
	return strings.ToLower(s[:1]) + s[1:]
}

func goName(name string) string {
	return normalize(strings.ReplaceAll(name, "-", "_"))
}

func localName(name string) string {
	if out := goName(name); strings.ToUpper(out) != out {
		return strings.ToLower(out[:1]) + out[1:]
	}
	return strings.ToLower(name)
}

var normalize = codegen.NameNormalizers[codegen.NameNormalizerFunctionToCamelCaseWithInitialisms]
