package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/rounds"
)

// small is a company: alice belongs to a team below a department, bob to nothing.
func small() *Tenant {
	t := NewTenant()
	t.Change(func(c *Change) {
		c.PutTree(&Tree{"1", "company", "Company", 1})
		c.PutNode(&TreeNode{"10", "Company", "", "company", "", false, 1})
		c.PutNode(&TreeNode{"11", "Finance", "10", "company", "", false, 1})
		c.PutNode(&TreeNode{"12", "Payroll", "11", "company", "", false, 1})
		c.PutPerson(&Person{ID: "20", Username: "Alice", Properties: `{"level":3}`, Sequence: 1})
		c.PutPerson(&Person{ID: "21", Username: "bob", Sequence: 1})
		c.PutMembership(&Membership{"30", "12", "20", 1})
		c.PutResource(&Resource{ID: "40", ApplicationID: "9", Type: Data, Code: "ledger",
			Actions: []string{"read", "write"}, Sequence: 1})
		c.PutUnit(&Unit{"50", Identity{Node, "11"}, "Finance", 1})
		c.PutUnit(&Unit{"51", Identity{User, "20"}, "Alice", 1})
		c.PutUnit(&Unit{"52", Identity{Everyone, Any}, "Everyone", 1})
	})
	return t
}

// grant puts a rule of application 9, which allows reading the ledger unless r says otherwise.
func (t *Tenant) grant(r Rule) {
	if r.Type == "" {
		r.Type, r.ResourceID = Data, "40"
	}
	r.ApplicationID, r.Sequence = "9", 1
	if r.Actions == nil {
		r.Actions = []string{"read"}
	}
	t.Change(func(c *Change) { c.PutRule(&r) })
}

func reading(user string) *Question {
	return &Question{Identity: Identity{User, user}, ApplicationID: "9", ObjectType: Data, ObjectCode: "ledger",
		Action: "read", Now: 1000}
}

func (t *Tenant) explain(tb testing.TB, q *Question) Explanation {
	e, err := t.State().Explain(tb.Context(), q)
	require.NoError(tb, err)
	return e
}

func TestViaIsTheWayToTheGrant(t *testing.T) {
	t.Parallel()
	company := small()
	company.grant(Rule{ID: "60", UnitID: "50"})
	got := company.explain(t, reading("20"))
	require.True(t, got.Allowed)
	require.Equal(t, []Party{{Identity{User, "20"}, "Alice"}, {Identity{Node, "12"}, "Payroll"},
		{Identity{Node, "11"}, "Finance"}}, got.Via)
	require.Equal(t, "60", got.Rule.ID)
}

