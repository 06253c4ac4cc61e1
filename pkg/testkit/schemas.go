package testkit

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Described is a kind of records whose schemas SchemasAgree checks.
type Described struct {
	Record   map[string]any // one as the service answers it, with all members that it may have
	Optional []string       // members that are not always there
	Inputs   []string       // schemas of bodies: clients may send back every member of the record
	Extra    []string       // members of bodies that the record does not have
}

// SchemasAgree checks that records have the members that their schemas say. Records are stored in the form of answers,
// and described by types of their own, so nothing else keeps the two alike.
func SchemasAgree(t *testing.T, s *Service, kinds map[string]Described) {
	t.Helper()
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ ReadOnly bool }
				Required   []string
			}
		}
	}
	s.Stranger().Get("/openapi.json").OK(&doc)
	schemas := doc.Components.Schemas
	for name, kind := range kinds {
		members := slices.Sorted(maps.Keys(kind.Record))
		require.Contains(t, schemas, name)
		require.Equal(t, members, slices.Sorted(maps.Keys(schemas[name].Properties)), name)
		require.Equal(t, without(members, kind.Optional), slices.Sorted(slices.Values(schemas[name].Required)),
			"%s: members that are always there", name)
		for _, input := range kind.Inputs {
			require.Contains(t, schemas, input)
			accepted := slices.Sorted(maps.Keys(schemas[input].Properties))
			require.Equal(t, without(members, kind.Extra), without(accepted, kind.Extra), input)
			for member, property := range schemas[name].Properties {
				ignored := schemas[input].Properties[member].ReadOnly
				require.True(t, ignored || !property.ReadOnly, "%s.%s", input, member)
			}
		}
	}
}

func without(members, some []string) []string {
	return slices.DeleteFunc(slices.Clone(members), func(m string) bool { return slices.Contains(some, m) })
}
