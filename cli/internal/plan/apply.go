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
	"sync"
	"sync/atomic"

	"github.com/idplatform/idplatform/cli/internal/failure"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// OnApplied is told of each step that is done. answer is what the platform said: a secret that it made is only there.
type OnApplied func(s *Step, answer map[string]any) error

// Apply does the steps in their order. It is no transaction: what is done stays when a later step fails, and the next
// plan has the rest.
func (p *Plan) Apply(ctx context.Context, made OnApplied) error {
	if err := p.askAgain(ctx, made); err != nil {
		return err
	}
	p.sending = p.batches(p.Steps)
	for done, at := 0, 0; at < len(p.sending); {
		together := p.independent(p.sending[at:])
		at += len(together)
		n, failed, err := p.doAll(ctx, together, made)
		if done += n; err != nil {
			err = p.stopped(failed, done, err)
			// What the steps before have done is kept.
			if saved := p.options.State.save(context.WithoutCancel(ctx)); saved != nil {
				err = fmt.Errorf("%w\n  %v", err, saved)
			}
			return err
		}
	}
	for ref, w := range p.desired { // also those that were as the files say
		p.options.State.put(ref, p.actual.ids[ref], p.madeWithApplication(w), w.Values)
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
				p.actual.name(s.Ref, fmt.Sprintf("{id of %s}", s.Ref))
			}
		}
	}
	return out, nil
}

const (
	mostAtOnce   = 8  // requests that are sent at a time
	mostTogether = 64 // independent batches that are sent together
)

// independent are the first batches, as far as they can be done at the same time: of one kind whose records do not need
// each other, and without secrets in the answers. The first of all is alone: it tells where changes go.
func (p *Plan) independent(left []batch) []batch {
	first := left[0][0]
	alone := !slices.Contains([]string{resource, resourceSet, member, rule}, first.Kind) || first.Action == Delete ||
		first == p.sending[0][0]
	end, known := 1, map[Ref]bool{first.Ref: true}
	for !alone && end < min(len(left), mostTogether) {
		next := left[end][0]
		if next.Kind != first.Kind || next.Action != first.Action || known[next.Ref] {
			break
		}
		known[next.Ref] = true
		end++
	}
	return left[:end]
}

// sent is a batch and what the platform said.
type sent struct {
	batch  batch
	begun  begun
	writes []Write
	done   bool // it was sent
	answer map[string]any
	failed int // the number of the write with the error
	err    error
}

// reused reports whether the platform knows the key of another request: a secret in it has changed since.
func (s *sent) reused() bool {
	return s.failed == 0 && idp.CodeOf(s.err) == idp.CodeIdempotencyKeyReused
}

// sendAll sends batches, some at a time. After an error it begins no other one.
func sendAll(ctx context.Context, platform Platform, all []*sent) {
	atOnce(all, func(one *sent) bool {
		one.done = true
		one.send(ctx, platform)
		return one.err == nil || one.reused()
	})
}

// atOnce calls do for each item, mostAtOnce at a time. Once do returns false, it begins no other one.
func atOnce[Item any](all []Item, do func(Item) bool) {
	var workers sync.WaitGroup
	work, stop := make(chan Item), atomic.Bool{}
	for range min(len(all), mostAtOnce) {
		workers.Go(func() {
			for one := range work {
				if !stop.Load() && !do(one) {
					stop.Store(true)
				}
			}
		})
	}
	for _, one := range all {
		work <- one
	}
	close(work)
	workers.Wait()
}

// doAll does batches at the same time. It returns how many steps are done and, with an error, the batch that failed.
func (p *Plan) doAll(ctx context.Context, together []batch, made OnApplied) (done int, failed batch, err error) {
	defer func() {
		if err != nil {
			p.unbegin()
		}
	}()
	if err := p.options.State.held(ctx); err != nil {
		return 0, together[0], err
	}
	var out []*sent
	for _, b := range together {
		one, wrong := p.prepare(ctx, b)
		if wrong != nil {
			failed, err = b, wrong
			break
		}
		out = append(out, one)
	}
	sendAll(ctx, p.platform, out)
	for _, one := range out {
		if !one.done {
			p.begun = append(p.begun, one.begun)
			continue
		}
		if one.reused() {
			one.answer, one.err = p.withNewKey(ctx, one.batch, one.writes[0])
		}
		wrong := one.err
		if wrong == nil {
			done += len(one.batch)
			wrong = p.finish(one.batch, one.answer, made)
		} else {
			wrong = p.refused(one.batch, one.failed, wrong)
		}
		if wrong != nil && err == nil {
			failed, err = one.batch, wrong
		}
	}
	return done, failed, err
}

// prepare makes the requests of a batch, and remembers it.
func (p *Plan) prepare(ctx context.Context, b batch) (*sent, error) {
	makes := b.makes()
	for _, s := range b {
		if missing := p.waits(s, makes); missing != nil {
			return nil, fmt.Errorf("%s is not there", missing)
		}
	}
	writes, err := p.requests(ctx, b)
	if err != nil {
		return nil, err
	}
	if b[0].Kind == rule && b[0].Action == Delete {
		if err := p.readAgain(ctx, b); err != nil {
			return nil, err
		}
	}
	begun, err := p.begin(ctx, b)
	writes[0].Key = begun.key
	return &sent{batch: b, begun: begun, writes: writes}, err
}

// send sends the requests of a batch one after the other.
func (s *sent) send(ctx context.Context, platform Platform) {
	for i, w := range s.writes {
		got, err := platform.Write(ctx, w, false)
		if i == 0 {
			s.answer = got
		}
		if err != nil && !s.batch.alreadyGone(err) {
			s.failed, s.err = i, err
			return
		}
	}
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
func (p *Plan) finish(b batch, answer map[string]any, made OnApplied) error {
	ids := idsOf(b, answer)
	for i, s := range b {
		if s.Action == Create && ids[i] != "" {
			p.actual.name(s.Ref, ids[i])
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
			p.options.State.put(s.Ref, p.actual.ids[s.Ref], s.Action == Create, s.want.Values)
		}
	}
	return nil
}

// madeWithApplication reports whether a protocol is the set's because its application is: a new application has some.
func (p *Plan) madeWithApplication(w *Desired) bool {
	of, _ := w.Values["application"].(string)
	a := p.options.State.of(Ref{application, of})
	return w.Kind == protocol && a != nil && a.Managed
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
		b[0].Action == Update && problem.Code == idp.CodeNotFound ||
		b[0].Action == Create && problem.Code == idp.CodeAlreadyExists && b[0].DependsOn == nil // the plan has tried it
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
	refused := refusal(err)
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
