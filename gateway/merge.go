package gateway

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// mergedOpenAPI is an OpenAPI 3.1 document, its members in the order that people expect.
type mergedOpenAPI struct {
	OpenAPI    string                    `json:"openapi" yaml:"openapi"`
	Info       openAPIInfo               `json:"info" yaml:"info"`
	Missing    []string                  `json:"x-missing-services,omitempty" yaml:"x-missing-services,omitempty"`
	Servers    []openAPIServer           `json:"servers" yaml:"servers"`
	Tags       []any                     `json:"tags,omitempty" yaml:"tags,omitempty"`
	Paths      map[string]any            `json:"paths" yaml:"paths"`
	Webhooks   map[string]any            `json:"webhooks,omitempty" yaml:"webhooks,omitempty"`
	Components map[string]map[string]any `json:"components,omitempty" yaml:"components,omitempty"`
}

type openAPIInfo struct {
	Title       string `json:"title" yaml:"title"`
	Version     string `json:"version" yaml:"version"`
	Description string `json:"description" yaml:"description"`
}

type openAPIServer struct {
	URL string `json:"url" yaml:"url"`
}

// mergeOpenAPI makes one document of the services' own. Of paths it takes those that the gateway routes to that service, so the document
// is true by construction. Components of one name and one meaning are shared; where services mean different things by a name, each gets
// its own, with the service's name before it. It may change the parts.
func mergeOpenAPI(parts map[string]map[string]any, missing []string) *mergedOpenAPI {
	services := slices.Sorted(maps.Keys(parts))
	merged := &mergedOpenAPI{
		OpenAPI: "3.1.0",
		Info: openAPIInfo{
			Title: "idplatform", Version: "1.0.0",
			Description: "Management interface of the identity platform: users, applications, permissions, organization, identity sources, events and automation.",
		},
		Missing: missing, Servers: []openAPIServer{{URL: "/"}},
		Paths: map[string]any{}, Webhooks: map[string]any{}, Components: map[string]map[string]any{},
	}
	renaming := newRenaming(services, parts)
	tags := map[string]any{}
	for _, service := range services {
		doc := parts[service]
		r := serviceRenaming{renaming, service}
		for path, item := range object(doc["paths"]) {
			if owner, _ := routes.find(path); owner == service {
				merged.Paths[path] = r.pathItem(item, doc["security"])
			}
		}
		for name, item := range object(doc["webhooks"]) {
			if _, taken := merged.Webhooks[name]; taken {
				name = service + "-" + name
			}
			merged.Webhooks[name] = r.pathItem(item, doc["security"])
		}
		for kind, components := range object(doc["components"]) {
			if merged.Components[kind] == nil {
				merged.Components[kind] = map[string]any{}
			}
			for name, value := range object(components) {
				merged.Components[kind][r.name(component{kind, name})] = r.references(value)
			}
		}
		for _, tag := range array(doc["tags"]) {
			if name, ok := object(tag)["name"].(string); ok && tags[name] == nil {
				tags[name] = tag
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		merged.Tags = append(merged.Tags, tags[name])
	}
	return merged
}

// component names one, like {"schemas", "User"}.
type component struct{ kind, name string }

const componentPrefix = "#/components/"

// reference is the component that a JSON pointer into components names, and what follows it. Any string of that form counts, for they
// stand in discriminator mappings as well as in $ref.
func reference(s string) (c component, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, componentPrefix)
	if !ok {
		return c, "", false
	}
	if c.kind, s, ok = strings.Cut(s, "/"); !ok {
		return c, "", false
	}
	if i := strings.IndexByte(s, '/'); i >= 0 {
		s, rest = s[:i], s[i:]
	}
	c.name = s
	return c, rest, true
}

// renaming knows which names services use for different things.
type renaming struct {
	components map[component]map[string]string // → service → new name
	operations map[string]bool                 // operationIds of several services
}

func newRenaming(services []string, parts map[string]map[string]any) renaming {
	owners := map[component][]string{}         // → services, in order
	values := map[component]map[string]any{}   // → service → definition
	operations := map[string]map[string]bool{} // operationId → services
	for _, service := range services {
		for kind, list := range object(parts[service]["components"]) {
			for name, value := range object(list) {
				c := component{kind, name}
				if values[c] == nil {
					values[c] = map[string]any{}
				}
				owners[c], values[c][service] = append(owners[c], service), value
			}
		}
		for _, item := range object(parts[service]["paths"]) {
			for _, operation := range object(item) {
				if id, ok := object(operation)["operationId"].(string); ok {
					if operations[id] == nil {
						operations[id] = map[string]bool{}
					}
					operations[id][service] = true
				}
			}
		}
	}

	// Different are components that read differently, and those that refer to different ones, to any depth.
	different := map[component]bool{}
	for c, byService := range values {
		texts := map[string]bool{}
		for _, v := range byService {
			text, _ := json.Marshal(v) // it was JSON before
			texts[string(text)] = true
		}
		different[c] = len(texts) > 1
	}
	for grown := true; grown; {
		grown = false
		for c, list := range owners {
			if !different[c] && len(list) > 1 && refersTo(values[c][list[0]], different) {
				different[c], grown = true, true
			}
		}
	}

	r := renaming{components: map[component]map[string]string{}, operations: map[string]bool{}}
	taken := maps.Clone(owners)
	for _, c := range slices.SortedFunc(maps.Keys(owners), func(a, b component) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	}) {
		if !different[c] {
			continue
		}
		r.components[c] = map[string]string{}
		for _, service := range owners[c] {
			name := pascal(service) + c.name
			for taken[component{c.kind, name}] != nil {
				name += "_"
			}
			taken[component{c.kind, name}] = []string{service}
			r.components[c][service] = name
		}
	}
	for id, services := range operations {
		r.operations[id] = len(services) > 1
	}
	return r
}

