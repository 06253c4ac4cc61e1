package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Platform is what the package needs of the platform.
type Platform interface {
	// Get reads an answer into into.
	Get(ctx context.Context, path string, query url.Values, into any) error
	// Each walks all pages of a list.
	Each(ctx context.Context, path string, query url.Values) iter.Seq2[map[string]any, error]
	// Post sends a question that changes nothing.
	Post(ctx context.Context, path string, body, into any) error
	// Write sends a change, or with try only asks what it would do.
	Write(ctx context.Context, w Write, try bool) (map[string]any, error)
}

// Record is a record of the platform, with names instead of ids.
type Record struct {
	Ref
	ID      string
	Version string
	Values  map[string]any
	raw     map[string]any // as the platform has it
	again   bool           // another record has the same name
}

// Actual is what a tenant has.
type Actual struct {
	platform Platform
	records  map[Ref]*Record
	order    []*Record
	names    map[string]map[string]string // key by id, by kind
	ids      map[Ref]string               // also of records that are only named
	below    map[string][]*Record         // the parts of records, for Export
	naming   naming

	variables *variables // of an export
}

// Scope says what to read: everything, or only the parts of these applications and trees.
type Scope struct {
	kinds        map[string]bool // nil: all
	applications map[string]bool // nil: all
	trees        map[string]bool
	whole        map[Ref]bool // applications with their protocols, and sets with their members; nil: all
	naming       naming
}

// Everything is the scope of an export. kinds are those that are wanted; none: all.
func Everything(wanted []string) Scope {
	s := Scope{}
	if len(wanted) > 0 {
		s.kinds = map[string]bool{}
		for _, k := range wanted {
			s.kinds[k] = true
		}
	}
	return s
}

func (s Scope) has(kind string) bool { return s.kinds == nil || s.kinds[kind] }

// within reports whether a list of names is no limit, or has the name.
func within[Name comparable](names map[Name]bool, name Name) bool { return names == nil || names[name] }

