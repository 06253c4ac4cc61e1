package filter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim/filter"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// show writes a filter in the form of its tree.
func show(n filter.Node) string {
	parts := func(name string, nodes []filter.Node) string {
		var texts []string
		for _, n := range nodes {
			texts = append(texts, show(n))
		}
		return name + "(" + strings.Join(texts, ", ") + ")"
	}
	switch n := n.(type) {
	case filter.And:
		return parts("and", n)
	case filter.Or:
		return parts("or", n)
	case filter.Not:
		return parts("not", []filter.Node{n.Of})
	case *filter.Each:
		return n.Path.String() + "[" + show(n.Filter) + "]"
	case *filter.Compare:
		if n.Key() != "" {
			return fmt.Sprintf("%s %s %s", n.Path, n.Op, n.Key())
		}
		return fmt.Sprintf("%s %s %v", n.Path, n.Op, n.Value)
	}
	return ""
}

func indexed(p schema.Path) bool {
	return slices.Contains([]string{"userName", "externalId", "emails.value", "active", "meta.created"}, p.String())
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ filter, served, rest string }{
		{`userName eq "A"`, "userName eq a", ""},
		{`externalId sw "A"`, "externalId sw A", ""},
		{`active eq "True"`, "active eq true", ""},
		{`meta.created ge "2026-01-31"`, "meta.created ge 2026-01-31 00:00:00 +0000 UTC", ""},
		{`emails co "a"`, "", "emails.value co a"},
		{`emails eq "a"`, "emails.value eq a", ""},
		{`userName ne "a"`, "", "userName ne a"},
		{`userName pr`, "", "userName pr <nil>"},
		{`userName eq null`, "", "userName eq <nil>"},
		{`userName ew "a"`, "", "userName ew a"},
		{`title eq "a"`, "", "title eq a"},
		{`userName eq ""`, "", "userName eq "},
		{`not (userName eq "a")`, "", "not(userName eq a)"},
		{`userName eq "a" and title eq "b"`, "userName eq a", "title eq b"},
		{`title eq "b" and userName eq "a" and active eq true`, "and(userName eq a, active eq true)", "title eq b"},
		{`userName eq "a" or externalId eq "b"`, "or(userName eq a, externalId eq b)", ""},
		{`userName eq "a" or title eq "b"`, "", "or(userName eq a, title eq b)"},
		{`userName eq "a" and (userName eq "b" or title eq "c")`, "userName eq a", "or(userName eq b, title eq c)"},
		{`(userName eq "a" and title eq "b") or externalId eq "c"`, "or(userName eq a, externalId eq c)",
			"or(and(userName eq a, title eq b), externalId eq c)"},
		{`emails[value eq "a"]`, "emails.value eq a", ""},
		{`emails[value eq "a" and type eq "work"]`, "emails.value eq a", "emails[and(value eq a, type eq work)]"},
		{`emails[value gt "a" and value lt "c"] and active eq true`,
			"and(emails.value gt a, emails.value lt c, active eq true)", "emails[and(value gt a, value lt c)]"},
		{`emails[value eq "a" or value eq "b"]`, "or(emails.value eq a, emails.value eq b)",
			"emails[or(value eq a, value eq b)]"},
		{`emails[type eq "work"]`, "", "emails[type eq work]"},
		{`((userName eq "a"))`, "userName eq a", ""},
	} {
		n, err := filter.Parse(kind, c.filter)
		require.NoError(t, err)
		plan := filter.MakePlan(n, indexed)
		require.Equal(t, c.served, show(plan.Served), c.filter)
		require.Equal(t, c.rest, show(plan.Rest), c.filter)
	}
	require.Equal(t, filter.Plan{}, filter.MakePlan(nil, indexed))
}
