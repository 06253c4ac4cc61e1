package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// Records that files do not have, and that go with others.
const (
	account    = "Account"    // of an application
	membership = "Membership" // of a node
)

// Forbidden is the error of a plan that deletes more than the flags allow; nil if it does not.
func (p *Plan) Forbidden() error {
	deletes, foreign := 0, 0
	for _, s := range p.Steps {
		if s.Action == Delete {
			deletes++
		}
		if s.Foreign {
			foreign++
		}
	}
	var why []string
	if deletes > p.options.MaxDeletes {
		why = append(why, fmt.Sprintf("%d records would be deleted, and --max-deletes is %d", deletes,
			p.options.MaxDeletes))
	}
	if foreign > 0 && !p.options.Cascade {
		why = append(why, fmt.Sprintf("%d of them are not of the set: --cascade deletes what goes with its records",
			foreign))
	}
	if len(why) == 0 {
		return nil
	}
	return failure.Usagef("%s", strings.Join(why, "; "))
}

// cascade finds what the platform deletes together with the records of the steps, and adds a step for each that has
// none. None of them is the set's: what the set made has a step, or is still in the files.
func (p *Plan) cascade(ctx context.Context, gone []*Step) error {
	c := &cascade{Plan: p, deleted: map[string]map[string]Ref{}}
	for _, s := range gone {
		c.note(s.record)
	}
	for _, find := range []func(context.Context) error{c.parts, c.members, c.rules, c.memberships} {
		if err := find(ctx); err != nil {
			return err
		}
	}
	return nil
}

type cascade struct {
	*Plan
	deleted map[string]map[string]Ref // by kind and id
}

// note remembers a record that goes. It returns false if it was known.
func (c *cascade) note(r *Record) bool {
	if c.deleted[r.Kind] == nil {
		c.deleted[r.Kind] = map[string]Ref{}
	}
	_, known := c.deleted[r.Kind][r.ID]
	c.deleted[r.Kind][r.ID] = r.Ref
	return !known
}

// goes adds the step of a record that goes with another.
func (c *cascade) goes(r *Record, with Ref) {
	if c.note(r) {
		c.Steps = append(c.Steps, &Step{
			Action: Delete, Ref: r.Ref, Changes: []Change{}, record: r, With: &with, Foreign: true,
		})
	}
}

// once adds a record to what is known of the tenant, unless it is there.
func (l *Actual) once(kind string, raw, outer map[string]any) (*Record, error) {
	id, _ := raw["id"].(string)
	if r := l.records[Ref{kind, l.names[kind][id]}]; r != nil {
		return r, nil
	}
	return l.add(kind, raw, outer)
}

// each calls do for each record of a list.
func (c *cascade) each(ctx context.Context, path string, query url.Values, do func(map[string]any) error) error {
	for raw, err := range c.platform.Each(ctx, path, query) {
		if err != nil {
			return err
		}
		if err := do(raw); err != nil {
			return err
		}
	}
	return nil
}

