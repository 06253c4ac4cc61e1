package plan

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	idp "github.com/idplatform/idplatform/sdk/go"
)

// TestWhatIsNotCompared has the steps that may change access in a way that the platform cannot be asked about.
func TestWhatIsNotCompared(t *testing.T) {
	t.Parallel()
	step := func(action, kind string, values map[string]any, members ...string) *Step {
		s := &Step{Action: action, Ref: Ref{kind, "key"}}
		if action != Create {
			s.record = &Record{Values: values}
		}
		if action != Delete {
			s.want = &Desired{Values: values}
		}
		for _, name := range members {
			s.Changes = append(s.Changes, Change{Member: name})
		}
		return s
	}
	plain := map[string]any{"is_pointer": "0"}
	pointer, dynamic := map[string]any{"is_pointer": "1"}, map[string]any{"is_dynamic": "1"}
	for name, c := range map[string]struct {
		step *Step
		want bool
	}{
		"a new node":                {step(Create, node, plain), false},
		"a new pointer":             {step(Create, node, pointer), true},
		"a new dynamic node":        {step(Create, node, dynamic), true},
		"another target":            {step(Update, node, pointer, "pointer"), true},
		"another condition":         {step(Update, node, dynamic, "condition"), true},
		"a node's status":           {step(Update, node, plain, "status"), false},
		"a node less":               {step(Delete, node, plain), false},
		"a pointer less":            {step(Delete, node, pointer), true},
		"a dynamic node less":       {step(Delete, node, dynamic), true},
		"a membership":              {step(Delete, membership, plain), true},
		"a member of a set":         {step(Create, member, plain), true},
		"an application's status":   {step(Update, application, plain, "status"), true},
		"an application's name":     {step(Update, application, plain, "name"), false},
		"the actions of a resource": {step(Update, resource, plain, "actions"), true},
		"a rule":                    {step(Create, rule, plain), false},
	} {
		assert.Equal(t, c.want, c.step.changesOtherwise(), name)
	}
}

// TestImpact looks at the words for each answer, and for none.
func TestImpact(t *testing.T) {
	t.Parallel()
	actual := &Actual{names: map[string]map[string]string{application: {"1": "crm", "2": "报销"}}}
	items := []idp.ChangedDecision{
		{IdentityType: "user", IdentityID: "7", IdentityName: "李伟", ApplicationID: "1", ObjectType: "data",
			ObjectCode: "invoice", Action: "read", Change: "gained"},
		{IdentityType: "application", IdentityID: "2", ApplicationID: "1", ObjectType: "app", Change: "lost",
			Conditional: true},
	}
	many := make([]idp.ChangedDecision, 100)
	for i := range many {
		many[i] = idp.ChangedDecision{IdentityType: "user", IdentityID: fmt.Sprint(i), ApplicationID: "3",
			ObjectType: "app", Change: "lost"}
	}
	var twenty bytes.Buffer
	for i := range 20 {
		fmt.Fprintf(&twenty, "    loses  %-2d  3  use\n", i)
	}
	for name, c := range map[string]struct {
		impact Impact
		want   string
	}{
		"some": {Impact{AccessImpact: &idp.AccessImpact{
			Gained: 1, Lost: 1, IdentitiesGaining: 1, IdentitiesLosing: 1, Items: items, Complete: true,
			ByType: map[string]idp.IdentitiesReached{"user": {Gaining: 1}, "application": {Losing: 1}},
		}}, `access: 1 person gains, 1 application loses
    gains  李伟              crm:data:invoice  read
    loses  application 报销  crm               use   by a condition
`},
		"many": {Impact{AccessImpact: &idp.AccessImpact{
			Lost: 332, IdentitiesLosing: 12, Items: many, More: true, Undecided: 3,
			ByType: map[string]idp.IdentitiesReached{"user": {Losing: 10}, "application": {Losing: 2}},
		}}, "access: at least: nobody gains, 10 people and 2 applications lose\n" + twenty.String() + `    and 312 more
    3 further decisions depend on the context of a check
    not everything was compared: there is too much
`},
		"none": {Impact{AccessImpact: &idp.AccessImpact{Complete: true}},
			"access: nobody gains or loses any\n"},
		"nobody of a part": {
			Impact{AccessImpact: &idp.AccessImpact{Complete: true}, NotTried: []string{"Membership a: b"}},
			"access (incomplete): nobody gains or loses any\n    not compared: Membership a: b\n",
		},
		"unknown": {Impact{Unknown: "it needs the scope permissions:read", NotTried: []string{"Rule a: b"}},
			`access: not known: it needs the scope permissions:read
    not compared: Rule a: b
`},
		"not tried": {Impact{NotTried: []string{"1", "2", "3", "4", "5", "6", "7"}},
			`access: nothing can be compared yet
    not compared: 1
    not compared: 2
    not compared: 3
    not compared: 4
    not compared: 5
    not compared: 2 more
`},
	} {
		var out bytes.Buffer
		(&page{View: View{Width: usualWidth}, w: &out}).impact(&c.impact, actual)
		assert.Equal(t, "\n"+c.want+"\n", out.String(), name)
	}
}
