package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/operations"
)

// Write is one change that is sent to the platform.
type Write struct {
	Operation string
	Path      []string
	Query     url.Values
	Body      any
	IfMatch   string // the ETag that the record must still have
	NoneMatch bool   // only if there is no such record
	Key       string // the Idempotency-Key of a POST; "": one that is made up
}

// writes makes the requests of a step. All records that it needs have ids.
func (p *Plan) writes(ctx context.Context, s *Step) ([]Write, error) {
	switch s.Action {
	case Delete:
		return p.deletion(s), nil
	case Create:
		return p.creation(ctx, s)
	}
	return p.change(ctx, s)
}

func (p *Plan) creation(ctx context.Context, s *Step) ([]Write, error) {
	body, err := p.body(ctx, s)
	if err != nil {
		return nil, err
	}
	w := Write{Operation: kindOf(s.Kind).create, Body: body}
	values := s.want.Values
	switch s.Kind {
	case source:
		w.Path, w.Body = []string{p.id(application, values["application"])}, map[string]any{
			"config_id": p.id(connection, values["connection"]),
		}
	case protocol:
		w.Path = []string{p.id(application, values["application"]), values["type"].(string)}
		return append([]Write{w}, p.status(s, w.Path)...), nil
	case member:
		w.Path, w.Body = []string{p.id(resourceSet, values["set"])}, map[string]any{"members": []any{body}}
	case rule:
		w.Operation, w.Body = "grant-auth-rules", map[string]any{
			"identities": []any{p.identity(values)}, "rules": []any{body},
		}
	}
	return []Write{w}, nil
}

func (p *Plan) change(ctx context.Context, s *Step) ([]Write, error) {
	body, err := p.body(ctx, s)
	if err != nil {
		return nil, err
	}
	operation := operations.CompiledIn().Find(kindOf(s.Kind).update)
	w := Write{Operation: operation.ID, Path: []string{s.record.ID}, IfMatch: strconv.Quote(s.record.Version)}
	switch s.Kind {
	case protocol:
		w.Path = []string{p.id(application, s.want.Values["application"]), s.want.Values["type"].(string)}
	case member:
		w.Path = []string{p.id(resourceSet, s.want.Values["set"]), s.record.ID}
	case rule:
		w.Path = []string{fmt.Sprint(s.record.raw["auth_unit_id"]), s.record.ID}
	}
	if operation.Method == "PUT" {
		w.Body = whole(operation, s.record.raw, body)
	} else {
		w.Body = onlyChanged(s, body)
	}
	statusAlone := len(s.Changes) == 1 && s.Changes[0].Member == "status"
	actions := p.status(s, w.Path)
	if len(actions) > 0 && statusAlone {
		actions[0].IfMatch = w.IfMatch
		return actions, nil
	}
	return append([]Write{w}, actions...), nil
}

// onlyChanged is a merge patch of the members that change.
func onlyChanged(s *Step, body map[string]any) map[string]any {
	out := map[string]any{}
	for _, c := range s.Changes {
		name, _, _ := strings.Cut(c.Member, ".")
		switch name {
		case "parent":
			name = "parent_id"
		case "pointer":
			name = "pointer_id"
		}
		out[name] = body[name]
	}
	return out
}

// whole is the record with what is wanted laid over it, for operations that replace.
func whole(operation *operations.Operation, raw, wanted map[string]any) map[string]any {
	out := map[string]any{}
	for _, m := range operation.Members {
		if value, has := raw[m.Name]; has && m.Name != "inherited_from" {
			out[m.Name] = value
		}
		if value, has := wanted[m.Name]; has {
			out[m.Name] = overlay(out[m.Name], value)
		}
	}
	for _, name := range []string{"resource_id", "resource_set_id"} {
		switch out[name] {
		case nil:
		case "":
			delete(out, name)
		default:
			delete(out, "code") // the id says it
		}
	}
	delete(out, "resource_code")
	delete(out, "resource_type")
	return out
}

// overlay merges objects as RFC 7396 does; all else is replaced.
func overlay(under, over any) any {
	wanted, isObject := over.(map[string]any)
	if !isObject {
		return over
	}
	has, _ := under.(map[string]any)
	out := map[string]any{}
	maps.Copy(out, has)
	for name, value := range wanted {
		if value == nil {
			delete(out, name)
			continue
		}
		out[name] = overlay(out[name], value)
	}
	return out
}

