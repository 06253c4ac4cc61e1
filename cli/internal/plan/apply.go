package plan

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// Made is told of each step that is done. answer is what the platform said: a secret that it made is only there.
type Made func(s *Step, answer map[string]any) error

// Apply does the steps in their order. It is no transaction: what is done stays when a later step fails, and the next
// plan has the rest.
func (p *Plan) Apply(ctx context.Context, made Made) error {
	if err := p.askAgain(ctx, made); err != nil {
		return err
	}
	done := 0
	for _, b := range p.batches(p.Steps) {
		if err := p.do(ctx, b, made); err != nil {
			err = p.stopped(b, done, err)
			// What the steps before have done is kept.
			if saved := p.options.State.save(context.WithoutCancel(ctx)); saved != nil {
				err = fmt.Errorf("%w\n  %v", err, saved)
			}
			return err
		}
		done += len(b)
	}
	for ref, w := range p.wishes { // also those that were as the files say
		p.options.State.put(ref, p.live.ids[ref], p.madeWithApplication(w), w.Values)
	}
	for _, ref := range p.gone {
		p.options.State.forget(ref)
	}
	for _, s := range p.Steps {
		if s.With != nil {
			p.options.State.forget(s.Ref)
		}
	}
	return p.options.State.save(ctx)
}

// Calls are the requests of the plan in their order, for people to read. {id of Application crm} stands for an id that
// an earlier request makes, and secrets are masked.
func (p *Plan) Calls(ctx context.Context) ([]Write, error) {
	p.secrets.masked = true
	var out []Write
	for _, b := range p.batches(p.Steps) {
		writes, err := p.requests(ctx, b)
		if err != nil {
			return nil, err
		}
		out = append(out, writes...)
		for _, s := range b {
			if s.Action == Create {
				p.live.name(s.Ref, fmt.Sprintf("{id of %s}", s.Ref))
			}
		}
	}
	return out, nil
}

func (p *Plan) do(ctx context.Context, b batch, made Made) (err error) {
	defer func() {
		if err != nil {
			p.unbegin()
		}
	}()
	if err := p.options.State.held(ctx); err != nil {
		return err
	}
	makes := b.makes()
	for _, s := range b {
		if missing := p.waits(s, makes); missing != nil {
			return fmt.Errorf("%s is not there", missing)
		}
	}
	writes, err := p.requests(ctx, b)
	if err != nil {
		return err
	}
	if b[0].Kind == rule && b[0].Action == Delete {
		if err := p.readAgain(ctx, b); err != nil {
			return err
		}
	}
	key, err := p.begin(ctx, b)
	if err != nil {
		return err
	}
	answer := map[string]any(nil)
	for i, w := range writes {
		if i == 0 {
			w.Key = key
		}
		got, err := p.platform.Write(ctx, w, false)
		if i == 0 && idp.CodeOf(err) == idp.CodeIdempotencyKeyReused { // a secret in it has changed since
			got, err = p.withNewKey(ctx, b, w)
		}
		if err != nil && !b.alreadyGone(err) {
			return p.refused(b, i, err)
		}
		if i == 0 {
			answer = got
		}
	}
	return p.finish(b, answer, made)
}

// withNewKey sends a request that is not the same as the one whose answer was lost.
func (p *Plan) withNewKey(ctx context.Context, b batch, w Write) (map[string]any, error) {
	for _, s := range b {
		p.options.State.forget(s.Ref)
	}
	w.Key = p.options.State.begin(b)
	if err := p.options.State.save(ctx); err != nil {
		return nil, err
	}
	return p.platform.Write(ctx, w, false)
}

// finish notes that a batch is done. The state is saved with those that begin next, or at the end.
func (p *Plan) finish(b batch, answer map[string]any, made Made) error {
	ids := idsOf(b, answer)
	for i, s := range b {
		if s.Action == Create && ids[i] != "" {
			p.live.name(s.Ref, ids[i])
		}
		if err := made(s, answer); err != nil {
			return err
		}
		switch {
		case s.Action == Delete:
			p.options.State.forget(s.Ref)
		case s.Interim:
			s.record.Version = strconv.Itoa(number(s.record.Version) + 1) // a version counts changes
			p.options.State.meanwhile(s)
		default:
			p.options.State.put(s.Ref, p.live.ids[s.Ref], s.Action == Create, s.wish.Values)
		}
	}
	return nil
}

// madeWithApplication reports whether a protocol is the set's because its application is: a new application has some.
func (p *Plan) madeWithApplication(w *Wish) bool {
	of, _ := w.Values["application"].(string)
	a := p.options.State.of(Ref{application, of})
	return w.Kind == protocol && a != nil && a.Made
}

// idsOf are the ids of the records that a batch has made, as far as the answer has them.
func idsOf(b batch, answer map[string]any) []string {
	out := make([]string, len(b))
	out[0], _ = answer["id"].(string)
	if items, _ := answer["items"].([]any); len(items) == len(b) {
		for i, item := range items {
			record, _ := item.(map[string]any)
			out[i], _ = record["id"].(string)
		}
	}
	return out
}

// alreadyGone reports whether a record that is to be deleted is not there any more.
func (b batch) alreadyGone(err error) bool {
	return b[0].Action == Delete && idp.CodeOf(err) == idp.CodeNotFound
}

