package scim_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim/filter"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/patch"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

func (r random) person() resource.Object {
	u := resource.Object{"userName": r.text(), "active": r.chance(50)}
	for _, name := range []string{"title", "nickName"} {
		if r.chance(50) {
			u[name] = r.text()
		}
	}
	if r.chance(60) {
		u["name"] = r.name()
	}
	if r.chance(40) {
		u[schema.EnterpriseURN] = resource.Object{"department": r.text()}
	}
	if emails := r.emails(2); len(emails) > 0 {
		u["emails"] = emails
	}
	if r.chance(40) {
		u["roles"] = []any{resource.Object{"value": r.text()}}
	}
	return u
}

func (r random) name() resource.Object {
	name := resource.Object{"givenName": r.text()}
	if r.chance(50) {
		name["familyName"] = r.text()
	}
	return name
}

// emails are at most n different ones, of which one at most is primary.
func (r random) emails(n int) []any {
	var emails []any
	primary := r.chance(40)
	seen := map[string]bool{}
	for range r.IntN(n + 1) {
		e := resource.Object{"value": pick(r, "a@x.org", "b@x.org", "c@x.org"), "type": pick(r, "work", "home")}
		if key := text(e); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		if primary {
			e["primary"], primary = true, false
		}
		emails = append(emails, e)
	}
	return emails
}

func (r random) emailFilter() string {
	return pick(r, `type eq "work"`, `type eq "home"`, `value eq "a@x.org"`, `primary eq true`, `type eq "work" and value co "a"`,
		`type ne "work"`, `type eq "home" and primary eq true`)
}

func (r random) operation() resource.Object {
	add := pick(r, "add", "replace", "Add", "Replace")
	const department = schema.EnterpriseURN + ":department"
	switch r.IntN(16) {
	case 0, 1:
		path := pick(r, "title", "nickName", "userName", department)
		return resource.Object{"op": add, "path": path, "value": r.text()}
	case 2:
		return resource.Object{"op": pick(r, "remove", "Remove"), "path": pick(r, "title", "nickName", department)}
	case 3:
		return resource.Object{"op": add, "path": pick(r, "name.givenName", "name.familyName"), "value": r.text()}
	case 4:
		return resource.Object{"op": "remove", "path": pick(r, "name.givenName", "name.familyName", "name")}
	case 5:
		return resource.Object{"op": add, "path": "name", "value": r.name()}
	case 6:
		return resource.Object{"op": add, "path": "active", "value": pick[any](r, true, false, "True", "False")}
	case 7, 8:
		return resource.Object{"op": add, "path": "emails", "value": orEmpty(r.emails(2))}
	case 9:
		return resource.Object{"op": add, "path": "emails[" + r.emailFilter() + "].value", "value": "d@x.org"}
	case 10:
		email := resource.Object{"value": "d@x.org", "type": "other"}
		return resource.Object{"op": add, "path": "emails[" + r.emailFilter() + "]", "value": email}
	case 11:
		path := "emails[" + r.emailFilter() + "]" + pick(r, "", "", ".value", ".type")
		return resource.Object{"op": "remove", "path": path}
	case 12:
		return resource.Object{"op": "remove", "path": "emails"}
	case 13:
		return resource.Object{"op": "remove", "path": "emails", "value": orEmpty(r.emails(2))}
	case 14:
		return resource.Object{"op": add, "value": resource.Object{
			"title": r.text(), "name.givenName": r.text(), department: r.text(),
		}}
	}
	name, roles := r.name(), []any{resource.Object{"value": r.text()}}
	return resource.Object{"op": add, "value": resource.Object{"name": name, "roles": roles}}
}

func orEmpty(items []any) []any { return append([]any{}, items...) }

// ours applies one operation.
func ours(t *testing.T, r, operation resource.Object) (resource.Object, error) {
	t.Helper()
	operations, err := patch.FromObject(resource.Object{"Operations": []any{operation}})
	require.NoError(t, err)
	changed, _, err := patch.User(schema.User, r, operations, nil)
	return changed, err
}

// plain brings what an implementation answers into the form of ours: without what it adds, and without what is empty.
func plain(t *testing.T, body json.RawMessage) resource.Object {
	t.Helper()
	o := decode(t, string(body))
	for _, name := range []string{"schemas", "id", "meta"} {
		delete(o, name)
	}
	for name, v := range o {
		if resource.IsEmpty(v) {
			delete(o, name)
		}
	}
	return o
}

