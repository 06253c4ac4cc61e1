package transfer

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/lanrat/extsort"

	"github.com/idplatform/idplatform/cli/internal/naming"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

func grants() *Kind {
	return &Kind{
		Noun: "grants", Things: "grants", Short: "Who may do what", Conflicts: []string{skip},
		Conflict: "A grant that is there already is not made twice and counts as created. There is no update:\n" +
			"grants have no names by which one could take the place of another. To change one, idp grants revoke\n" +
			"it, and import it again; or keep grants as files of idp apply.",
		Filters: []Filter{{"app", "only grants of this application"}},
		Notes: "to is user:li.wei (or li.wei alone), node:company/rd, tree:company, app:crm, group:ID or everyone;\n" +
			"object is crm:invoice, or crm alone for type app; a colon or a backslash in the application's name\n" +
			"has a backslash before it, there alone. actions are joined by commas. resource_application names the\n" +
			"application of a global resource or set, if it is not that of the object.",
		ImportExample: "  idp grants import grants.csv --set type=data\n  idp grants import grants.jsonl --dry-run",
		ExportExample: "  idp grants export grants.csv\n  idp grants export --app crm -o jsonl",
		ImportScopes:  "permissions:write, applications:read, and users:read, organization:read for users and nodes",
		ExportScopes:  "permissions:read, applications:read, organization:read, users:read",
		columns: []column{
			{name: "to"}, {name: "object"}, {name: "type"}, {name: "actions", form: list}, {name: "affect"},
			{name: "resource_application"}, {name: "resource_match_all_resources"},
			{name: "resource_match_all_actions"},
			{name: "condition"}, {name: "valid_from"}, {name: "valid_to"}, {name: "description"},
		},
		send: func(ctx context.Context, i *importer) error { return i.sendBatches(ctx, grantBatches{}) },
		read: readGrants,
	}
}

// identity is whom a grant is for: a kind of the platform's, and what people call it.
func identity(r *record) (kind, called string, known bool) {
	to := r.text("to")
	if to == "everyone" {
		return to, "*", true
	}
	word, called, _ := strings.Cut(to, ":")
	if kind, known := identityKinds[word]; known {
		return kind, called, called != ""
	}
	return aUser, to, to != ""
}

// identityKinds are the words before the colon of an identity, and the platform's types.
var identityKinds = map[string]string{
	"user": "user", "node": "node", "tree": "core_object", "core_object": "core_object", "app": "application",
	"application": "application", "group": "group",
}

// kindOfIdentity is what names of an identity's kind are looked up as; "" if its name is its id.
var kindOfIdentity = map[string]string{
	aUser: aUser, aNode: aNode, "core_object": aTree, anApplication: anApplication,
}

// global is the name of the resource or set that a grant names in another application; false if it names none.
func global(r *record) (name, bool) {
	owner := r.text("resource_application")
	_, code, _ := naming.Cut(r.text("object"))
	if r.text("type") == "res_set" {
		return name{aSet, naming.Join(owner, code)}, owner != ""
	}
	return name{aResource, naming.Join(owner, r.text("type")+":"+code)}, owner != ""
}

// grantBatches makes requests for grants. A request gives all its rules to all its identities.
type grantBatches struct{}

func (grantBatches) done([]*record) {}

// group puts those together who get the same rules.
func (grantBatches) group(records []*record) [][]int {
	var groups [][]int
	at := map[string]int{}
	for _, of := range by(records, func(r *record) string { return r.text("to") }) {
		var rules []string
		for _, n := range of {
			rules = append(rules, string(encoded(without(records[n], "to"))))
		}
		key := strings.Join(rules, "\n")
		if _, known := at[key]; !known {
			at[key] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[key]] = append(groups[at[key]], of...)
	}
	return groups
}