// Read reads what runs, in bulk.
func Read(ctx context.Context, platform Platform, scope Scope) (*Actual, error) {
	l := &Actual{
		platform: platform, records: map[Ref]*Record{}, names: map[string]map[string]string{}, ids: map[Ref]string{},
		naming: scope.naming,
	}
	for _, read := range []func(context.Context, Scope) error{
		l.readConnections, l.readTrees, l.readApplications, l.readResources, l.readSets, l.readRules,
		l.readSubscriptions,
	} {
		if err := read(ctx, scope); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// add keeps a record. Its values are those of the raw record that documents can have, and outer.
func (l *Actual) add(name string, raw, outer map[string]any) (*Record, error) {
	r := &Record{Values: map[string]any{}, raw: raw}
	for _, f := range kindOf(name).fields() {
		if value, has := raw[f.name]; has {
			r.Values[f.name] = value
		}
	}
	maps.Copy(r.Values, outer)
	r.ID, _ = raw["id"].(string)
	r.Version = fmt.Sprint(raw["version"])
	key, err := keyOf(name, r.Values)
	if err != nil {
		return nil, err
	}
	named := l.naming.of(Ref{name, key})
	r.Ref = l.free(named)
	r.again = r.Ref != named
	l.records[r.Ref] = r
	l.order = append(l.order, r)
	l.name(r.Ref, r.ID)
	return r, nil
}

// free is the ref, with a number if several records have the same name: rules, and connections of one provider.
func (l *Actual) free(ref Ref) Ref {
	free := ref
	for n := 2; l.records[free] != nil; n++ {
		free.Key = numbered(ref.Key, n)
	}
	return free
}

// called keeps the id of a record by its name on the platform.
func (l *Actual) called(ref Ref, id string) { l.name(l.naming.of(ref), id) }

// name keeps the id of a record by its name in the files. That may be another one's name on the platform.
func (l *Actual) name(ref Ref, id string) {
	if l.names[ref.Kind] == nil {
		l.names[ref.Kind] = map[string]string{}
	}
	if id != "" {
		l.names[ref.Kind][id], l.ids[ref] = ref.Key, id
	}
}

// keyOf returns the key of the record with an id; the id itself if there is none.
func (l *Actual) keyOf(kind string, id any) string {
	text, _ := id.(string)
	if key, known := l.names[kind][text]; known {
		return key
	}
	return text
}

func (l *Actual) readTrees(ctx context.Context, scope Scope) error {
	if !scope.has(tree) && !scope.has(rule) {
		return nil
	}
	var list []map[string]any
	if err := l.platform.Get(ctx, "/v1/core-objects", nil, &list); err != nil {
		return err
	}
	for _, raw := range list {
		code, _ := raw["code"].(string)
		l.called(Ref{tree, code}, raw["id"].(string))
		if !scope.has(tree) || !within(scope.trees, code) {
			continue
		}
		if _, err := l.add(tree, raw, nil); err != nil {
			return err
		}
		if err := l.readNodes(ctx, code, raw["root_node_id"]); err != nil {
			return err
		}
	}
	return nil
}

func (l *Actual) readNodes(ctx context.Context, of string, root any) error {
	var list []map[string]any
	codes, ids := map[string]string{}, map[string]string{}
	query := url.Values{"object_code": {of}, "recursive": {"true"}}
	for raw, err := range l.platform.Each(ctx, "/v1/tree-nodes", query) {
		if err != nil {
			return err
		}
		id, _ := raw["id"].(string)
		codes[id], _ = raw["code"].(string)
		ids[of+"/"+codes[id]] = id
		if raw["id"] != root {
			list = append(list, raw)
		}
	}
	l.naming.settle(node, ids)
	for id, code := range codes {
		codes[id] = strings.TrimPrefix(l.naming.of(Ref{node, of + "/" + code}).Key, of+"/")
	}
	slices.SortStableFunc(list, func(a, b map[string]any) int { return number(a["depth"]) - number(b["depth"]) })
	for _, raw := range list {
		parent, _ := raw["parent_id"].(string)
		if raw["parent_id"] == root {
			parent = ""
		}
		if _, err := l.add(node, raw, map[string]any{"tree": of, "parent": codes[parent]}); err != nil {
			return err
		}
	}
	var pointers []string
	for _, raw := range list {
		if id, _ := raw["pointer_id"].(string); id != "" {
			pointers = append(pointers, id)
		}
	}
	if err := l.nameNodes(ctx, "id", pointers); err != nil {
		return err
	}
	for _, raw := range list {
		if id, _ := raw["pointer_id"].(string); id != "" {
			l.records[Ref{node, l.keyOf(node, raw["id"])}].Values["pointer"] = l.keyOf(node, id)
		}
	}
	return nil
}

func number(value any) int {
	n := 0
	_, _ = fmt.Sscan(fmt.Sprint(value), &n)
	return n
}

const largestBatch = 1000

// nameNodes finds nodes by their ids, or by their names (by is code), of which it does not know yet.
func (l *Actual) nameNodes(ctx context.Context, by string, names []string) error {
	unknown := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, named := l.names[node][name]
		_, identified := l.ids[Ref{node, name}]
		return by == "id" && named || by == "code" && identified
	})
	slices.Sort(unknown)
	for chunk := range slices.Chunk(slices.Compact(unknown), largestBatch) {
		var found map[string]map[string]any
		body := map[string]any{"type": by, "ids": chunk}
		if err := l.platform.Post(ctx, "/v1/batch/tree-nodes-check", body, &found); err != nil {
			return err
		}
		for _, raw := range found {
			if id, _ := raw["id"].(string); id != "" {
				l.called(Ref{node, fmt.Sprintf("%s/%s", raw["object_code"], raw["code"])}, id)
			}
		}
	}
	return nil
}