// status switches a record on or off, where that is an operation of its own.
func (p *Plan) status(s *Step, path []string) []Write {
	operation := map[string]string{connection: "connection", protocol: "protocol"}[s.Kind]
	wanted, has := s.want.Values["status"]
	is := p.firstStatus(s)
	if s.record != nil {
		is = s.record.Values["status"]
	}
	if !has || operation == "" || is == wanted {
		return nil
	}
	verb := "disable-"
	if wanted == "1" {
		verb = "enable-"
	}
	return []Write{{Operation: verb + operation, Path: path}}
}

// firstStatus is the status of a protocol that is new: enabled if it is the one of the application's protocol_type.
func (p *Plan) firstStatus(s *Step) any {
	of, _ := s.want.Values["application"].(string)
	own := any("oidc")
	if w := p.desired[Ref{application, of}]; w != nil && w.Values["protocol_type"] != nil {
		own = w.Values["protocol_type"]
	}
	if s.want.Values["type"] == own {
		return "1"
	}
	return "0"
}

func (p *Plan) deletion(s *Step) []Write {
	r := s.record
	w := Write{Operation: kindOf(s.Kind).remove, Path: []string{r.ID}, IfMatch: strconv.Quote(r.Version)}
	switch s.Kind {
	case node:
		w.Query = url.Values{"object_code": {fmt.Sprint(r.Values["tree"])}}
	case source:
		w.Path, w.IfMatch = []string{p.id(application, r.Values["application"]), r.ID}, ""
	case protocol:
		w.Path = []string{p.id(application, r.Values["application"]), fmt.Sprint(r.Values["type"])}
	case member:
		w.Path = []string{p.id(resourceSet, r.Values["set"]), r.ID}
	case rule:
		w.Path, w.IfMatch, w.Body = nil, "", map[string]any{"rule_ids": []string{r.ID}}
	}
	return []Write{w}
}

// id is the id of a record by its key. While a step is tried ahead, it is the stand-in's for a record that is not
// there; else "".
func (p *Plan) id(kind string, key any) string {
	name, _ := key.(string)
	return cmp.Or(p.actual.ids[Ref{kind, name}], p.standIn)
}

func (p *Plan) identity(values map[string]any) map[string]any {
	kind, name, _ := identityOf(values)
	out := map[string]any{"identity_type": kind, "identity_id": name}
	if named := identityTypes[kind]; named != "" {
		out["identity_id"], out["identity_name"] = p.id(named, name), name
	}
	return out
}

// body is what is wanted as the operations take it: with ids, and with secrets.
func (p *Plan) body(ctx context.Context, s *Step) (map[string]any, error) {
	values, out := s.want.Values, map[string]any{}
	inDocuments := []string{
		"nodes", "protocols", "sources", "members", "application", "resource_application", "identity", "pointer", "was",
	}
	for _, f := range kindOf(s.Kind).fields() {
		if value, has := values[f.name]; has && !slices.Contains(inDocuments, f.name) {
			out[f.name] = value
		}
	}
	switch s.Kind {
	case protocol:
		delete(out, "type")
		delete(out, "status")
	case resource, resourceSet:
		out["application_id"] = p.id(application, values["application"])
	case node:
		of := fmt.Sprint(values["tree"])
		out["object_code"], out["parent_id"] = of, ""
		if parent, _ := values["parent"].(string); parent != "" {
			out["parent_id"] = p.id(node, of+"/"+parent)
		}
		if pointer := values["pointer"]; pointer != nil {
			out["pointer_id"] = p.id(node, pointer)
		}
	case member:
		delete(out, "type")
		delete(out, "code")
		set := fmt.Sprint(values["set"])
		out["resource_id"] = p.id(resource, resourceKey(values, setApplication(set)))
	case rule:
		p.ruleBody(values, out)
	}
	p.secrets.keep = s.Action == Update && !p.options.Rotate
	resolved, err := p.secrets.resolve(ctx, out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.want.Place(), err)
	}
	return resolved.(map[string]any), nil
}

func (p *Plan) ruleBody(values, out map[string]any) {
	of, _ := values["application"].(string)
	out["application_id"] = p.id(application, of)
	switch values["type"] {
	case "data", "api", "ui":
		delete(out, "code")
		out["resource_id"] = p.id(resource, resourceKey(values, of))
	case "res_set":
		if other, _ := values["resource_application"].(string); other != "" {
			of = other
		}
		delete(out, "code")
		out["resource_set_id"] = p.id(resourceSet, setKey(of, values["code"]))
	}
}
