package plan

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	idp "github.com/idplatform/idplatform/sdk/go"
)

// largestBody is how many bytes of values go into one request, of which the platform takes 1 MiB: ids and names of
// members come on top.
const largestBody = 256 << 10

// batch is steps that are done by one request: all or none of them.
type batch []*Step

// batches groups steps where an operation takes several: rules that are made or deleted, resources, nodes of a tree,
// members of a set. The order of dependence stays.
func (p *Plan) batches(steps []*Step) []batch {
	var out []batch
	steps = own(steps)
	for i := 0; i < len(steps); {
		end := i + 1
		for end < len(steps) && steps[end].joins(steps[i]) {
			end++
		}
		run := steps[i:end]
		switch i = end; {
		case len(run) == 1:
			out = append(out, run)
		case run[0].Kind == rule && run[0].Action == Create:
			out = append(out, grants(run)...)
		case run[0].Action == Create:
			out = append(out, groups(run, func(*Step) any { return nil })...)
		default:
			for chunk := range slices.Chunk(run, largestBatch) {
				out = append(out, chunk)
			}
		}
	}
	return out
}

// own are the steps that need requests of their own.
func own(steps []*Step) []*Step {
	return slices.DeleteFunc(slices.Clone(steps), func(s *Step) bool { return s.With != nil })
}

// joins reports whether a step can be done together with another.
func (s *Step) joins(other *Step) bool {
	switch {
	case s.Kind != other.Kind || s.Action != other.Action:
		return false
	case s.Kind == rule:
		return s.Action != Update
	case s.Kind == resource:
		return s.Action == Create
	case s.Kind == member && s.Action == Create:
		return s.want.Values["set"] == other.want.Values["set"]
	case s.Kind == node && s.Action == Create: // a pointer may lead to a node that comes before it
		return s.want.Values["tree"] == other.want.Values["tree"] &&
			(s.want.Values["pointer"] == nil) == (other.want.Values["pointer"] == nil)
	}
	return false
}

// makes are the nodes of a batch: others of it can be below them.
func (b batch) makes() map[Ref]bool {
	out := map[Ref]bool{}
	for _, s := range b {
		if s.Kind == node && s.Action == Create {
			out[s.Ref] = true
		}
	}
	return out
}

// grants groups rules to make: the operation gives each of its rules to each of its identities. So a request has the
// rules of one identity, or the identities of one rule; whatever needs fewer requests.
func grants(steps []*Step) []batch {
	identities := groups(steps, func(s *Step) any { return s.want.Values["identity"] })
	rules := groups(steps, func(s *Step) any {
		values := maps.Clone(s.want.Values)
		delete(values, "identity")
		return values
	})
	if len(rules) < len(identities) {
		return rules
	}
	return identities
}

// groups collects the steps that share a value, in the order of its first appearance.
func groups(steps []*Step, of func(*Step) any) []batch {
	at, sizes, out := map[string]int{}, []int{}, []batch{}
	for _, s := range steps {
		key, _ := json.Marshal(of(s)) // of values that were JSON or YAML
		whole, _ := json.Marshal(s.want.Values)
		n, has := at[string(key)]
		if !has || len(out[n]) == largestBatch || sizes[n]+len(whole) > largestBody {
			n = len(out)
			at[string(key)], out, sizes = n, append(out, nil), append(sizes, 0)
		}
		out[n], sizes[n] = append(out[n], s), sizes[n]+len(whole)
	}
	return out
}

// requests makes the requests of a batch.
func (p *Plan) requests(ctx context.Context, b batch) ([]Write, error) {
	if len(b) == 1 {
		return p.writes(ctx, b[0])
	}
	switch b[0].Kind {
	case node:
		return p.nodes(ctx, b)
	case resource:
		return p.resources(ctx, b)
	}
	var together Write
	for i, s := range b {
		writes, err := p.writes(ctx, s)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			together = writes[0]
			continue
		}
		body, more := together.Body.(map[string]any), writes[0].Body.(map[string]any)
		switch {
		case s.Action == Delete:
			body["rule_ids"] = append(body["rule_ids"].([]string), more["rule_ids"].([]string)...)
		case s.Kind == member:
			body["members"] = append(body["members"].([]any), more["members"].([]any)...)
		case b.ofOneIdentity():
			body["rules"] = append(body["rules"].([]any), more["rules"].([]any)...)
		default:
			body["identities"] = append(body["identities"].([]any), more["identities"].([]any)...)
		}
	}
	return []Write{together}, nil
}

// nodes makes the request of several nodes of a tree. One below another that is new names it by its code.
func (p *Plan) nodes(ctx context.Context, b batch) ([]Write, error) {
	items, codes := make([]any, len(b)), map[any]bool{}
	for _, s := range b {
		codes[s.want.Values["code"]] = true
	}
	for i, s := range b {
		item, err := p.body(ctx, s)
		if err != nil {
			return nil, err
		}
		delete(item, "object_code")
		item["ref"] = s.want.Values["code"]
		if parent := s.want.Values["parent"]; codes[parent] {
			delete(item, "parent_id")
			item["parent_ref"] = parent
		}
		items[i] = item
	}
	return []Write{{Operation: "create-tree-nodes", Body: map[string]any{
		"object_code": b[0].want.Values["tree"], "items": items,
	}}}, nil
}

// resources makes the request of several resources.
func (p *Plan) resources(ctx context.Context, b batch) ([]Write, error) {
	items := make([]any, len(b))
	for i, s := range b {
		item, err := p.body(ctx, s)
		if err != nil {
			return nil, err
		}
		items[i] = item
	}
	return []Write{{Operation: "create-resources", Body: map[string]any{"items": items}}}, nil
}

func (b batch) ofOneIdentity() bool {
	return sameJSON(b[0].want.Values["identity"], b[1].want.Values["identity"])
}

// itemOf is the place of a fault in a request that takes several: body.rules[3].code.
var itemOf = regexp.MustCompile(`^body\.(rules|identities|members|items)\[(\d+)\]\.?`)

// memberOf is the member of a document that a fault is about, and the number of the batch's step.
func memberOf(location string) (string, int) {
	found := itemOf.FindStringSubmatch(location)
	if found == nil {
		return strings.TrimPrefix(location, "body."), 0
	}
	n, _ := strconv.Atoi(found[2]) // digits; too many are 0
	return strings.TrimPrefix(location, found[0]), n
}

// refuse gives the steps of a batch what the platform has against them. It returns false if the platform does not say
// which steps it means.
func (b batch) refuse(err error) bool {
	problem, is := errors.AsType[*idp.Problem](err)
	if !is || len(b) == 1 {
		b[0].refuse(err)
		return true
	}
	of := map[int][]idp.Fault{}
	for _, fault := range problem.Errors {
		_, n := memberOf(fault.Location)
		if n >= len(b) || !itemOf.MatchString(fault.Location) ||
			b[0].Kind == rule && b.ofOneIdentity() == strings.HasPrefix(fault.Location, "body.identities") {
			return false
		}
		of[n] = append(of[n], fault)
	}
	for n, faults := range of {
		alone := *problem
		alone.Errors = faults
		b[n].refuse(&alone)
	}
	return len(of) > 0
}

// refuse notes what is wrong with a step. That counts more than what it waits for.
func (s *Step) refuse(err error) { s.Problem, s.DependsOn = err, nil }