// patchCase is an operation, and what it makes of a resource: nil if it is refused.
type patchCase struct {
	op, path     string
	value        any
	before       resource.Object
	ours, theirs resource.Object
	who          string
}

func (c *patchCase) sent() resource.Object {
	o, _ := c.value.(resource.Object)
	return o
}

// selects reports whether the path has a filter that selects a value.
func (c *patchCase) selects(t *testing.T) (filtered, selects bool) {
	t.Helper()
	target, err := filter.ParsePath(schema.User, cmp.Or(c.path, "userName"))
	require.NoError(t, err)
	if target.Filter == nil {
		return false, false
	}
	return true, slices.ContainsFunc(list(c.before["emails"]), func(item any) bool {
		o, _ := item.(resource.Object)
		return filter.Match(target.Filter, o)
	})
}

func list(v any) []any {
	items, _ := v.([]any)
	return items
}

// but is a resource without an attribute.
func but(r resource.Object, name string) resource.Object {
	r = maps.Clone(r)
	delete(r, name)
	return r
}

// same reports whether resources, neither of which is nil, are equal save for an attribute, which may be "".
func same(a, b resource.Object, save string) bool {
	return a != nil && b != nil && reflect.DeepEqual(but(a, save), but(b, save))
}

// emailsBy is a resource whose emails are changed; those that become nil are left out.
func emailsBy(r resource.Object, change func(resource.Object) resource.Object) resource.Object {
	if r == nil {
		return nil
	}
	var emails []any
	for _, e := range list(r["emails"]) {
		o, _ := e.(resource.Object)
		if o = change(maps.Clone(o)); o != nil {
			emails = append(emails, o)
		}
	}
	r = but(r, "emails")
	if len(emails) > 0 {
		r["emails"] = emails
	}
	return r
}

func withoutPrimary(r resource.Object) resource.Object {
	return emailsBy(r, func(e resource.Object) resource.Object { return but(e, "primary") })
}

func withValue(r resource.Object) resource.Object {
	return emailsBy(r, func(e resource.Object) resource.Object {
		if e["value"] == nil {
			return nil
		}
		return e
	})
}

// difference names the difference of a case, or returns "".
func difference(t *testing.T, c *patchCase) string {
	t.Helper()
	adds, removes := c.op != "remove", c.op == "remove"
	filtered, selects := c.selects(t)
	_, isText := c.value.(string)
	sub := strings.HasSuffix(c.path, "].value")
	emails, before, theirs := list(c.ours["emails"]), list(c.before["emails"]), list(c.theirs["emails"])
	both := func(a, b []any) []any { return slices.Concat(a, b) }
	switch isSCIMMY := c.who == "scimmy"; {
	case c.path == "active" && isText && !isSCIMMY && c.theirs["active"] == c.value && same(c.ours, c.theirs, "active"):
		return "keeps True and False as texts"
	case c.path == "active" && isText && isSCIMMY && c.theirs == nil:
		return "refuses True and False"
	case removes && sub && same(c.ours, withValue(c.theirs), ""):
		return "keeps what is left of an email without its value"
	case removes && c.theirs == nil && same(c.ours, c.before, ""):
		return "refuses to remove what is not there"
	case adds && filtered && !selects && c.theirs == nil && len(emails) == len(before)+1:
		return "makes no value from a filter"
	case adds && filtered && !selects && same(c.theirs, c.before, ""):
		return "says nothing of a filter that selects nothing"
	case adds && filtered && !selects && isSCIMMY && reflect.DeepEqual(theirs, both(before, []any{c.value})):
		return "adds a value that does not have what the filter wants"
	case filtered && selects && isSCIMMY && c.op == "replace" && c.theirs == nil:
		return "does not find a value again that it has cleared"
	case filtered && selects && isSCIMMY && c.op == "replace" && slices.ContainsFunc(theirs, func(e any) bool {
		return reflect.DeepEqual(e, c.value)
	}):
		return "replaces selected values by one at the end"
	case c.path == "" && !isSCIMMY && c.op == "add" && same(but(c.ours, "name"), but(c.theirs, "name"), "roles") &&
		reflect.DeepEqual(list(c.theirs["roles"]), both(list(c.before["roles"]), list(c.sent()["roles"]))) &&
		!reflect.DeepEqual(c.theirs["roles"], c.ours["roles"]):
		return "adds a value twice where there is no path"
	case c.path == "" && !isSCIMMY && same(c.ours, c.theirs, "name") &&
		reflect.DeepEqual(c.theirs["name"], c.sent()["name"]):
		return "replaces the whole name where there is no path"
	case c.path == "name" && isSCIMMY && reflect.DeepEqual(c.theirs["name"], c.value) && same(c.ours, c.theirs, "name"):
		return "replaces the whole name"
	case c.path == "" && isSCIMMY && same(c.ours, c.theirs, "roles") &&
		reflect.DeepEqual(list(c.theirs["roles"]), both(list(c.before["roles"]), list(c.sent()["roles"]))):
		return "adds to lists, whether they are replaced or have the value, where there is no path"
	case c.path == "emails" && isSCIMMY && c.op == "add" && reflect.DeepEqual(theirs, both(before, list(c.value))):
		return "adds a value twice, and a primary one beside another"
	case c.path == "emails" && c.op == "add" && len(emails) < len(theirs) &&
		len(theirs) <= len(before)+len(list(c.value)):
		return "adds a value again whose other parts differ"
	case strings.Contains(c.path, " ne ") && slices.ContainsFunc(before, func(e any) bool {
		o, _ := e.(resource.Object)
		return o["type"] == nil
	}):
		return "does not take what is absent for different"
	case same(withoutPrimary(c.ours), withoutPrimary(c.theirs), ""):
		return "lets several values be primary"
	case c.path == "emails" && removes && len(emails) < len(theirs) && same(c.ours, c.theirs, "emails"):
		return "removes only values that are equal in all parts"
	}
	return ""
}

