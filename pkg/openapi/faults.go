package openapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var parameterName = regexp.MustCompile(`\{[^}]*\}`)

// Faults lists what validators of documents find, beyond the official schemas, and readers stumble over: operations
// without security, an id of two operations, paths that differ only in a parameter's name, no servers, members of which
// nothing is said; in version 3.0 also nullable without a type, and members beside a reference.
func Faults(document map[string]any) (faults []string) {
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if servers, _ := document["servers"].([]any); len(servers) == 0 {
		add("there are no servers")
	}
	_, general := document["security"]
	paths, _ := document["paths"].(map[string]any)
	same, ids := map[string]string{}, map[any]bool{}
	for path, item := range paths {
		form := parameterName.ReplaceAllString(path, "{}")
		if other, taken := same[form]; taken {
			add("%s and %s differ only in a parameter's name", min(path, other), max(path, other))
		}
		same[form] = path
		operations, _ := item.(map[string]any)
		for method, operation := range operations {
			o, _ := operation.(map[string]any)
			if o["responses"] != nil && o["security"] == nil && !general {
				add("%s %s has no security", strings.ToUpper(method), path)
			}
			if id := o["operationId"]; id != nil && ids[id] {
				add("%v is the id of two operations", id)
			} else {
				ids[id] = true
			}
		}
	}
	components, _ := document["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	for name, schema := range schemas {
		of, _ := schema.(map[string]any)
		members, _ := of["properties"].(map[string]any)
		for member, described := range members {
			if d, _ := described.(map[string]any); d["description"] == nil || d["description"] == "" {
				add("nothing is said of %s.%s", name, member)
			}
		}
	}
	if version, _ := document["openapi"].(string); strings.HasPrefix(version, "3.0") {
		walk(document, func(m map[string]any) {
			if m["nullable"] != nil && m["type"] == nil {
				add("nullable without a type: %v", m)
			}
			if ref, ok := m["$ref"]; ok && len(m) > 1 {
				add("members beside the reference to %v", ref)
			}
		})
	}
	slices.Sort(faults)
	return faults
}
