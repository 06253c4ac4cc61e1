package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
)

// The operations of OpenID's Authorization API 1.0 (AuthZEN). An AuthZEN resource of type data, api or ui is the
// resource of this type whose code is the id; one of another type T is the data resource with the code T/id. The
// application is resource.properties.application_id, otherwise the caller's own.

func (a *api) registerAuthZEN(s *rest.Server) {
	rest.Handle(s, authZEN(rest.Op{
		ID: "evaluate-access", Path: "/access/v1/evaluation", Summary: "Evaluate access (AuthZEN)",
		Response: map[string]any{"decision": true},
	}), a.evaluate)
	rest.Handle(s, authZEN(rest.Op{
		ID: "evaluate-accesses", Path: "/access/v1/evaluations", Summary: "Evaluate access many times (AuthZEN)",
		Doc: "Members beside `evaluations` are defaults for each evaluation. `options.evaluations_semantic` is " +
			"execute_all, deny_on_first_deny or permit_on_first_permit. An evaluation that lacks a member is denied, " +
			"and `context` says what it lacks.",
		Response: map[string]any{"evaluations": []any{map[string]any{"decision": true}}},
	}), a.evaluateMany)
	a.registerAuthZENSearches(s)
}

// authZEN adds what all AuthZEN operations have in common.
func authZEN(op rest.Op) rest.Op {
	op.Method, op.Scope = http.MethodPost, auth.PermissionsCheck
	op.NoReplay, op.Lenient = true, true
	op.Errors = []apperr.Kind{apperr.InvalidState, apperr.Unavailable}
	op.Request = exampleEvaluation
	return op
}

// Entity is a subject or a resource.
type Entity struct {
	Type       string         `json:"type,omitempty" doc:"AuthZEN 1.0: a type of identity, or of resource" example:"user"`
	ID         string         `json:"id,omitempty" doc:"AuthZEN 1.0: the username or id of a subject; the code of a resource" example:"alice"`
	Properties map[string]any `json:"properties,omitempty" doc:"AuthZEN 1.0: further members, which conditions see"`
}

// AccessAction is what the subject wants to do.
type AccessAction struct {
	Name       string         `json:"name,omitempty" doc:"AuthZEN 1.0: the action" example:"read"`
	Properties map[string]any `json:"properties,omitempty" doc:"AuthZEN 1.0: further members, which conditions see"`
}

// Evaluation asks whether a subject may do something with a resource.
type Evaluation struct {
	Subject  *Entity        `json:"subject,omitempty" doc:"AuthZEN 1.0: who"`
	Resource *Entity        `json:"resource,omitempty" doc:"AuthZEN 1.0: what"`
	Action   *AccessAction  `json:"action,omitempty" doc:"AuthZEN 1.0: the action"`
	Context  map[string]any `json:"context,omitempty" doc:"AuthZEN 1.0: values that conditions see"`
}

// Evaluations is a batch of evaluations.
type Evaluations struct {
	Evaluation
	Evaluations []Evaluation       `json:"evaluations,omitempty" maxItems:"1000" doc:"AuthZEN 1.0: each takes what it lacks from the members beside"`
	Options     *EvaluationOptions `json:"options,omitempty" doc:"AuthZEN 1.0: how far to go"`
}

// EvaluationOptions say at which decision a batch ends.
type EvaluationOptions struct {
	Semantic string `json:"evaluations_semantic,omitempty" enum:"execute_all,deny_on_first_deny,permit_on_first_permit" doc:"AuthZEN 1.0: all, or until the first denial, or until the first permission"`
}

// AccessDecision answers an evaluation.
type AccessDecision struct {
	Decision bool           `json:"decision" doc:"AuthZEN 1.0: whether it may be done"`
	Context  map[string]any `json:"context,omitempty" doc:"Why it is denied"`
}

// entity and evaluation are the types above as they are decoded: properties and context stay JSON.
type entity struct {
	Type       string          `json:"type"`
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Properties json.RawMessage `json:"properties"`
}

