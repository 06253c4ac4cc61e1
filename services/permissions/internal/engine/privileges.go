package engine

import (
	"container/heap"
	"context"
	"slices"
)

// PrivilegeFilter selects grants of an application that hold now. An empty member means any.
type PrivilegeFilter struct {
	Identity               Identity // with an ID: what reaches it, of every type if none is given; else the grantee
	Name                   string   // of the identity
	ApplicationID          string
	ObjectType, ObjectCode string
	Affect                 string // affect or deny
	Expand                 bool   // list the resources of sets instead of the sets
	Now                    int64  // milliseconds since 1970
	Work                   *Work  // the work that the question is part of
}

// PrivilegePage says which part of a list is wanted.
type PrivilegePage struct {
	Sort          []By     // ties are in the order of rules, objects and identities
	After         []string // the Key of the line before; nil: from the beginning, without Offset lines
	Offset, Limit int
	Count         bool
}

// Follows reports whether After can be a Key of the page's order.
func (p *PrivilegePage) Follows() bool { return len(p.After) == len(p.Sort)+ties }

// PrivilegeList is a page of privileges.
type PrivilegeList struct {
	Lines []Privilege
	Next  bool // more follow
	Total int  // if it was asked for
	More  bool // there are more than Total
}

// MaxCounted is up to which number the lines of a list are counted for certain.
const MaxCounted = 10_000

// Privileges lists grants. In the order of rules a page costs what it has, however many rules there are: only rules
// whose validity is bounded, sets that are expanded, and what an identity or a code is granted are looked at one by
// one. In other orders all lines that match are compared, and as many kept as the page reaches. An error is ErrReach or
// that of a pause.
func (s *State) Privileges(ctx context.Context, f PrivilegeFilter, page PrivilegePage) (PrivilegeList, error) {
	if f.Work == nil {
		f.Work = NewWork(nil)
		defer f.Work.Done()
	}
	sources, err := s.sources(ctx, &f)
	if err != nil {
		return PrivilegeList{}, err
	}
	if len(page.Sort) == 0 || page.Sort[0].Member == "rule_id" {
		return s.inOrder(ctx, &f, page, sources)
	}
	return s.sorted(ctx, &f, page, sources)
}

// lines are what a rule contributes to a list, in the order of objects.
func (s *State) lines(f *PrivilegeFilter, from *ruleSource, rule *Rule) []Privilege {
	if rule.ApplicationID != f.ApplicationID || !rule.current(f.Now) ||
		f.Affect != "" && f.Affect != effect(rule.Deny) {
		return nil
	}
	who := from.who
	if who.ID == "" {
		unit := s.units.Get(rule.UnitID)
		if unit == nil || f.Identity.Type != "" && unit.Identity.Type != f.Identity.Type {
			return nil
		}
		who = unit.Identity
	}
	name := s.Label(who)
	if f.Name != "" && f.Name != name {
		return nil
	}
	all := s.privileges(rule, f.Expand)
	all = slices.DeleteFunc(all, func(p Privilege) bool {
		return f.ObjectType != "" && f.ObjectType != p.ObjectType || f.ObjectCode != "" && f.ObjectCode != p.ObjectCode
	})
	for i := range all {
		all[i].Identity, all[i].Name, all[i].Inherited = who, name, from.inherited
	}
	slices.SortFunc(all, func(a, b Privilege) int { return compareIDs(a.ObjectID, b.ObjectID) })
	return all
}

