package plan

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	idp "github.com/idplatform/idplatform/sdk/go"
)

// onlyNow returns the step without which the platform refuses another one: one that is done before it. nil if it is
// refused for another reason. before is the step that is done right before.
func onlyNow(s, before *Step, err error) *Step {
	problem, is := errors.AsType[*idp.Problem](err)
	if !is {
		return nil
	}
	users, places := int64(0), s.Kind == node && s.Action == Update
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

// trial is a batch about which the platform is asked.
type trial struct {
	batch  batch
	before *Step // the step that is done right before it
	ahead  bool  // it refers to records that are not there yet
	writes []Write
	failed int // the number of the write with the error
	err    error
}

// Try asks the platform about each step, without changing anything. It returns an error only if the platform cannot be
// asked; what it refuses is in the steps.
func (p *Plan) Try(ctx context.Context) error {
	var all []*trial
	var before *Step
	for _, b := range p.batches(p.ready(p.Steps)) {
		if b = p.ready(b); len(b) == 0 { // nodes whose parents are in the batch before
			continue
		}
		all = append(all, &trial{batch: b, before: before})
		before = b[len(b)-1]
	}
	var waiting []*Step
	for _, s := range p.Steps {
		if s.DependsOn != nil {
			waiting = append(waiting, s)
		}
	}
	for _, b := range p.batches(waiting) {
		all = append(all, &trial{batch: b, ahead: true})
	}
	return p.tryAll(ctx, all)
}

// ready are the steps that can be tried: they need nothing that is not there, or nodes that come before them.
func (p *Plan) ready(steps []*Step) []*Step {
	var out []*Step
	before := map[Ref]bool{}
	for _, s := range steps {
		s.DependsOn = p.waits(s, before)
		if s.DependsOn == nil && s.later != nil {
			s.DependsOn = &s.later.Ref
		}
		if s.DependsOn == nil {
			out = append(out, s)
			before[s.Ref] = s.Kind == node && s.Action == Create
		}
	}
	return out
}

// tryAll asks about batches, some at a time.
func (p *Plan) tryAll(ctx context.Context, all []*trial) error {
	var alone []*trial
	for len(all) > 0 {
		var wave []*trial
		for _, t := range all[:min(len(all), mostTogether)] {
			all = all[1:]
			if p.readyTrial(ctx, t) {
				wave = append(wave, t)
			}
			if len(wave) == 1 && !p.asked { // the first of all is alone: it tells what the caller may do
				break
			}
		}
		p.asked = p.asked || len(wave) > 0
		atOnce(wave, func(t *trial) bool { return t.ask(ctx, p.platform) })
		for _, t := range wave {
			more, err := p.judge(ctx, t)
			if err != nil {
				return err
			}
			alone = append(alone, more...)
		}
	}
	if len(alone) == 0 {
		return nil
	}
	return p.tryAll(ctx, alone)
}

// standIn is the id of records that are not there yet, in questions about steps that refer to them: the largest id that
// there can be, so that it is no other record's. The platform looks at what a step says itself, such as conditions,
// before it looks for the records that it names.
const standIn = "9007199254740991"

// readyTrial makes the requests of a trial. It returns false if there is nothing to ask.
func (p *Plan) readyTrial(ctx context.Context, t *trial) bool {
	if t.ahead {
		p.standIn = standIn
		defer func() { p.standIn = "" }()
	}
	writes, err := p.requests(ctx, t.batch)
	if err != nil {
		t.batch[0].refuse(err) // a secret that is not there; a batch of several steps has none
		return false
	}
	if t.batch[0].Action == Create {
		writes = writes[:1] // what follows needs the record
	}
	for _, w := range writes {
		if scope := p.scopes.lacks(w.Operation); scope != "" {
			t.batch.withoutScope(scope)
			return false
		}
		if slices.Contains(w.Path, standIn) { // a part of a record that is not there: it would only be not found
			return false
		}
	}
	t.writes = writes
	return true
}

// ask sends the requests of a trial up to the first one that fails. It returns false if the platform cannot be asked.
func (t *trial) ask(ctx context.Context, platform Platform) bool {
	for i, w := range t.writes {
		if _, err := platform.Write(ctx, w, true); err != nil {
			t.failed, t.err = i, err
			return refusal(err)
		}
	}
	return true
}

// judge notes in the steps what the platform has said. If that does not tell which step is refused, it returns a trial
// of each.
func (p *Plan) judge(ctx context.Context, t *trial) ([]*trial, error) {
	if t.err == nil {
		return nil, nil
	}
	if idp.CodeOf(t.err) == idp.CodeForbidden {
		if err := p.scopes.read(ctx, p.platform); err != nil {
			return nil, err
		}
		if scope := p.scopes.lacks(t.writes[t.failed].Operation); scope != "" {
			t.batch.withoutScope(scope)
			return nil, nil
		}
	}
	err := t.err
	if t.ahead && refusal(err) {
		if err = t.ownFault(); err == nil {
			return nil, nil
		}
	}
	first := onlyNow(t.batch[0], t.before, err)
	switch {
	case first != nil:
		t.batch[0].DependsOn = &first.Ref
		return nil, nil
	case !refusal(err):
		return nil, err
	case t.batch.refuse(err):
		return nil, nil
	}
	var alone []*trial
	for _, s := range t.batch {
		if t.ahead {
			alone = append(alone, &trial{batch: batch{s}, ahead: true})
		} else if one := p.ready(batch{s}); len(one) > 0 {
			alone = append(alone, &trial{batch: one, before: t.before})
		}
	}
	return alone, nil
}

// references are the members that name other records.
var references = []string{
	"application_id", "resource_id", "resource_set_id", "identity_id", "object_code", "parent_id", "pointer_id",
}

// ownFault is what the platform has against the steps themselves. Faults that follow from the stand-ins are left out;
// if nothing else is wrong, it is nil.
func (t *trial) ownFault() error {
	problem, _ := errors.AsType[*idp.Problem](t.err)
	if problem.Status == http.StatusForbidden {
		return problem
	}
	if problem.Status != http.StatusBadRequest {
		return nil
	}
	left := *problem
	left.Errors = slices.DeleteFunc(slices.Clone(problem.Errors), func(fault idp.Fault) bool {
		member, _ := memberOf(fault.Location)
		name, _, _ := strings.Cut(member, "[")
		return slices.Contains(references, name) || t.batch[0].later != nil && name == "actions"
	})
	if len(left.Errors) == 0 {
		return nil
	}
	return &left
}

// refusal reports whether the platform says by an error that a step is wrong.
func refusal(err error) bool {
	problem, is := errors.AsType[*idp.Problem](err)
	return is && slices.Contains(refusals, problem.Status)
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
