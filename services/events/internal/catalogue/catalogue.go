// Package catalogue lists the types of events that the platform's services emit. Each service's tests write the file
// with its types, from the records in its events, and check every event against it.
package catalogue

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/idplatform/idplatform/pkg/stream"
)

//go:embed types/*.json
var files embed.FS

// Type is a type of events.
type Type struct {
	Type        string          `json:"type" example:"user.created" doc:"Without the prefix idp."`
	Description string          `json:"description" doc:"What happened when it is published" example:"A user was created."`
	Schema      json.RawMessage `json:"schema" doc:"The JSON Schema (2020-12) of data"`
	Example     json.RawMessage `json:"example" doc:"An example of data"`
}

// Exists reports whether a pattern selects a type of the catalogue.
func Exists(pattern string) bool {
	types := stream.Types{pattern}
	return slices.ContainsFunc(All(), func(t Type) bool { return types.Match(t.Type) })
}

// All returns the types of all services by name.
var All = sync.OnceValue(func() []Type {
	entries, err := files.ReadDir("types")
	if err != nil {
		panic(err) // cannot fail: the folder is embedded
	}
	all := []Type{}
	for _, entry := range entries {
		text, err := files.ReadFile("types/" + entry.Name())
		if err != nil {
			panic(err)
		}
		var list []Type
		if err := json.Unmarshal(text, &list); err != nil {
			panic(fmt.Sprintf("%s: %v", entry.Name(), err))
		}
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b Type) int { return strings.Compare(a.Type, b.Type) })
	return slices.CompactFunc(all, func(a, b Type) bool { return a.Type == b.Type })
})