// parts finds the resources, sets and accounts of applications.
func (c *cascade) parts(ctx context.Context) error {
	for id, of := range c.deleted[application] {
		query, outer := url.Values{"application_id": {id}}, map[string]any{"application": of.Key}
		for kind, path := range map[string]string{resource: "/v1/resources", resourceSet: "/v1/resource-sets"} {
			if err := c.each(ctx, path, query, func(raw map[string]any) error {
				r, err := c.actual.once(kind, raw, outer)
				if err == nil {
					c.goes(r, of)
				}
				return err
			}); err != nil {
				return err
			}
		}
		if err := c.each(ctx, "/v1/applications/"+id+"/accounts", nil, func(raw map[string]any) error {
			key := escaped(of.Key) + "/" + fmt.Sprint(raw["account"])
			c.goes(&Record{Ref: Ref{account, key}, ID: fmt.Sprint(raw["id"]), raw: raw}, of)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// members finds the members of sets that go, and the members of other sets that are resources that go.
func (c *cascade) members(ctx context.Context) error {
	of, global := map[string]bool{}, false // the applications whose sets can have such members
	for _, kind := range []string{resource, resourceSet} {
		for _, ref := range c.deleted[kind] {
			r := c.actual.records[ref]
			of[fmt.Sprint(r.Values["application"])] = true
			global = global || kind == resource && r.Values["is_global"] == "1"
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.actual.names[application])) {
		name := c.actual.names[application][id]
		if !global && !of[name] {
			continue
		}
		var sets []*Record
		if err := c.each(ctx, "/v1/resource-sets", url.Values{"application_id": {id}}, func(raw map[string]any) error {
			set, err := c.actual.once(resourceSet, raw, map[string]any{"application": name})
			sets = append(sets, set)
			return err
		}); err != nil {
			return err
		}
		for _, set := range sets {
			if err := c.membersOf(ctx, set); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cascade) membersOf(ctx context.Context, set *Record) error {
	if set.raw["member_count"] == json.Number("0") {
		return nil
	}
	return c.each(ctx, "/v1/resource-sets/"+set.ID+"/members", nil, func(raw map[string]any) error {
		with, goes := c.deleted[resourceSet][set.ID]
		if !goes {
			with, goes = c.deleted[resource][fmt.Sprint(raw["resource_id"])]
		}
		if !goes {
			return nil
		}
		r, err := c.actual.once(member, raw, c.actual.memberOf(set, raw))
		if err == nil {
			c.goes(r, with)
		}
		return err
	})
}

// rules finds the rules that are of, about, or for a record that goes. The platform lists rules by none of these but
// the first, so all are read.
func (c *cascade) rules(ctx context.Context) error {
	reached := []string{application, resource, resourceSet, node, tree}
	if !slices.ContainsFunc(reached, func(kind string) bool { return len(c.deleted[kind]) > 0 }) {
		return nil
	}
	units := map[string]map[string]any{}
	if err := c.each(ctx, "/v1/auth-units", nil, func(raw map[string]any) error {
		units[fmt.Sprint(raw["id"])] = raw
		return nil
	}); err != nil {
		return err
	}
	var rules []map[string]any
	with := map[string]Ref{}
	if err := c.each(ctx, "/v1/auth-rules", nil, func(raw map[string]any) error {
		unit := units[fmt.Sprint(raw["auth_unit_id"])]
		if of, goes := c.reason(raw, unit); goes {
			with[fmt.Sprint(raw["id"])] = of
			rules = append(rules, raw)
		}
		return nil
	}); err != nil {
		return err
	}
	if err := c.actual.nameIdentities(ctx, rules, units); err != nil {
		return err
	}
	slices.SortFunc(rules, func(a, b map[string]any) int { return number(a["id"]) - number(b["id"]) })
	for _, raw := range rules {
		id := fmt.Sprint(raw["id"])
		r := c.actual.records[Ref{rule, c.actual.names[rule][id]}]
		if r == nil {
			if err := c.actual.addRule(raw, units[fmt.Sprint(raw["auth_unit_id"])]); err != nil {
				return err
			}
			r = c.actual.records[Ref{rule, c.actual.names[rule][id]}]
		}
		c.goes(r, with[id])
	}
	return nil
}

// reason is the record with which a rule goes.
func (c *cascade) reason(raw, unit map[string]any) (Ref, bool) {
	for _, one := range []struct {
		kind string
		id   any
	}{
		{resource, raw["resource_id"]}, {resourceSet, raw["resource_set_id"]}, {application, raw["application_id"]},
		{identityTypes[fmt.Sprint(unit["identity_type"])], unit["identity_id"]},
	} {
		if ref, goes := c.deleted[one.kind][fmt.Sprint(one.id)]; goes && one.kind != "" {
			return ref, unit != nil
		}
	}
	if root, goes := c.roots()[fmt.Sprint(unit["identity_id"])]; goes && unit["identity_type"] == "node" {
		return root, true
	}
	return Ref{}, false
}

// roots are the root nodes of trees that go.
func (c *cascade) roots() map[string]Ref {
	out := map[string]Ref{}
	for _, ref := range c.deleted[tree] {
		out[fmt.Sprint(c.actual.records[ref].raw["root_node_id"])] = ref
	}
	return out
}

// memberships finds who belongs to nodes that go.
func (c *cascade) memberships(ctx context.Context) error {
	places := c.roots()
	for id, ref := range c.deleted[node] {
		if c.actual.records[ref].raw["member_count"] != json.Number("0") {
			places[id] = ref
		}
	}
	var found []*Record
	people := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(places)) {
		if err := c.each(ctx, "/v1/tree-nodes/"+id+"/users", nil, func(raw map[string]any) error {
			if raw["dynamic"] != true { // what follows from a condition is no record that somebody made
				found = append(found, &Record{Ref: places[id], ID: fmt.Sprint(raw["id"]), raw: raw})
				people[fmt.Sprint(raw["user_id"])] = true
			}
			return nil
		}); err != nil {
			return err
		}
	}
	if err := c.actual.namePeople(ctx, slices.Sorted(maps.Keys(people))); err != nil &&
		idp.CodeOf(err) != idp.CodeForbidden { // then ids are shown
		return err
	}
	for _, r := range found {
		with := r.Ref
		r.Ref = Ref{membership, with.Key + " " + c.actual.keyOf(user, r.raw["user_id"])}
		c.goes(r, with)
	}
	return nil
}
