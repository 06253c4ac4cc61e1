package engine_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/rounds"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
)

// line is a privilege as the naive list has it: the members of engine.PrivilegeMembers, then the actions.
type line struct {
	members map[string]string
	actions string
}

// privileges lists naively.
func (s *simulation) privileges(f engine.PrivilegeFilter) (all []line) {
	w := s.world
	for _, rule := range w.Rules {
		unit := w.Units[rule.UnitID]
		if unit == nil || rule.ApplicationID != f.ApplicationID ||
			f.Now < rule.From || rule.To != 0 && f.Now >= rule.To {
			continue
		}
		whom := []engine.Identity{unit.Identity}
		if f.Identity.ID != "" {
			whom = nil
			for _, kind := range []string{engine.User, engine.Node, engine.CoreObject, engine.Application, engine.Group,
				engine.Everyone} {
				who := engine.Identity{Type: kind, ID: f.Identity.ID}
				if w.Exists(who) && w.Reaches(unit.Identity, who) {
					whom = append(whom, who)
				}
			}
		}
		for _, who := range whom {
			if f.Identity.Type != "" && f.Identity.Type != who.Type {
				continue
			}
			from := ""
			if who != unit.Identity {
				from = unit.ID
			}
			for _, object := range s.objects(rule, f.Expand) {
				object.members["identity_id"], object.members["identity_type"] = who.ID, who.Type
				object.members["identity_name"] = s.tenant.State().Label(who)
				object.members["application_id"], object.members["rule_id"] = rule.ApplicationID, rule.ID
				object.members["auth_unit_id"], object.members["inherited_from"] = rule.UnitID, from
				object.members["time_created"] = fmt.Sprint(rule.Created)
				object.members["affect"] = map[bool]string{true: "deny", false: "affect"}[rule.Deny]
				if f.ObjectType != "" && f.ObjectType != object.members["object_type"] ||
					f.ObjectCode != "" && f.ObjectCode != object.members["object_code"] ||
					f.Affect != "" && f.Affect != object.members["affect"] ||
					f.Name != "" && f.Name != object.members["identity_name"] {
					continue
				}
				all = append(all, object)
			}
		}
	}
	return all
}

func (s *simulation) objects(rule *engine.Rule, expand bool) (all []line) {
	add := func(kind, id, code, name string, actions []string) {
		all = append(all, line{map[string]string{"object_type": kind, "object_id": id, "object_code": code,
			"object_name": name}, fmt.Sprint(actions)})
	}
	r := s.world.Resources[rule.ResourceID]
	switch {
	case rule.Type == engine.App:
		add(rule.Type, rule.ApplicationID, "", "", rule.Actions)
	case rule.Type == engine.Wildcard:
		add(rule.Type, "", rule.Code, "", rule.Actions)
	case rule.Type == engine.ResourceSet && !expand:
		add(rule.Type, rule.SetID, "", "", rule.Actions)
	case rule.Type == engine.ResourceSet:
		for _, m := range s.world.Members {
			r := s.world.Resources[m.ResourceID]
			if m.SetID != rule.SetID || r == nil {
				continue
			}
			actions := m.Actions
			if !slices.Contains(rule.Actions, engine.Any) {
				actions = slices.DeleteFunc(slices.Clone(rule.Actions), func(action string) bool {
					return !slices.Contains(m.Actions, action) && !slices.Contains(m.Actions, engine.Any)
				})
			}
			if len(actions) > 0 {
				add(r.Type, r.ID, r.Code, r.Name, actions)
			}
		}
	case r == nil:
		add(rule.Type, rule.ResourceID, "", "", rule.Actions)
	default:
		add(rule.Type, r.ID, r.Code, r.Name, rule.Actions)
	}
	return all
}

