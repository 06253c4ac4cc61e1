package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/idplatform/idplatform/pkg/condition"
)

// Conditions is the CEL environment of the conditions of rules. Its variables are the subject, the resource and the
// action that are asked about, the context of the question, and the present time.
var Conditions = conditions()

func conditions() *condition.Environment {
	env, err := condition.NewEnvironment(condition.Map("subject"), condition.Map("resource"), condition.Map("action"),
		condition.Map("context"), condition.Timestamp("now"))
	if err != nil {
		panic(err) // the declaration above is wrong
	}
	return env
}

// MaxCost bounds what the conditions of one question cost together, in the units of condition.MaxCost. Conditions that
// are left then are undecided.
const MaxCost = 4 * condition.MaxCost

// costOfCondition is what the evaluation of every condition costs at least, in units of Work.
const costOfCondition = 50

// Condition is the condition of rules. Rules of a tenant with the same text share one.
type Condition struct {
	Text     string
	compiled atomic.Pointer[compiled]
}

type compiled struct {
	program *condition.Program
	err     error
}

// program compiles the condition when it is first needed: in a large tenant most rules are not asked about for a long
// time.
func (c *Condition) program() (*condition.Program, error) {
	p := c.compiled.Load()
	if p == nil {
		p = &compiled{}
		p.program, p.err = Conditions.Compile(c.Text)
		c.compiled.Store(p)
	}
	return p.program, p.err
}

// input is what the conditions of one question see. It is made when the first one is evaluated.
type input struct {
	values map[string]any
	cost   int64 // of the conditions evaluated so far
}

// holds evaluates a condition. undecided says why it is neither true nor false; err ends the question.
func (s *State) holds(ctx context.Context, q *Question, in *input, c *Condition) (holds bool, undecided, err error) {
	program, undecided := c.program()
	if undecided != nil {
		return false, undecided, nil
	}
	if in.cost > MaxCost {
		return false, errTooCostly, nil
	}
	if in.values == nil {
		if in.values, undecided = s.values(q); undecided != nil {
			return false, undecided, nil
		}
	}
	spent := int64(0)
	holds, cost, undecided := program.Measure(ctx, in.values, func() error {
		spent += condition.PauseCost
		err = q.Work.spend(ctx, condition.PauseCost)
		return err
	})
	in.cost += cost + 1
	switch {
	case err != nil:
		return false, nil, err
	case ctx.Err() != nil:
		return false, nil, context.Cause(ctx)
	}
	return holds, undecided, q.Work.spend(ctx, costOfCondition+int(max(0, cost-spent)))
}

var errTooCostly = errors.New("the conditions of this check cost too much together")

// values are the variables of conditions.
func (s *State) values(q *Question) (map[string]any, error) {
	subject := map[string]any{"type": q.Identity.Type, "id": q.Identity.ID, "name": q.Identity.ID}
	resource := map[string]any{"type": q.ObjectType, "code": "", "id": ""}
	var ofSubject, ofResource Properties
	if person := s.people.Get(q.Identity.ID); person != nil && q.Identity.Type == User {
		subject["name"], ofSubject = person.Username, person.Properties
	}
	if r := q.resource; r != nil {
		resource["type"], resource["code"], resource["id"], ofResource = r.Type, r.Code, r.ID, r.Properties
	} else if q.ObjectType == App {
		resource["id"] = q.ApplicationID
	}
	action := map[string]any{"name": q.Action}
	for _, part := range []struct {
		of     map[string]any
		stored Properties
		given  json.RawMessage
	}{{subject, ofSubject, q.SubjectProperties}, {resource, ofResource, q.ResourceProperties},
		{action, "", q.ActionProperties}} {
		properties, err := overlay(string(part.stored), part.given)
		if err != nil {
			return nil, err
		}
		part.of["properties"] = properties
	}
	surroundings, err := overlay("", q.Context)
	return map[string]any{
		"subject": subject, "resource": resource, "action": action, "context": surroundings,
		"now": time.UnixMilli(q.Now).UTC(),
	}, err
}

// overlay is the stored JSON object, overridden by the one that the question gives.
func overlay(stored string, given json.RawMessage) (map[string]any, error) {
	values := map[string]any{}
	for _, text := range [][]byte{[]byte(stored), given} {
		if len(text) == 0 || string(text) == "null" {
			continue
		}
		members, err := condition.FromJSON(text)
		if err != nil {
			return nil, err
		}
		for name, value := range members {
			values[name] = value
		}
	}
	return values, nil
}