func (l *Actual) readApplications(ctx context.Context, scope Scope) error {
	if !scope.has(application) && !scope.has(resource) && !scope.has(resourceSet) && !scope.has(rule) {
		return nil
	}
	var list []map[string]any
	var names []string
	ids := map[string]string{}
	for raw, err := range l.platform.Each(ctx, "/v1/applications", nil) {
		if err != nil {
			return err
		}
		name, _ := raw["name"].(string)
		list, names = append(list, raw), append(names, name)
		ids[name], _ = raw["id"].(string)
	}
	l.naming.settle(application, ids)
	for i, raw := range list {
		name := names[i]
		ref := l.naming.of(Ref{application, name})
		l.name(ref, raw["id"].(string))
		if !scope.has(application) || !within(scope.applications, ref.Key) {
			continue
		}
		if logo, _ := raw["logo"].(string); !strings.HasPrefix(logo, "http") {
			delete(raw, "logo") // an image that was uploaded
		}
		r, err := l.add(application, raw, nil)
		if err != nil {
			return err
		}
		if within(scope.whole, r.Ref) {
			if err := l.readProtocols(ctx, r); err != nil {
				return err
			}
		}
		if err := l.addSources(r); err != nil {
			return err
		}
	}
	return nil
}

func (l *Actual) readProtocols(ctx context.Context, of *Record) error {
	var list []map[string]any
	if err := l.platform.Get(ctx, "/v1/applications/"+of.ID+"/protocols", nil, &list); err != nil {
		return err
	}
	for _, raw := range list {
		outer := map[string]any{"application": of.Key, "type": raw["protocol_type"]}
		if _, err := l.add(protocol, raw, outer); err != nil {
			return err
		}
	}
	return nil
}

// addSources adds the connections that an application offers.
func (l *Actual) addSources(of *Record) error {
	attached, _ := of.raw["idps"].([]any)
	for _, item := range attached {
		raw, _ := item.(map[string]any)
		raw["id"] = raw["config_id"]
		outer := map[string]any{"application": of.Key, "connection": l.keyOf(connection, raw["config_id"])}
		if _, err := l.add(source, raw, outer); err != nil {
			return err
		}
	}
	return nil
}

// eachApplication calls do for each application of the scope.
func (l *Actual) eachApplication(scope Scope, do func(name, id string) error) error {
	for id, name := range l.names[application] {
		if within(scope.applications, name) {
			if err := do(name, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Actual) readResources(ctx context.Context, scope Scope) error {
	if !scope.has(resource) && !scope.has(resourceSet) && !scope.has(rule) {
		return nil
	}
	return l.eachApplication(scope, func(name, id string) error {
		for raw, err := range l.platform.Each(ctx, "/v1/resources", url.Values{"application_id": {id}}) {
			if err != nil {
				return err
			}
			if _, err := l.add(resource, raw, map[string]any{"application": name}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *Actual) readSets(ctx context.Context, scope Scope) error {
	if !scope.has(resourceSet) && !scope.has(rule) {
		return nil
	}
	return l.eachApplication(scope, func(name, id string) error {
		for raw, err := range l.platform.Each(ctx, "/v1/resource-sets", url.Values{"application_id": {id}}) {
			if err != nil {
				return err
			}
			set, err := l.add(resourceSet, raw, map[string]any{"application": name})
			if err != nil {
				return err
			}
			if raw["member_count"] == json.Number("0") || !within(scope.whole, set.Ref) {
				continue
			}
			if err := l.readMembers(ctx, set); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *Actual) readMembers(ctx context.Context, set *Record) error {
	for raw, err := range l.platform.Each(ctx, "/v1/resource-sets/"+set.ID+"/members", nil) {
		if err != nil {
			return err
		}
		if _, err := l.add(member, raw, l.memberOf(set, raw)); err != nil {
			return err
		}
	}
	return nil
}

// memberOf is what a member of a set has of its place.
func (l *Actual) memberOf(set *Record, raw map[string]any) map[string]any {
	out := map[string]any{"set": set.Key, "type": raw["resource_type"], "code": raw["resource_code"]}
	l.ownerOf(raw["resource_id"], resource, set.Values["application"], out)
	return out
}

// ownerOf adds resource_application if a resource or a set is another application's.
func (l *Actual) ownerOf(id any, kind string, application any, values map[string]any) {
	text, _ := id.(string)
	key, known := l.names[kind][text]
	if !known {
		return
	}
	if owner := l.records[Ref{kind, key}].Values["application"]; owner != application {
		values["resource_application"] = owner
	}
}