func refersTo(v any, set map[component]bool) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if refersTo(e, set) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return refersTo(e, set) })
	case string:
		c, _, ok := reference(v)
		return ok && set[c]
	}
	return false
}

// serviceRenaming changes one service's document.
type serviceRenaming struct {
	renaming
	service string
}

func (r serviceRenaming) name(c component) string {
	if name, ok := r.components[c][r.service]; ok {
		return name
	}
	return c.name
}

// references changes what v refers to, in place where it can.
func (r serviceRenaming) references(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = r.references(e)
		}
	case []any:
		for i, e := range v {
			v[i] = r.references(e)
		}
	case string:
		if c, rest, ok := reference(v); ok {
			return componentPrefix + c.kind + "/" + r.name(c) + rest
		}
	}
	return v
}

// pathItem changes one path's operations. What the service's document says of security for all, each says for itself, since in the
// merged one it would hold for other services too.
func (r serviceRenaming) pathItem(item, security any) any {
	item = r.references(item)
	for method, operation := range object(item) {
		op := object(operation)
		if op == nil || !slices.Contains(methods, method) {
			continue
		}
		if id, ok := op["operationId"].(string); ok && r.operations[id] {
			op["operationId"] = r.service + "-" + id
		}
		if _, own := op["security"]; !own && security != nil {
			op["security"] = security
		}
		if requirements, ok := op["security"].([]any); ok {
			op["security"] = r.security(requirements)
		}
	}
	return item
}

// methods are the members of a path item that are operations (OpenAPI 3.1 §4.8.9).
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// security requirements name their schemes without a reference.
func (r serviceRenaming) security(requirements []any) []any {
	renamed := make([]any, len(requirements))
	for i, requirement := range requirements {
		schemes := map[string]any{}
		for name, scopes := range object(requirement) {
			schemes[r.name(component{"securitySchemes", name})] = scopes
		}
		renamed[i] = schemes
	}
	return renamed
}

// pascal makes IdentitySources of identity-sources.
func pascal(service string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(service, "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// object and array take JSON of another shape for none, so that a strange document does no harm.
func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func array(v any) []any           { a, _ := v.([]any); return a }