func TestNearestMiss(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		rules []Rule
		asked string
		kind  string
		text  string
	}{
		"a deny": {
			[]Rule{{ID: "60", UnitID: "50"}, {ID: "61", UnitID: "52", Deny: true}}, "20", MissDeny,
			`Rule 61 denies "read" of data ledger to everyone; a deny goes before every grant.`,
		},
		"a value of the context": {
			[]Rule{{ID: "60", UnitID: "51", Condition: &Condition{Text: "context.office"}}}, "20", MissContext,
			`Rule 60 would allow "read" of data ledger, but the condition cannot be decided: ` +
				"there is no member office.",
		},
		"a membership": {
			[]Rule{{ID: "60", UnitID: "50"}}, "21", MissMembership,
			`user "bob" (21) is not a member of node "Finance" (11), to which rule 60 grants "read" of data ledger.`,
		},
		"a grant, since a membership would not help": {
			[]Rule{{ID: "60", UnitID: "50"}, {ID: "61", UnitID: "50", Deny: true}}, "21", MissGrant,
			`No rule that applies grants "read" of data ledger to user "bob" (21) or to anything that it belongs to.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			company := small()
			for _, r := range row.rules {
				company.grant(r)
			}
			got := company.explain(t, reading(row.asked))
			require.False(t, got.Allowed)
			require.Equal(t, row.kind, got.Nearest.Kind)
			require.Equal(t, row.text, got.Nearest.Text)
		})
	}
}

func TestExplainSaysWhyRulesDoNotApply(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		rule    Rule
		applies bool
		why     string
	}{
		"applies":        {Rule{}, true, ""},
		"another action": {Rule{Actions: []string{"write"}}, false, "it is about other actions: write"},
		"not yet":        {Rule{From: 2000}, false, "it is valid only from 1970-01-01T00:00:02Z on"},
		"no longer":      {Rule{To: 1000}, false, "it was valid only until 1970-01-01T00:00:01Z"},
		"condition false": {Rule{Condition: &Condition{Text: "subject.properties.level > 3"}}, false,
			"its condition is not met"},
		"condition true": {Rule{Condition: &Condition{Text: "subject.name == 'Alice' && now < " +
			"timestamp('2000-01-01T00:00:00Z')"}}, true, ""},
		"allow, undecided": {Rule{Condition: &Condition{Text: "context.ip == ''"}}, false,
			"the condition cannot be decided: there is no member ip"},
		"deny, undecided": {Rule{Deny: true, Condition: &Condition{Text: "context.ip == ''"}}, true,
			"the condition cannot be decided: there is no member ip"},
		"not a condition": {Rule{Condition: &Condition{Text: "("}}, false, "line 1, column 2: syntax error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			company := small()
			row.rule.ID, row.rule.UnitID = "60", "50"
			company.grant(row.rule)
			got := company.explain(t, reading("20"))
			require.Len(t, got.Considered, 1)
			require.Equal(t, row.applies, got.Considered[0].Applies)
			require.Equal(t, row.why, got.Considered[0].Why)
			require.Equal(t, row.applies && !row.rule.Deny, got.Allowed)
		})
	}
}

func TestUnknownIsNotAllowed(t *testing.T) {
	t.Parallel()
	company := small()
	company.grant(Rule{ID: "60", UnitID: "52", Type: Wildcard, Actions: []string{Any}})
	for reason, q := range map[Reason]*Question{
		UnknownIdentity: reading("99"),
		UnknownObject: {Identity: Identity{User, "20"}, ApplicationID: "9", ObjectType: UI, ObjectCode: "ledger",
			Action: "read"},
		UnknownAction: {Identity: Identity{User, "20"}, ApplicationID: "9", ObjectType: Data, ObjectCode: "ledger",
			Action: "burn"},
		Granted: reading("20"),
	} {
		got := company.explain(t, q)
		require.Equal(t, reason, got.Reason)
		require.Equal(t, reason == Granted, got.Allowed)
	}
}

// The conditions of one check have a common budget: those that it does not cover are undecided.
func TestConditionsOfACheckHaveABudget(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	company := small()
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 100), ",") + "]"
	for i := range 60 {
		id := strconv.Itoa(100 + i)
		company.grant(Rule{ID: id, UnitID: "51",
			Condition: &Condition{Text: fmt.Sprintf("%s.all(x, %s.all(y, x == y)) && context.n == %d", list, list, i)}})
	}
	got := company.explain(t, reading("20"))
	exhausted := 0
	for _, c := range got.Considered {
		if strings.Contains(c.Why, errTooCostly.Error()) {
			exhausted++
		}
	}
	require.Positive(t, exhausted)
	require.Less(t, exhausted, 60)
}

func TestReachIsBounded(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	company := small()
	company.Change(func(c *Change) {
		for i := range MaxReach {
			c.PutNode(&TreeNode{ID: "n" + strconv.Itoa(i), ParentID: "10", ObjectCode: "company", Sequence: 1})
			c.PutMembership(&Membership{ID: "m" + strconv.Itoa(i), NodeID: "n" + strconv.Itoa(i), UserID: "21",
				Sequence: 1})
		}
	})
	_, err := company.State().Check(t.Context(), reading("21"))
	require.ErrorIs(t, err, ErrReach)
}

func TestACancelledQuestionHasNoAnswer(t *testing.T) {
	t.Parallel()
	company := small()
	company.grant(Rule{ID: "60", UnitID: "51", Condition: &Condition{Text: "[1, 2, 3].all(x, [4, 5].all(y, x < y))"}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := company.State().Check(ctx, reading("20"))
	require.ErrorIs(t, err, context.Canceled)
}

// A long question pauses, a short one does not. The error of a pause is the error of the question.
func TestLongQuestionsPause(t *testing.T) {
	t.Parallel()
	company := small()
	company.grant(Rule{ID: "60", UnitID: "52",
		Condition: &Condition{Text: "[1, 2, 3, 4, 5].all(x, [6, 7, 8, 9].all(y, x < y))"}})
	company.Change(func(c *Change) {
		for i := range 5000 {
			c.PutPerson(&Person{ID: strconv.Itoa(1000 + i), Username: strconv.Itoa(1000 + i), Sequence: 1})
		}
	})
	pauses := 0
	var fails error
	ask := func(question func(*Question) error) error {
		q := reading("20")
		q.Work = NewWork(func(_ context.Context, took time.Duration) error {
			require.GreaterOrEqual(t, took, slice)
			pauses++
			return fails
		})
		defer q.Work.Done()
		return question(q)
	}
	whoMay := func(q *Question) error {
		who, err := company.State().Identities(t.Context(), q, User)
		require.True(t, err != nil || len(who) == 5002)
		return err
	}
	require.NoError(t, ask(whoMay))
	require.Greater(t, pauses, 5)
	pauses = 0
	require.NoError(t, ask(func(q *Question) error {
		_, err := company.State().Check(t.Context(), q)
		return err
	}))
	require.Zero(t, pauses)
	fails = errors.New("refused")
	require.ErrorIs(t, ask(whoMay), fails)
}

// What does not help is examined, too, so that a question pauses that meets much of it.
func TestQuestionsPauseWhereNothingHelps(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	company, large := small(), small()
	large.grant(Rule{ID: "60", UnitID: "50"})
	large.Change(func(c *Change) {
		for i := range 100_000 {
			c.PutNode(&TreeNode{strconv.Itoa(100_000 + i), "Empty", "11", "company", "", false, 1})
		}
	})
	company.Change(func(c *Change) {
		for i := range 100_000 {
			id := strconv.Itoa(100_000 + i)
			c.PutUnit(&Unit{ID: "u" + id, Identity: Identity{User, id}, Sequence: 1})
			c.PutRule(&Rule{ID: id, UnitID: "u" + id, ApplicationID: "9", Type: Data, ResourceID: "40", Deny: true,
				Actions: []string{"write"}, Sequence: 1})
		}
	})
	sets := small()
	sets.Change(func(c *Change) { // the object is in sets that nobody is granted
		c.PutRule(&Rule{ID: "60", UnitID: "50", ApplicationID: "9", Type: Data, ResourceID: "41", Sequence: 1})
		for i := range 10_000 {
			id := strconv.Itoa(100_000 + i)
			c.PutMember(&Member{ID: id, SetID: id, ResourceID: "40", Actions: []string{Any}, Sequence: 1})
		}
	})
	for name, ask := range map[string]func(*Question) error{
		"rules that deny": func(q *Question) error {
			_, err := company.State().Identities(t.Context(), q, User)
			return err
		},
		"nodes without users": func(q *Question) error {
			_, err := large.State().Identities(t.Context(), q, User)
			return err
		},
		"units with other names": func(q *Question) error {
			_, err := company.State().Privileges(t.Context(), PrivilegeFilter{
				Name: "nobody", ApplicationID: "9", Work: q.Work,
			}, PrivilegePage{Limit: 1})
			return err
		},
		"explanation": func(q *Question) error {
			_, err := company.State().Explain(t.Context(), q)
			return err
		},
		"sets without rules": func(q *Question) error {
			q.Identity = reading("20").Identity // to whom something else is granted
			_, err := sets.State().Check(t.Context(), q)
			return err
		},
	} {
		pauses := 0
		q := reading("21")
		q.Work = NewWork(func(context.Context, time.Duration) error { pauses++; return nil })
		require.NoError(t, ask(q), name)
		q.Work.Done()
		require.Positive(t, pauses, name)
	}
}

// A check pauses while one long condition is evaluated. A condition without loops counts by its cost.
func TestConditionsPause(t *testing.T) {
	t.Parallel()
	check := func(condition, given string, pause func(context.Context, time.Duration) error) (*Work, error) {
		company := small()
		company.grant(Rule{ID: "60", UnitID: "52", Condition: &Condition{Text: condition}})
		q := reading("20")
		q.Context, q.Work = []byte(given), NewWork(pause)
		d, err := company.State().Check(t.Context(), q)
		require.Equal(t, err == nil, d.Allowed)
		return q.Work, err
	}
	long := `context.l.all(a, context.l.all(b, a + b >= 0))`
	numbers := `{"l":[1` + strings.Repeat(",1", 60) + `]}`
	pauses := 0
	_, err := check(long, numbers, func(context.Context, time.Duration) error { pauses++; return nil })
	require.NoError(t, err)
	require.Greater(t, pauses, 1)
	fails := errors.New("refused")
	_, err = check(long, numbers, func(context.Context, time.Duration) error { return fails })
	require.ErrorIs(t, err, fails)

	text := `{"text":"` + strings.Repeat("a", 5000) + `"}`
	w, err := check(`context.text.matches("a+$")`, text, nil)
	require.NoError(t, err)
	require.Greater(t, w.units, 5000)
}

// Questions that share a Work have the same answers as questions alone.
func TestQuestionsShareTheirWork(t *testing.T) {
	t.Parallel()
	company := small()
	company.grant(Rule{ID: "60", UnitID: "50"})
	w := NewWork(nil)
	defer w.Done()
	for _, state := range []*State{company.State(), nil} {
		if state == nil { // a later state, in which alice belongs to nothing
			company.Change(func(c *Change) { c.DropMembership("30", "12") })
			state = company.State()
		}
		for _, user := range []string{"20", "20", "21", "99", "20"} {
			q, alone := reading(user), reading(user)
			q.Work = w
			got, err := state.Check(t.Context(), q)
			require.NoError(t, err)
			want, err := state.Check(t.Context(), alone)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
}

// A check and an explanation examine a bounded number of rules.
func TestTooManyRules(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	company := small()
	company.Change(func(c *Change) {
		const sets = 500
		for i := range sets {
			id := strconv.Itoa(i)
			c.PutMember(&Member{ID: id, SetID: id, ResourceID: "40", Actions: []string{Any}, Sequence: 1})
		}
		for i := range MaxSearch {
			c.PutRule(&Rule{ID: strconv.Itoa(1000 + i), UnitID: "50", ApplicationID: "9", Type: ResourceSet,
				SetID: strconv.Itoa(i % sets), Actions: []string{"read"}, Sequence: 1})
		}
	})
	_, err := company.State().Check(t.Context(), reading("20"))
	require.NoError(t, err)
	_, err = company.State().Explain(t.Context(), reading("20"))
	require.ErrorIs(t, err, ErrSearch)
	company.grant(Rule{ID: "60", UnitID: "50"})
	_, err = company.State().Check(t.Context(), reading("20"))
	require.ErrorIs(t, err, ErrSearch)
}

func TestURIs(t *testing.T) {
	t.Parallel()
	company := small()
	company.Change(func(c *Change) {
		for i, uri := range []string{"/orders", "/orders/{id}", "/orders/{id}/lines", "/orders/new", "/files/**",
			"/files/*/head", "/**", "/dir/"} {
			c.PutResource(&Resource{ID: strconv.Itoa(70 + i), ApplicationID: "9", Type: API, Code: "r" +
				strconv.Itoa(i), URI: uri, Sequence: 1})
		}
	})
	for path, want := range map[string]string{
		"/orders": "/orders", "/orders/7": "/orders/{id}", "/orders/new": "/orders/new",
		"/orders/7/lines": "/orders/{id}/lines", "/orders/": "", "/files/a/": "", "/dir/": "/dir/", "/dir": "/**",
		"/orders/7/other": "/**", "/files/a/b/c": "/files/**", "/files/a/head": "/files/*/head", "/files": "/files/**",
		"/":                       "/**",
		strings.Repeat("/a", 100): "",
	} {
		got := ""
		if r := company.State().Resource(&Question{ApplicationID: "9", ObjectType: API, URI: path}); r != nil {
			got = r.URI
		}
		require.Equal(t, want, got, path)
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	for pattern, texts := range map[string]map[string]bool{
		"*":       {"": true, "a/b:c": true},
		"a*c":     {"ac": true, "abc": true, "abcd": false, "acc": true},
		"*a*b*":   {"ab": true, "xaxbx": true, "ba": false},
		"a?c":     {"abc": true, "ac": false},
		"orders/": {"orders/": true, "orders": false},
	} {
		for text, want := range texts {
			require.Equal(t, want, Match(pattern, text), "%s %s", pattern, text)
		}
	}
	require.NotEmpty(t, ValidPattern("a**"))
	for _, meant := range []string{"a[bc]", "{a,b}", "a b", "^a.*$"} {
		require.NotEmpty(t, ValidPattern(meant), meant)
	}
	require.NotEmpty(t, ValidPattern(strings.Repeat("a*", MaxStars+1)))
	require.Empty(t, ValidPattern(strings.Repeat("a*", MaxStars)))
}

// A Map has the entries that a Go map has after the same changes; older versions do not change.
func TestMap(t *testing.T) {
	t.Parallel()
	var m Map[string, int]
	want := map[string]int{}
	for i := range 20_000 {
		by := &edit{}
		old, key := m, strconv.Itoa(i*7%5000)
		before, had := old.Lookup(key)
		if i%3 == 0 {
			m.drop(by, key)
			delete(want, key)
		} else {
			m.put(by, key, i)
			want[key] = i
		}
		after, has := old.Lookup(key)
		require.Equal(t, []any{before, had}, []any{after, has})
	}
	got := map[string]int{}
	for k, v := range m.All() {
		got[k] = v
	}
	require.Equal(t, want, got)
	require.Equal(t, len(want), m.Len())
}
