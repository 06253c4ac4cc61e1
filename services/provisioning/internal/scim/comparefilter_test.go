package scim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim/filter"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// TestFiltersAgree compares 10,000 random filters with two other implementations. They know no schema. So they are
// compared with what Match says under their rules, to which each named difference brings it.
func TestFiltersAgree(t *testing.T) {
	t.Parallel()
	o, random, counts := startOthers(t), newRandom(2), tally{}
	exact, folded := withCase(schema.User, true), withCase(schema.User, false)
	questions := make([]question, cases())
	for i := range questions {
		query := random.filter(3)
		questions[i] = question{Filter: &query, Resource: random.user()}
	}
	for i, answers := range o.ask(questions) {
		query, r := *questions[i].Filter, questions[i].Resource
		ours := parse(t, schema.User, query)
		theirs, theirR := parse(t, exact, timeAsText(query)), decode(t, timeAsText(text(r)))
		want := filter.Match(absentIsNotDifferent(theirs), theirR)
		require.Equal(t, fmt.Sprint(want), string(answers["scim2-parse-filter"].Value), "%s on %s", query, text(r))

		equal := mixed(theirs, parse(t, folded, timeAsText(query)))
		want = filter.Match(absentIsNotDifferent(equal), theirR)
		a := answers["scim-query-filter-parser"]
		switch {
		case strings.Contains(query, "not"):
			require.NotNil(t, a.Error, query)
			counts["scim-query-filter-parser refuses not"]++
		case string(a.Value) != fmt.Sprint(want):
			require.True(t, hasLongAnd(theirs), "%s on %s", query, text(r))
			counts["scim-query-filter-parser takes a and b and c as (a and b) or (b and c)"]++
		case filter.Match(equal, theirR) != filter.Match(theirs, theirR):
			counts["scim-query-filter-parser compares case, but not for eq and ne"]++
		}
		is := filter.Match(ours, r)
		if filter.Match(theirs, theirR) != is {
			if filter.Match(parse(t, exact, query), r) != is {
				counts["scim2-parse-filter compares case"]++
			} else {
				counts["both compare times as texts"]++
			}
		}
		if filter.Match(absentIsNotDifferent(ours), r) != is {
			counts["both: ne does not hold where there is no value"]++
		}
	}
	counts.check(t, "scim2-parse-filter compares case", "both compare times as texts",
		"both: ne does not hold where there is no value",
		"scim-query-filter-parser refuses not", "scim-query-filter-parser compares case, but not for eq and ne",
		"scim-query-filter-parser takes a and b and c as (a and b) or (b and c)")
}

func parse(t *testing.T, kind *schema.Resource, query string) filter.Node {
	t.Helper()
	n, err := filter.Parse(kind, query)
	require.NoError(t, err, query)
	return n
}

func decode(t *testing.T, text string) resource.Object {
	t.Helper()
	o, err := resource.DecodeObject([]byte(text))
	require.NoError(t, err)
	return o
}

// timeAsText changes the one time that is written in two forms so that its moments are ordered as the texts are.
func timeAsText(s string) string { return strings.ReplaceAll(s, "09:30:00.000Z", "09:29:59.999Z") }

// hasLongAnd reports whether "and" joins three parts or more.
func hasLongAnd(n filter.Node) bool {
	switch n := n.(type) {
	case filter.And:
		return len(n) > 2 || slices.ContainsFunc(n, hasLongAnd)
	case filter.Or:
		return slices.ContainsFunc(n, hasLongAnd)
	}
	return false
}

// mixed takes eq and ne from one form of a filter, and all else from the other.
func mixed(n, equal filter.Node) filter.Node {
	switch n := n.(type) {
	case filter.And:
		return filter.And(mixedParts(n, equal.(filter.And))) //nolint:forcetypeassert // the same filter
	case filter.Or:
		return filter.Or(mixedParts(n, equal.(filter.Or))) //nolint:forcetypeassert // the same filter
	case filter.Not:
		return filter.Not{Of: mixed(n.Of, equal.(filter.Not).Of)} //nolint:forcetypeassert // the same filter
	case *filter.Each:
		of := equal.(*filter.Each).Filter //nolint:forcetypeassert // the same filter
		return &filter.Each{Path: n.Path, Filter: mixed(n.Filter, of)}
	case *filter.Compare:
		if n.Op == filter.Equal || n.Op == filter.NotEqual {
			return equal
		}
	}
	return n
}

func mixedParts(parts, equal []filter.Node) []filter.Node {
	var all []filter.Node
	for i, part := range parts {
		all = append(all, mixed(part, equal[i]))
	}
	return all
}

// withCase is a kind of resource in which case matters everywhere, or nowhere.
func withCase(kind *schema.Resource, exact bool) *schema.Resource {
	changed := *kind
	core := *kind.Core
	core.Attributes = nil
	for _, a := range kind.Core.Attributes {
		core.Attributes = append(core.Attributes, attributeWithCase(a, exact))
	}
	changed.Core = &core
	return &changed
}

func attributeWithCase(a *schema.Attribute, exact bool) *schema.Attribute {
	changed := *a
	changed.CaseExact = exact
	changed.SubAttributes = nil
	for _, sub := range a.SubAttributes {
		changed.SubAttributes = append(changed.SubAttributes, attributeWithCase(sub, exact))
	}
	return &changed
}

// absentIsNotDifferent changes a filter so that ne does not hold where there is no value.
func absentIsNotDifferent(n filter.Node) filter.Node {
	switch n := n.(type) {
	case filter.And:
		var and filter.And
		for _, part := range n {
			and = append(and, absentIsNotDifferent(part))
		}
		return and
	case filter.Or:
		var or filter.Or
		for _, part := range n {
			or = append(or, absentIsNotDifferent(part))
		}
		return or
	case filter.Not:
		return filter.Not{Of: absentIsNotDifferent(n.Of)}
	case *filter.Each:
		return &filter.Each{Path: n.Path, Filter: absentIsNotDifferent(n.Filter)}
	case *filter.Compare:
		if n.Op == filter.NotEqual {
			return filter.And{n, &filter.Compare{Path: n.Path, Op: filter.Present}}
		}
	}
	return n
}

// TestPlanLosesNothing: what a filter selects, the served part and the rest select too, and nothing else.
func TestPlanLosesNothing(t *testing.T) {
	t.Parallel()
	random := newRandom(1)
	indexed := map[string]bool{"userName": true, "nickName": true, "emails.value": true, "active": true}
	for range 10000 {
		query, r := random.filter(3), random.user()
		n, err := filter.Parse(schema.User, query)
		require.NoError(t, err, query)
		plan := filter.MakePlan(n, func(p schema.Path) bool { return indexed[p.String()] })
		served := plan.Served == nil || filter.Match(plan.Served, r)
		if filter.Match(n, r) {
			require.True(t, served, query)
		}
		rest := plan.Rest == nil || filter.Match(plan.Rest, r)
		require.Equal(t, filter.Match(n, r), served && rest, "%s on %s", query, text(resource.Object(r)))
	}
}