type evaluation struct {
	Subject  *entity         `json:"subject"`
	Resource *entity         `json:"resource"`
	Action   *entity         `json:"action"`
	Context  json.RawMessage `json:"context"`
}

// withDefaults fills in the absent members of an evaluation.
func (e evaluation) withDefaults(defaults evaluation) evaluation {
	e.Subject = cmp.Or(e.Subject, defaults.Subject)
	e.Resource = cmp.Or(e.Resource, defaults.Resource)
	e.Action = cmp.Or(e.Action, defaults.Action)
	if e.Context == nil {
		e.Context = defaults.Context
	}
	return e
}

// part is the member of an evaluation that a search looks for. A request need not have it.
type part int

const (
	whole part = iota
	forSubjects
	forResources
	forActions
)

// check notes what is missing.
func (e *evaluation) check(faults *apperr.Faults, of part) {
	faults.Check(e.Subject != nil && e.Subject.Type != "", "subject.type", "must be given")
	faults.Check(of == forSubjects || e.Subject != nil && e.Subject.ID != "", "subject.id", "must be given")
	faults.Check(e.Resource != nil && e.Resource.Type != "", "resource.type", "must be given")
	faults.Check(of == forResources || e.Resource != nil && e.Resource.ID != "", "resource.id", "must be given")
	faults.Check(of == forActions || e.Action != nil && e.Action.Name != "", "action.name", "must be given")
}

// question is the engine's form of a checked evaluation.
func (a *api) question(ctx context.Context, s *engine.State, e evaluation) *engine.Question {
	q := &engine.Question{
		Identity:      engine.Identity{Type: e.Subject.Type, ID: e.Subject.ID},
		ApplicationID: applicationOf(ctx, e.Resource), Now: a.clock.Now().Millis(),
		SubjectProperties: e.Subject.Properties, ResourceProperties: e.Resource.Properties, Context: e.Context,
	}
	if e.Subject.Type == engine.User {
		if id := s.PersonNamed(e.Subject.ID); id != "" {
			q.Identity.ID = id
		}
	}
	q.ObjectType, q.ObjectCode = objectOf(e.Resource)
	if e.Action != nil {
		q.Action, q.ActionProperties = e.Action.Name, e.Action.Properties
	}
	return q
}

// applicationOf is the application that a resource's properties name, otherwise the caller's own.
func applicationOf(ctx context.Context, resource *entity) string {
	var properties struct {
		ApplicationID any `json:"application_id"`
	}
	_ = json.Unmarshal(resource.Properties, &properties) // the schema has made sure that it is an object
	if p := auth.PrincipalFrom(ctx); properties.ApplicationID == nil && p != nil {
		return cmp.Or(p.ApplicationID, p.ClientID, p.Subject)
	}
	id, _ := properties.ApplicationID.(string) // a value that is not a text names no application
	return id
}

var objectTypes = []string{engine.Data, engine.API, engine.UI}

// objectOf is the type and code of the platform's resource for an AuthZEN resource.
func objectOf(resource *entity) (kind, code string) {
	if slices.Contains(objectTypes, resource.Type) {
		return resource.Type, resource.ID
	}
	return engine.Data, resource.Type + "/" + resource.ID
}

type evaluateInput struct {
	Consistency
	Body rest.JSON[Evaluation]
}

func (a *api) evaluate(ctx context.Context, in *evaluateInput) (AccessDecision, error) {
	var body evaluation
	if err := in.Body.Into(&body); err != nil {
		return AccessDecision{}, err
	}
	var faults apperr.Faults
	body.check(&faults, whole)
	if err := faults.Err(); err != nil {
		return AccessDecision{}, err
	}
	state, err := a.state(ctx, in.Token)
	if err != nil {
		return AccessDecision{}, err
	}
	work, done := a.work(ctx)
	defer done()
	return a.answer(ctx, state, work, body)
}