// TestPatchesAgree compares 10,000 random PATCH requests with two other implementations, operation by operation, each
// on what those before have made of a random resource.
func TestPatchesAgree(t *testing.T) {
	t.Parallel()
	o, random, counts := startOthers(t), newRandom(3), tally{}
	var questions []question
	var results []resource.Object
	for range cases() {
		r := random.person()
		for range 1 + random.IntN(2) {
			operation := random.operation()
			changed, err := ours(t, r, operation)
			questions = append(questions, question{Operations: []any{operation}, Resource: r})
			results = append(results, changed)
			if err == nil {
				r = changed
			}
		}
	}
	for i, answers := range o.ask(questions) {
		operation, _ := questions[i].Operations[0].(resource.Object)
		for name, a := range answers {
			var theirs resource.Object
			if a.Error == nil {
				theirs = plain(t, a.Value)
			}
			if reflect.DeepEqual(results[i], theirs) {
				continue
			}
			op, _ := operation["op"].(string)
			path, _ := operation["path"].(string)
			c := &patchCase{
				op: strings.ToLower(op), path: path, value: operation["value"], before: questions[i].Resource,
				ours: results[i], theirs: theirs, who: name,
			}
			named := difference(t, c)
			require.NotEmpty(t, named, "%s\n%s\non     %s\nours   %s\ntheirs %s", name, text(operation), text(c.before),
				text(c.ours), text(theirs))
			counts[name+" "+named]++
		}
	}
	counts.check(t,
		"scim-patch adds a value again whose other parts differ",
		"scim-patch adds a value twice where there is no path",
		"scim-patch does not take what is absent for different",
		"scim-patch keeps True and False as texts",
		"scim-patch keeps what is left of an email without its value",
		"scim-patch lets several values be primary",
		"scim-patch makes no value from a filter",
		"scim-patch refuses to remove what is not there",
		"scim-patch removes only values that are equal in all parts",
		"scim-patch replaces the whole name where there is no path",
		"scim-patch says nothing of a filter that selects nothing",
		"scimmy adds a value that does not have what the filter wants",
		"scimmy adds a value twice, and a primary one beside another",
		"scimmy adds to lists, whether they are replaced or have the value, where there is no path",
		"scimmy does not find a value again that it has cleared",
		"scimmy keeps what is left of an email without its value",
		"scimmy makes no value from a filter",
		"scimmy refuses True and False",
		"scimmy refuses to remove what is not there",
		"scimmy removes only values that are equal in all parts",
		"scimmy replaces selected values by one at the end",
		"scimmy replaces the whole name")
}