// refused forgets records that the platform did not make, and tells what has changed since the plan.
func (p *Plan) refused(b batch, write int, err error) error {
	problem, is := errors.AsType[*idp.Problem](err)
	if !is || !slices.Contains(refusals, problem.Status) {
		return err
	}
	if b[0].Action == Create && write == 0 {
		for _, s := range b {
			p.options.State.forget(s.Ref)
		}
	}
	changed := problem.Status == http.StatusPreconditionFailed ||
		b[0].Action == Alter && problem.Code == idp.CodeNotFound ||
		b[0].Action == Create && problem.Code == idp.CodeAlreadyExists && b[0].Waits == nil // the plan has tried it
	if !changed {
		return err
	}
	return &failure.Error{Code: failure.Changed, Err: fmt.Errorf("%s has changed since the plan", b[0].Ref)}
}

// fewReads is the number of rules up to which each is read by itself.
const fewReads = 5

// readAgain makes sure that rules are still what the plan read: the operation that revokes rules takes no If-Match.
func (p *Plan) readAgain(ctx context.Context, b batch) error {
	now := map[string]any{} // versions by ids; a rule that is gone already has none
	if len(b) <= fewReads {
		for _, s := range b {
			var one map[string]any
			path := fmt.Sprintf("/v1/auth-units/%s/rules/%s", s.record.raw["auth_unit_id"], s.record.ID)
			err := p.platform.Get(ctx, path, nil, &one)
			if err == nil {
				now[s.record.ID] = one["version"]
			} else if idp.CodeOf(err) != idp.CodeNotFound {
				return err
			}
		}
	} else if err := p.readVersions(ctx, b, now); err != nil {
		return err
	}
	for _, s := range b {
		if version, there := now[s.record.ID]; there && fmt.Sprint(version) != s.record.Version {
			return &failure.Error{Code: failure.Changed, Err: fmt.Errorf("%s has changed since the plan", s.Ref)}
		}
	}
	return nil
}

// readVersions reads the rules of the applications of a batch.
func (p *Plan) readVersions(ctx context.Context, b batch, into map[string]any) error {
	read := map[string]bool{}
	for _, s := range b {
		of, _ := s.record.raw["application_id"].(string)
		if read[of] {
			continue
		}
		read[of] = true
		for raw, err := range p.platform.Each(ctx, "/v1/auth-rules", url.Values{"application_id": {of}}) {
			if err != nil {
				return err
			}
			into[raw["id"].(string)] = raw["version"]
		}
	}
	return nil
}

// stopped is the error of an apply that ended at a batch.
func (p *Plan) stopped(b batch, done int, err error) error {
	code := failure.CodeOf(err, true)
	if code == failure.Changed {
		return &failure.Error{Code: code, Err: fmt.Errorf(
			"%w\n  %d of %d steps are done, and stay; plan again", err, done, len(own(p.Steps)))}
	}
	problem, is := errors.AsType[*idp.Problem](err)
	refused := is && slices.Contains(refusals, problem.Status)
	if done == 0 && code != failure.OutcomeUnknown && !refused {
		return err
	}
	text := b.told(err)
	if len(b) > 1 {
		text = fmt.Errorf("%w\n  it is one of %d steps that are done together, or not at all", text, len(b))
	}
	if done == 0 && refused {
		return &failure.Error{Code: code, Err: fmt.Errorf("%w\n  nothing is done", text)}
	}
	if code == failure.OutcomeUnknown && p.options.State == nil && b[0].makesSecret() {
		text = fmt.Errorf("%w\n  if it was made, its secret is lost: %s makes another one, and with --set the same "+
			"command gets a lost answer again", text, newSecret(b[0].Kind))
	}
	next := "the same command goes on"
	if refused {
		next = "once that is mended, the same command goes on"
	}
	return &failure.Error{Code: failure.Partly, Err: fmt.Errorf(
		"stopped: %w\n  %d of %d steps are done; %s", text, done, len(own(p.Steps)), next)}
}

// told is what went wrong with a batch, at the step that the platform means, with its place in the files.
func (b batch) told(err error) error {
	problem, is := errors.AsType[*idp.Problem](err)
	if !is {
		return fmt.Errorf("%s: %w", b[0].named(), err)
	}
	of := slices.Clone(b)
	for i, s := range b {
		one := *s
		one.Problem = nil
		of[i] = &one
	}
	if !of.refuse(err) {
		of[0].Problem = err
	}
	text := error(nil)
	for _, s := range of {
		if s.Problem == nil {
			continue
		}
		line := fmt.Sprintf("%s: %s (%d %s)", s.named(), problem.Detail, problem.Status, problem.Code)
		if len(problem.Errors) > 0 {
			line += "\n    " + strings.Join(s.faults(), "\n    ")
		}
		if text == nil {
			text = errors.New(line)
		} else {
			text = fmt.Errorf("%w\n  %s", text, line)
		}
	}
	return text
}

// named is a step with its place in the files.
func (s *Step) named() string {
	if s.Place == "" {
		return s.Ref.String()
	}
	return s.Place + ": " + s.Ref.String()
}
