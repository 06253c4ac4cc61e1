package plan

import (
	"context"
	"errors"
	"net/http"
	"slices"

	idp "github.com/idplatform/idplatform/sdk/go"
)

// onlyNow returns the step without which the platform refuses another one: one that is done before it. nil if it is
// refused for another reason. before is the step that is done right before.
func onlyNow(s, before *Step, err error) *Step {
	problem, is := errors.AsType[*idp.Problem](err)
	if !is {
		return nil
	}
	users, places := int64(0), s.Kind == node && s.Action == Alter
	for _, fault := range problem.Errors {
		users += fault.Count
		places = places && slices.Contains([]string{"body.parent_id", "body.pointer_id"}, fault.Location)
	}
	inUse := problem.Code == idp.CodeInUse || problem.Code == idp.CodeHasChildren
	switch {
	case s.after != nil && inUse && users <= int64(s.freed):
		return s.after
	case s.after != nil && (problem.Code == idp.CodeAlreadyExists || places && users == 0 && len(problem.Errors) > 0):
		return s.after
	case before != nil && s.Action == Delete && before.Action == Delete && inUse && s.after == nil:
		return before
	}
	return nil
}

// Try asks the platform about each step, without changing anything. It returns an error only if the platform cannot be
// asked; what it refuses is in the steps.
func (p *Plan) Try(ctx context.Context) error {
	var before *Step
	for _, b := range p.batches(p.ready(p.Steps)) {
		if b = p.ready(b); len(b) == 0 { // nodes whose parents are in the batch before
			continue
		}
		if err := p.try(ctx, b, before); err != nil {
			return err
		}
		before = b[len(b)-1]
	}
	return nil
}

// ready are the steps that can be tried: they need nothing that is not there, or nodes that come before them.
func (p *Plan) ready(steps []*Step) []*Step {
	var out []*Step
	before := map[Ref]bool{}
	for _, s := range steps {
		s.Waits = p.waits(s, before)
		if s.Waits == nil && s.later != nil {
			s.Waits = &s.later.Ref
		}
		if s.Waits == nil {
			out = append(out, s)
			before[s.Ref] = s.Kind == node && s.Action == Create
		}
	}
	return out
}

// try asks about a batch. before is the step that is done before it.
func (p *Plan) try(ctx context.Context, b batch, before *Step) error {
	writes, err := p.requests(ctx, b)
	if err != nil {
		b[0].Problem = err // a secret that is not there; a batch of several steps has none
		return nil
	}
	if b[0].Action == Create {
		writes = writes[:1] // what follows needs the record
	}
	for _, w := range writes {
		if scope := p.scopes.lacks(w.Operation); scope != "" {
			b.withoutScope(scope)
			return nil
		}
		_, err := p.platform.Write(ctx, w, true)
		if idp.CodeOf(err) == idp.CodeForbidden {
			if err := p.scopes.read(ctx, p.platform); err != nil {
				return err
			}
			if scope := p.scopes.lacks(w.Operation); scope != "" {
				b.withoutScope(scope)
				return nil
			}
		}
		problem, is := errors.AsType[*idp.Problem](err)
		first := onlyNow(b[0], before, err)
		switch {
		case err == nil:
			continue
		case first != nil:
			b[0].Waits = &first.Ref
			return nil
		case !is || !slices.Contains(refusals, problem.Status):
			return err
		case b.refuse(err):
			return nil
		}
		for _, s := range b { // the refusal does not say which step
			if one := p.ready(batch{s}); len(one) > 0 {
				if err := p.try(ctx, one, before); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return nil
}

// refusals are the statuses by which the platform says that a step is wrong.
var refusals = []int{
	http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
	http.StatusPreconditionFailed,
}

// Refused is the first problem of the steps that were tried; nil if there is none.
func (p *Plan) Refused() error {
	for _, s := range p.Steps {
		if s.Problem != nil {
			return s.Problem
		}
	}
	return nil
}