// inOrder makes a page in the order of rules.
func (s *State) inOrder(ctx context.Context, f *PrivilegeFilter, page PrivilegePage, sources []*ruleSource) (
	list PrivilegeList, err error) {
	by, start := page.Sort, ""
	back := len(by) > 0 && by[0].Desc
	if page.After != nil {
		start, page.Offset = page.After[0], 0
	}
	for _, from := range sources {
		from.begin(start, back)
	}
	for len(list.Lines) <= page.Limit {
		var lines []Privilege
		rule := lowest(sources, back)
		if rule == nil {
			break
		}
		if err := f.Work.spend(ctx, 1+len(sources)/16); err != nil {
			return list, err
		}
		for _, from := range sources {
			if at := from.rule(); at != nil && at.ID == rule.ID {
				lines = append(lines, s.lines(f, from, at)...)
				from.next()
			}
		}
		slices.SortFunc(lines, func(a, b Privilege) int { return compareKeys(by, a.Key(by), b.Key(by)) })
		for _, p := range lines {
			switch {
			case page.After != nil && compareKeys(by, p.Key(by), page.After) <= 0:
			case page.Offset > 0:
				page.Offset--
			default:
				list.Lines = append(list.Lines, p)
			}
		}
	}
	if list.Next = len(list.Lines) > page.Limit; list.Next {
		list.Lines = list.Lines[:page.Limit]
	}
	if page.Count {
		list.Total, list.More, err = s.count(ctx, f, sources)
	}
	return list, err
}

// lowest is the next rule of all sources; nil at the end.
func lowest(sources []*ruleSource, back bool) (first *Rule) {
	for _, from := range sources {
		rule := from.rule()
		if rule == nil {
			continue
		}
		if first == nil || back == (compareIDs(rule.ID, first.ID) > 0) && rule.ID != first.ID {
			first = rule
		}
	}
	return first
}

// count counts all lines, up to MaxCounted of those that must be looked at one by one.
func (s *State) count(ctx context.Context, f *PrivilegeFilter, sources []*ruleSource) (n int, more bool, err error) {
	looked := 0
	for _, from := range sources {
		if from.exact {
			n += from.rules.Len()
			continue
		}
		for from.begin("", false); from.rule() != nil; from.next() {
			if err := f.Work.spend(ctx, 1); err != nil {
				return n, false, err
			}
			lines := len(s.lines(f, from, from.rule()))
			n += lines
			if looked += lines; looked > MaxCounted {
				return n, true, nil
			}
		}
	}
	return n, false, nil
}

// sorted makes a page in any other order.
func (s *State) sorted(ctx context.Context, f *PrivilegeFilter, page PrivilegePage, sources []*ruleSource) (
	list PrivilegeList, err error) {
	if page.After != nil {
		page.Offset = 0
	}
	kept := lastFirst{by: page.Sort}
	for _, from := range sources {
		for from.begin("", false); from.rule() != nil; from.next() {
			if err := f.Work.spend(ctx, 4); err != nil {
				return list, err
			}
			for _, p := range s.lines(f, from, from.rule()) {
				list.Total++
				line := keyed{p, p.Key(page.Sort)}
				if page.After != nil && compareKeys(page.Sort, line.key, page.After) <= 0 {
					continue
				}
				if len(kept.lines) > page.Offset+page.Limit {
					if compareKeys(page.Sort, line.key, kept.lines[0].key) > 0 {
						continue
					}
					heap.Pop(&kept)
				}
				heap.Push(&kept, line)
			}
		}
	}
	slices.SortFunc(kept.lines, func(a, b keyed) int { return compareKeys(page.Sort, a.key, b.key) })
	list.Next = len(kept.lines) > page.Offset+page.Limit
	for i := page.Offset; i < min(len(kept.lines), page.Offset+page.Limit); i++ {
		list.Lines = append(list.Lines, kept.lines[i].Privilege)
	}
	return list, nil
}

// lastFirst is a heap of lines whose top is the last of them in the order.
type lastFirst struct {
	by    []By
	lines []keyed
}

type keyed struct {
	Privilege
	key []string
}

func (l *lastFirst) Len() int           { return len(l.lines) }
func (l *lastFirst) Less(i, j int) bool { return compareKeys(l.by, l.lines[i].key, l.lines[j].key) > 0 }
func (l *lastFirst) Swap(i, j int)      { l.lines[i], l.lines[j] = l.lines[j], l.lines[i] }
func (l *lastFirst) Push(line any)      { l.lines = append(l.lines, line.(keyed)) }
func (l *lastFirst) Pop() any {
	last := l.lines[len(l.lines)-1]
	l.lines = l.lines[:len(l.lines)-1]
	return last
}