func (grantBatches) names(records []*record) []name {
	var names []name
	for _, r := range records {
		kind, called, _ := identity(r)
		if of := kindOfIdentity[kind]; of != "" {
			names = append(names, name{of, called})
		}
		application, _, _ := naming.Cut(r.text("object"))
		names = append(names, name{anApplication, application})
		if n, has := global(r); has {
			names = append(names, n)
		}
	}
	return names
}

func (grantBatches) request(records []*record, found ids) request {
	out := request{operation: "grant-auth-rules", faults: map[int]fault{}}
	var identities, rules []any
	byIdentity, byRule := map[string]int{}, map[string]int{}
	identityOf, ruleOf := make([]int, len(records)), make([]int, len(records))
	for n, r := range records {
		who, noIdentity := identityMember(r, found)
		rule, noRule := ruleMember(r, found)
		if reason := both(noIdentity, noRule); reason != "" {
			out.faults[n] = fault{reason: reason}
			continue
		}
		identities, identityOf[n] = once(identities, byIdentity, who)
		rules, ruleOf[n] = once(rules, byRule, rule)
	}
	out.body = map[string]any{"identities": identities, "rules": rules}
	out.about = func(location string) (about []int, member string) {
		list, at, member := inList(location)
		for n := range records {
			if list == "identities" && identityOf[n] == at || list == "rules" && ruleOf[n] == at {
				about = append(about, n)
			}
		}
		return about, member
	}
	return out
}

// once adds a value that is not in a list yet, and returns its place.
func once(all []any, at map[string]int, value any) ([]any, int) {
	key := string(encoded(value))
	if n, has := at[key]; has {
		return all, n
	}
	at[key] = len(all)
	return append(all, value), len(all)
}

func identityMember(r *record, found ids) (who map[string]string, reason string) {
	kind, called, known := identity(r)
	if !known {
		return nil, "to: must be everyone, or such as user:li.wei, node:company/rd, tree:company, app:crm, group:ID"
	}
	id := called
	if of := kindOfIdentity[kind]; of != "" {
		if id, reason = found.of(name{of, called}); reason != "" {
			return nil, reason
		}
	}
	who = map[string]string{"identity_id": id, "identity_type": kind}
	if kind != "everyone" {
		who["identity_name"] = called
	}
	return who, ""
}

func ruleMember(r *record, found ids) (rule map[string]json.RawMessage, reason string) {
	application, code, _ := naming.Cut(r.text("object"))
	id, reason := found.of(name{anApplication, application})
	if reason != "" {
		return nil, reason
	}
	rule = without(r, "to", "object", "resource_application")
	rule["application_id"] = quoted(id)
	if code != "" {
		rule["code"] = quoted(code)
	}
	if n, has := global(r); has {
		owned, reason := found.of(n)
		if reason != "" {
			return nil, reason
		}
		member := "resource_id"
		if n.kind == aSet {
			member = "resource_set_id"
		}
		rule[member] = quoted(owned)
	}
	return rule, ""
}