// answer evaluates one evaluation.
func (a *api) answer(ctx context.Context, s *engine.State, w *engine.Work, e evaluation) (AccessDecision, error) {
	q := a.question(ctx, s, e)
	q.Work = w
	d, err := s.Check(ctx, q)
	if err != nil {
		return AccessDecision{}, answerable(err)
	}
	if d.Allowed {
		return AccessDecision{Decision: true}, nil
	}
	return AccessDecision{Context: map[string]any{"reason": d.Reason}}, nil
}

// answerOne evaluates one of many evaluations. One that lacks a member is denied, and the others are answered.
func (a *api) answerOne(ctx context.Context, s *engine.State, w *engine.Work, e evaluation) (AccessDecision, error) {
	var faults apperr.Faults
	e.check(&faults, whole)
	refusal, bad := errors.AsType[*apperr.Error](faults.Err())
	if !bad {
		return a.answer(ctx, s, w, e)
	}
	lacking := make([]map[string]any, len(refusal.Faults))
	for i, fault := range refusal.Faults {
		lacking[i] = map[string]any{"location": fault.Location, "message": fault.Message}
	}
	return AccessDecision{Context: map[string]any{"reason": "invalid_parameters", "errors": lacking}}, nil
}

type evaluateManyInput struct {
	Consistency
	Body rest.JSON[Evaluations]
}

// AccessDecisions are the answers to evaluations, in their order. If there are none, decision is the answer to the
// request itself.
type AccessDecisions struct {
	Decision    *bool            `json:"decision,omitempty" doc:"AuthZEN 1.0: of a request without evaluations"`
	Context     map[string]any   `json:"context,omitempty" doc:"AuthZEN 1.0: why"`
	Evaluations []AccessDecision `json:"evaluations,omitempty" doc:"AuthZEN 1.0: in the order of the request"`
}

func (a *api) evaluateMany(ctx context.Context, in *evaluateManyInput) (AccessDecisions, error) {
	var body struct {
		evaluation
		Evaluations []evaluation `json:"evaluations"`
		Options     struct {
			Semantic string `json:"evaluations_semantic"`
		} `json:"options"`
	}
	if err := in.Body.Into(&body); err != nil {
		return AccessDecisions{}, err
	}
	if len(body.Evaluations) == 0 {
		var faults apperr.Faults
		body.check(&faults, whole)
		if err := faults.Err(); err != nil {
			return AccessDecisions{}, err
		}
	}
	state, err := a.state(ctx, in.Token)
	if err != nil {
		return AccessDecisions{}, err
	}
	work, done := a.work(ctx)
	defer done()
	if len(body.Evaluations) == 0 {
		d, err := a.answer(ctx, state, work, body.evaluation)
		return AccessDecisions{Decision: &d.Decision, Context: d.Context}, err
	}
	var answers AccessDecisions
	for _, e := range body.Evaluations {
		d, err := a.answerOne(ctx, state, work, e.withDefaults(body.evaluation))
		if err != nil {
			return AccessDecisions{}, err
		}
		answers.Evaluations = append(answers.Evaluations, d)
		if stop := body.Options.Semantic; stop == "deny_on_first_deny" && !d.Decision ||
			stop == "permit_on_first_permit" && d.Decision {
			break
		}
	}
	return answers, nil
}

// nameOf is the id of a subject for AuthZEN clients: the username of a user.
func nameOf(s *engine.State, who engine.Identity) string {
	if person := s.Person(who.ID); person != nil && who.Type == engine.User {
		return person.Username
	}
	return who.ID
}

// typed returns the id of a resource for AuthZEN clients, given its AuthZEN type and its code. ok is false if the
// resource is not of this type.
func typed(kind, code string) (id string, ok bool) {
	if slices.Contains(objectTypes, kind) {
		return code, true
	}
	return strings.CutPrefix(code, kind+"/")
}

var exampleEvaluation = map[string]any{
	"subject": map[string]any{"type": "user", "id": "alice"}, "action": map[string]any{"name": "read"},
	"resource": map[string]any{"type": "record", "id": "101", "properties": map[string]any{"application_id": "2001"}},
}