// order sorts lines naively.
func order(all []line, by []engine.By) {
	id := func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }
	slices.SortFunc(all, func(a, b line) int {
		for _, b2 := range by {
			compare := strings.Compare
			if strings.HasSuffix(b2.Member, "_id") || b2.Member == "time_created" {
				compare = id
			}
			c := compare(a.members[b2.Member], b.members[b2.Member])
			if c != 0 && b2.Desc {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return cmp.Or(id(a.members["rule_id"], b.members["rule_id"]),
			id(a.members["object_id"], b.members["object_id"]),
			strings.Compare(a.members["identity_type"], b.members["identity_type"]),
			strings.Compare(a.members["identity_id"], b.members["identity_id"]))
	})
}

func text(l line) string {
	t := l.actions
	for _, member := range engine.PrivilegeMembers {
		t += "|" + l.members[member]
	}
	return t
}

// Lists of privileges are those of a naive list, whatever they are filtered and sorted by and however they are paged.
func TestPrivilegesAreWhatIsGranted(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	found := 0
	for seed := range uint64(60) {
		s := newSimulation(seed)
		for range 600 {
			s.step()
		}
		for range 60 {
			f := engine.PrivilegeFilter{ApplicationID: one(s, apps), Now: int64(s.IntN(120)), Expand: s.IntN(3) == 0}
			switch s.IntN(4) {
			case 0:
				f.Identity = s.identity()
			case 1:
				f.Identity.ID = s.identity().ID
			case 2:
				f.Identity.Type = s.identity().Type
			}
			if s.IntN(4) == 0 {
				f.Name = s.tenant.State().Label(s.identity())
			}
			if s.IntN(3) == 0 {
				f.ObjectType = one(s, []string{engine.Data, engine.UI, engine.App, engine.ResourceSet, engine.Wildcard})
			}
			if s.IntN(3) == 0 {
				f.ObjectCode = one(s, append(codes, "a*"))
			}
			if s.IntN(3) == 0 {
				f.Affect = one(s, []string{"affect", "deny"})
			}
			var by []engine.By
			for range s.IntN(3) {
				member := one(s, engine.PrivilegeMembers)
				if !slices.ContainsFunc(by, func(b engine.By) bool { return b.Member == member }) {
					by = append(by, engine.By{Member: member, Desc: s.IntN(2) == 0})
				}
			}
			want := s.privileges(f)
			order(want, by)
			found += len(want)
			s.comparePages(t, f, by, want)
		}
	}
	require.Greater(t, found, 1000)
}

// comparePages walks through a list by tokens, and looks at one page by its number.
func (s *simulation) comparePages(t *testing.T, f engine.PrivilegeFilter, by []engine.By, want []line) {
	t.Helper()
	texts := make([]string, len(want))
	for i := range want {
		texts[i] = text(want[i])
	}
	ask := func(page engine.PrivilegePage) (got []string, list engine.PrivilegeList) {
		list, err := s.tenant.State().Privileges(t.Context(), f, page)
		require.NoError(t, err)
		for _, p := range list.Lines {
			l := line{map[string]string{}, fmt.Sprint(p.Actions)}
			for _, member := range engine.PrivilegeMembers {
				l.members[member] = p.Key([]engine.By{{Member: member}})[0]
			}
			got = append(got, text(l))
		}
		return got, list
	}
	page := engine.PrivilegePage{Sort: by, Limit: 1 + s.IntN(5), Count: true}
	var walked []string
	for {
		got, list := ask(page)
		require.Equal(t, len(want), list.Total, "%+v", f)
		require.False(t, list.More)
		walked = append(walked, got...)
		if !list.Next {
			break
		}
		page.After = list.Lines[len(list.Lines)-1].Key(by)
		require.True(t, page.Follows())
	}
	require.Equal(t, strings.Join(texts, "\n"), strings.Join(walked, "\n"), "%+v %+v", f, by)
	page.After, page.Offset = nil, s.IntN(len(want)+2)
	got, _ := ask(page)
	from := min(page.Offset, len(want))
	require.Equal(t, strings.Join(texts[from:min(from+page.Limit, len(want))], "\n"), strings.Join(got, "\n"),
		"%+v %+v", f, by)
}
