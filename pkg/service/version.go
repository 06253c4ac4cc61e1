package service

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/telemetry"
)

// version is what the command of that name prints.
type version struct {
	Service string          `json:"service"`
	Build   telemetry.Build `json:"build"`
	Formats *formats        `json:"formats,omitempty"`
}

// formats are the versions of what a program stores. Two programs with the same ones read and find each other's
// documents; the goldens of each service hold that older documents stay readable.
type formats struct {
	Collections []collectionFormat `json:"collections"`
}

type collectionFormat struct {
	Name     string   `json:"name"`
	Revision int      `json:"revision"` // of the index entries; a program that starts rebuilds those of another one
	Indexes  []string `json:"indexes"`
	Sealed   bool     `json:"sealed"` // it has members that are encrypted
}

// writeVersion prints how the program was built and, if asked, what it stores.
func writeVersion(out io.Writer, spec Spec, withFormats bool) error {
	v := version{Service: spec.Name, Build: telemetry.ReadBuild()}
	if withFormats {
		v.Formats = formatsOf(spec)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

func formatsOf(spec Spec) *formats {
	f := &formats{}
	for _, def := range spec.Defs() {
		c := collectionFormat{Name: def.Name, Revision: def.Revision, Indexes: []string{}, Sealed: def.Seals}
		for _, index := range def.Indexes {
			c.Indexes = append(c.Indexes, index.Name)
		}
		f.Collections = append(f.Collections, c)
	}
	slices.SortFunc(f.Collections, func(a, b collectionFormat) int { return strings.Compare(a.Name, b.Name) })
	return f
}
