package filter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/filter"
)

// FuzzParse: a filter is refused as invalidFilter, or can be tested and planned, and the plan selects the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`userName eq "a"`, `not (title pr) and (active eq True or meta.created ge "2026-01-31")`,
		`emails[type eq "work" and value co "@x"]`, `urn:example:acme:List[a gt 1.5e3].b`, `externalId sw "\u00e4"`,
		`urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager eq null`, `(((`, `emails[`, `"`, `a eq -`,
	} {
		f.Add(seed)
	}
	r := decode(f, bjensen)
	f.Fuzz(func(t *testing.T, text string) {
		n, err := filter.Parse(kind, text)
		if err != nil {
			require.Equal(t, scim.InvalidFilter, scim.TypeOf(err))
			return
		}
		plan := filter.MakePlan(n, indexed)
		served := plan.Served == nil || filter.Match(plan.Served, r)
		planned := served && (plan.Rest == nil || filter.Match(plan.Rest, r))
		require.Equal(t, filter.Match(n, r), planned)
	})
}

// FuzzParsePath: a path is refused as invalidPath or invalidFilter, or names something that is found again.
func FuzzParsePath(f *testing.F) {
	for _, seed := range []string{
		`emails[type eq "work"].value`, `name.givenName`, `urn:example:acme:a.b`, `emails[type eq "]"]`, `members[`, `.`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := filter.ParsePath(kind, text)
		if err != nil {
			require.Contains(t, []scim.Type{scim.InvalidPath, scim.InvalidFilter}, scim.TypeOf(err))
			return
		}
		again, err := filter.ParsePath(kind, target.Path.String())
		require.NoError(t, err)
		require.Equal(t, target.Path.String(), again.Path.String())
		if target.Filter != nil {
			filter.Equals(target.Filter)
		}
	})
}
