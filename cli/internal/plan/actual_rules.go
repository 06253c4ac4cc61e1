package plan

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
)

const largestPage = 200

// readRules reads rules, and whom they reach.
func (l *Actual) readRules(ctx context.Context, scope Scope) error {
	if !scope.has(rule) {
		return nil
	}
	units := map[string]map[string]any{}
	for raw, err := range l.platform.Each(ctx, "/v1/auth-units", nil) {
		if err != nil {
			return err
		}
		units[raw["id"].(string)] = raw
	}
	rules, err := l.listRules(ctx, scope)
	if err != nil {
		return err
	}
	if err := l.nameIdentities(ctx, rules, units); err != nil {
		return err
	}
	slices.SortFunc(rules, func(a, b map[string]any) int { return number(a["id"]) - number(b["id"]) })
	for _, raw := range rules {
		unit := units[raw["auth_unit_id"].(string)]
		if unit == nil {
			continue // it was revoked meanwhile
		}
		if err := l.addRule(raw, unit); err != nil {
			return err
		}
	}
	return nil
}

// listRules lists the rules of the scope's applications: all at once if these are at least half of the tenant's.
func (l *Actual) listRules(ctx context.Context, scope Scope) ([]map[string]any, error) {
	wanted := map[string]bool{}
	for id, name := range l.names[application] {
		if within(scope.applications, name) {
			wanted[id] = true
		}
	}
	queries := []url.Values{nil}
	if 2*len(wanted) < len(l.names[application]) {
		queries = nil
		for _, id := range slices.Sorted(maps.Keys(wanted)) {
			queries = append(queries, url.Values{"application_id": {id}})
		}
	}
	var rules []map[string]any
	for _, query := range queries {
		for raw, err := range l.platform.Each(ctx, "/v1/auth-rules", query) {
			if err != nil {
				return nil, err
			}
			if of, _ := raw["application_id"].(string); wanted[of] {
				rules = append(rules, raw)
			}
		}
	}
	return rules, nil
}

// nameIdentities finds the names of the users and nodes that rules reach.
func (l *Actual) nameIdentities(ctx context.Context, rules []map[string]any, units map[string]map[string]any) error {
	ids := map[string]map[string]bool{"user": {}, "node": {}}
	for _, raw := range rules {
		unit := units[raw["auth_unit_id"].(string)]
		kind, _ := unit["identity_type"].(string)
		if of := ids[kind]; of != nil {
			of[unit["identity_id"].(string)] = true
		}
	}
	if err := l.nameNodes(ctx, "id", slices.Sorted(maps.Keys(ids["node"]))); err != nil {
		return err
	}
	return l.namePeople(ctx, slices.Sorted(maps.Keys(ids["user"])))
}

// namePeople finds the usernames of users.
func (l *Actual) namePeople(ctx context.Context, ids []string) error {
	for chunk := range slices.Chunk(ids, largestPage) {
		query := url.Values{"ids": {strings.Join(chunk, ",")}}
		for raw, err := range l.platform.Each(ctx, "/v1/users", query) {
			if err != nil {
				return err
			}
			l.called(Ref{user, raw["username"].(string)}, raw["id"].(string))
		}
	}
	return nil
}

func (l *Actual) addRule(raw, unit map[string]any) error {
	kind, _ := unit["identity_type"].(string)
	identity := map[string]any{"type": kind}
	if kind != "everyone" {
		identity["name"] = l.keyOf(identityTypes[kind], unit["identity_id"])
	}
	raw["identity_id"], raw["identity_type"] = unit["identity_id"], kind
	application := l.keyOf(application, raw["application_id"])
	outer := map[string]any{"application": application, "identity": identity}
	l.ownerOf(raw["resource_id"], resource, application, outer)
	l.ownerOf(raw["resource_set_id"], resourceSet, application, outer)
	_, err := l.add(rule, raw, outer)
	return err
}

// nameUsers finds users by their usernames.
func (l *Actual) nameUsers(ctx context.Context, names []string) error {
	for chunk := range slices.Chunk(names, largestBatch) {
		var items []map[string]any
		for _, name := range chunk {
			items = append(items, map[string]any{"username": name})
		}
		var answer struct {
			Items []struct {
				Exists bool   `json:"exists"`
				UserID string `json:"user_id"`
			} `json:"items"`
		}
		if err := l.platform.Post(ctx, "/v1/batch/users-exist", map[string]any{"items": items}, &answer); err != nil {
			return err
		}
		for i, found := range answer.Items {
			if found.Exists {
				l.called(Ref{user, chunk[i]}, found.UserID)
				l.ids[Ref{user, chunk[i]}] = found.UserID // the files may have it in two cases
			}
		}
	}
	return nil
}