// readGrants exports grants, sorted, because the order in which they were made says nothing. It keeps whom they are for
// in memory, but not the grants.
func readGrants(ctx context.Context, s *session.Session, filters map[string]string, out *writer) error {
	applications, err := applicationsOf(ctx, s, filters["app"])
	if err != nil {
		return err
	}
	g := &grantNames{s: s, units: map[string]who{}, applications: map[string]string{}, trees: map[string]string{}}
	if err := g.load(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unsorted, read := make(chan string), make(chan struct{})
	sorter, sorted, failed := extsort.Strings(unsorted, &extsort.Config{ChunkSize: sortedInMemory})
	go func() {
		defer close(read)
		sorter.Sort(ctx)
	}()
	add := func(line string) bool {
		select {
		case unsorted <- line:
			return true
		case <-read: // it could not go on, or was interrupted
			return false
		}
	}
	for _, application := range applications {
		query := url.Values{"application_id": {application.Text("id")}}
		err := pages(ctx, s, "list-auth-rules", nil, query, func(page []output.Object) error {
			return g.lines(ctx, page, add)
		})
		if err != nil {
			return err
		}
	}
	close(unsorted)
	for line := range sorted {
		value, err := output.Parse([]byte(line))
		if err != nil {
			return err
		}
		grant, _ := value.(output.Object)
		if err := out.write(grant); err != nil {
			return err
		}
	}
	return <-failed
}

const sortedInMemory = 20_000 // lines; more are sorted in temporary files

// grantNames knows the names of what grants are for and about.
type grantNames struct {
	s            *session.Session
	units        map[string]who
	applications map[string]string
	trees        map[string]string
	globals      map[string]name
}

type who struct{ kind, id string }

func (g *grantNames) load(ctx context.Context) error {
	err := pages(ctx, g.s, "list-auth-units", nil, nil, func(page []output.Object) error {
		for _, unit := range page {
			g.units[unit.Text("id")] = who{unit.Text("identity_type"), unit.Text("identity_id")}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = eachApplication(ctx, g.s, func(application output.Object) error {
		g.applications[application.Text("id")] = application.Text("name")
		return nil
	})
	if err != nil {
		return err
	}
	err = eachTree(ctx, g.s, func(tree output.Object) error {
		g.trees[tree.Text("id")] = tree.Text("code")
		return nil
	})
	if err != nil {
		return err
	}
	g.globals, err = readGlobals(ctx, g.s)
	return err
}

// lines makes the lines of a page of rules.
func (g *grantNames) lines(ctx context.Context, page []output.Object, add func(string) bool) error {
	wanted := map[string][]string{}
	for _, rule := range page {
		if of := g.units[rule.Text("auth_unit_id")]; !slices.Contains(wanted[of.kind], of.id) {
			wanted[of.kind] = append(wanted[of.kind], of.id)
		}
	}
	users, err := usernames(ctx, g.s, wanted[aUser])
	if err != nil {
		return err
	}
	nodes, err := nodeNames(ctx, g.s, wanted[aNode])
	if err != nil {
		return err
	}
	for _, rule := range page {
		to := g.to(g.units[rule.Text("auth_unit_id")], users, nodes)
		if to == "" {
			continue // it has just been revoked, or whom it was for deleted
		}
		if !add(string(encoded(g.line(to, rule)))) {
			return nil // sorting says why
		}
	}
	return nil
}

func (g *grantNames) to(of who, users map[string]string, nodes map[string]nodeName) string {
	called := of.id
	switch of.kind {
	case aUser:
		called = users[of.id]
	case aNode:
		called = nodes[of.id].name()
	case "core_object":
		called = g.trees[of.id]
	case anApplication:
		called = g.applications[of.id]
	case "everyone":
		return of.kind
	}
	if called == "" {
		return ""
	}
	switch of.kind {
	case "core_object":
		return "tree:" + called
	case anApplication:
		return "app:" + called
	}
	return of.kind + ":" + called
}

func (g *grantNames) line(to string, rule output.Object) output.Object {
	object := naming.Escape(g.applications[rule.Text("application_id")])
	if code := rule.Text("code"); code != "" {
		object = naming.Join(g.applications[rule.Text("application_id")], code)
	}
	line := output.Object{{Name: "to", Value: to}, {Name: "object", Value: object}}
	for _, id := range []string{rule.Text("resource_id"), rule.Text("resource_set_id")} {
		owner, _, _ := naming.Cut(g.globals[id].name)
		if id != "" && owner != "" && owner != g.applications[rule.Text("application_id")] {
			line = append(line, output.Member{Name: "resource_application", Value: owner})
		}
	}
	for _, m := range rule {
		switch m.Name {
		case "affect":
			if m.Value == "affect" {
				continue
			}
		case "resource_match_all_resources", "resource_match_all_actions":
			if m.Value == "0" {
				continue
			}
		case "type", "actions", "condition", "valid_from", "valid_to", "description":
		default:
			continue
		}
		if m.Value != nil && m.Value != "" {
			line = append(line, m)
		}
	}
	return line
}
