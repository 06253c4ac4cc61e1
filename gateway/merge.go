package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/openapi"
)

// mergedOpenAPI is an OpenAPI 3.1 document with its members in the usual order.
type mergedOpenAPI struct {
	OpenAPI    string                    `json:"openapi" yaml:"openapi"`
	Info       openAPIInfo               `json:"info" yaml:"info"`
	Missing    []string                  `json:"x-missing-services,omitempty" yaml:"x-missing-services,omitempty"`
	Servers    []openAPIServer           `json:"servers" yaml:"servers"`
	Tags       []any                     `json:"tags,omitempty" yaml:"tags,omitempty"`
	Paths      map[string]any            `json:"paths" yaml:"paths"`
	Webhooks   map[string]any            `json:"webhooks,omitempty" yaml:"webhooks,omitempty"`
	Components map[string]map[string]any `json:"components,omitempty" yaml:"components,omitempty"`

	owners map[string]string // the service that owns each name that must be unique
}

type openAPIInfo struct {
	Title       string        `json:"title" yaml:"title"`
	Version     string        `json:"version" yaml:"version"`
	Description string        `json:"description" yaml:"description"`
	License     openAPIServer `json:"license" yaml:"license"`
	Contact     openAPIServer `json:"contact" yaml:"contact"`
}

// openAPIServer is an object with a URL and, for license and contact, a name.
type openAPIServer struct {
	Name string `json:"name,omitempty" yaml:"name,omitempty"`
	URL  string `json:"url" yaml:"url"`
}

// mergeOpenAPI makes one document from those of the services. It takes the paths that the gateway routes to each
// service, so the document describes only what can be reached. Components and tags that services share must be the
// same in each: a service whose document uses a name for something else is left out and listed as missing, and the
// error says why. mergeOpenAPI may change parts.
func mergeOpenAPI(parts map[string]map[string]any, missing []string) (*mergedOpenAPI, error) {
	merged := &mergedOpenAPI{
		OpenAPI: "3.1.0",
		Info: openAPIInfo{
			Title: "idplatform", Version: "1.0.0",
			Description: "Management interface of the identity platform: users, applications, permissions, " +
				"organization, identity sources, events and automation.",
			License: openAPIServer{openapi.LicenseName, openapi.LicenseURL},
			Contact: openAPIServer{openapi.ContactName, openapi.ContactURL},
		},
		Missing: missing, Servers: []openAPIServer{{URL: "/"}},
		Paths: map[string]any{}, Webhooks: map[string]any{}, Components: map[string]map[string]any{},
		owners: map[string]string{},
	}
	var clashes []error
	for _, service := range slices.Sorted(maps.Keys(parts)) {
		if err := merged.clashes(service, parts[service]); err != nil {
			clashes = append(clashes, err)
			merged.Missing = append(merged.Missing, service)
			continue
		}
		merged.add(service, parts[service])
	}
	slices.Sort(merged.Missing)
	return merged, errors.Join(clashes...)
}

// clashes lists the names that a service's document defines differently from the documents added before.
func (m *mergedOpenAPI) clashes(service string, doc map[string]any) error {
	var errs []error
	for kind, components := range object(doc["components"]) {
		for name, value := range object(components) {
			if other, taken := m.Components[kind][name]; taken && !sameJSON(other, value) {
				errs = append(errs, fmt.Errorf("%s: components/%s/%s differs from that of %s",
					service, kind, name, m.owners[kind+"/"+name]))
			}
		}
	}
	for _, tag := range array(doc["tags"]) {
		i := slices.IndexFunc(m.Tags, func(other any) bool { return object(other)["name"] == object(tag)["name"] })
		if i >= 0 && !sameJSON(m.Tags[i], tag) {
			errs = append(errs, fmt.Errorf("%s: the tag %v differs from that of another service",
				service, object(tag)["name"]))
		}
	}
	for _, id := range operationIDs(service, doc) {
		if owner, taken := m.owners["operation/"+id]; taken {
			errs = append(errs, fmt.Errorf("%s: the operationId %s is also one of %s", service, id, owner))
		}
	}
	for name := range object(doc["webhooks"]) {
		if _, taken := m.Webhooks[name]; taken {
			errs = append(errs, fmt.Errorf("%s: the webhook %s is also one of another service", service, name))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// add adds a document that does not clash.
func (m *mergedOpenAPI) add(service string, doc map[string]any) {
	for path, item := range object(doc["paths"]) {
		if owner, _ := routes.find(path); owner == service {
			m.Paths[path] = withSecurity(item, doc["security"])
		}
	}
	for name, item := range object(doc["webhooks"]) {
		m.Webhooks[name] = withSecurity(item, doc["security"])
	}
	for kind, components := range object(doc["components"]) {
		if m.Components[kind] == nil {
			m.Components[kind] = map[string]any{}
		}
		for name, value := range object(components) {
			if _, taken := m.Components[kind][name]; !taken {
				m.Components[kind][name], m.owners[kind+"/"+name] = value, service
			}
		}
	}
	for _, tag := range array(doc["tags"]) {
		if !slices.ContainsFunc(m.Tags, func(other any) bool { return sameJSON(other, tag) }) {
			m.Tags = append(m.Tags, tag)
		}
	}
	for _, id := range operationIDs(service, doc) {
		m.owners["operation/"+id] = service
	}
}

// operationIDs lists the ids of the operations that the merged document takes from this service.
func operationIDs(service string, doc map[string]any) (ids []string) {
	for path, item := range object(doc["paths"]) {
		if owner, _ := routes.find(path); owner != service {
			continue
		}
		for _, operation := range object(item) {
			if id, ok := object(operation)["operationId"].(string); ok {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func sameJSON(a, b any) bool {
	left, _ := json.Marshal(a) // cannot fail: both were decoded from JSON
	right, _ := json.Marshal(b)
	return bytes.Equal(left, right)
}

// withSecurity copies a document's general security requirement to each operation that has none of its own, because
// in the merged document a general one would apply to all services.
func withSecurity(item, security any) any {
	for method, operation := range object(item) {
		op := object(operation)
		if op == nil || !slices.Contains(methods, method) {
			continue
		}
		if _, own := op["security"]; !own && security != nil {
			op["security"] = security
		}
	}
	return item
}

// methods are the members of a path item that are operations (OpenAPI 3.1 §4.8.9).
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// object and array return nil for JSON of another type, so that an unusual document causes no panic.
func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func array(v any) []any           { a, _ := v.([]any); return a }
