package plan

import (
	"context"
	"fmt"

	"github.com/idplatform/idplatform/cli/internal/failure"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// makesSecret reports whether the platform makes a secret for a new record, which only the answer has.
func (s *Step) makesSecret() bool {
	switch s.Kind {
	case application:
		return s.want.Values["jwks"] == nil && s.want.Values["jwks_uri"] == nil
	case subscription:
		delivery, _ := s.want.Values["delivery"].(map[string]any)
		return delivery["secret"] == nil
	}
	return false
}

// newSecret is the command that makes another secret.
func newSecret(kind string) string {
	if kind == subscription {
		return "idp api update-event-subscription with another delivery.secret"
	}
	return "idp api refresh-secrets"
}

// lostAnswers are records that were made although the answer did not come: their secrets are only there.
func (p *Plan) lostAnswers() []*Step {
	if p.options.State == nil {
		return nil
	}
	var out []*Step
	for _, a := range p.options.State.Records {
		s := &Step{Action: Create, Ref: a.Ref, want: &Desired{Ref: a.Ref, Values: a.Values,
			File: "the state of the set"}}
		if a.Begun && a.RequestKey != "" && p.actual.records[a.Ref] != nil && s.makesSecret() {
			out = append(out, s)
		}
	}
	return out
}

// askAgain repeats requests whose answers were lost, with their keys: the platform does nothing and answers as it did.
func (p *Plan) askAgain(ctx context.Context, made OnApplied) error {
	for _, s := range p.lostAnswers() {
		if err := p.options.State.held(ctx); err != nil {
			return err
		}
		writes, err := p.creation(ctx, s)
		if err != nil {
			return err
		}
		a := p.options.State.of(s.Ref)
		writes[0].Key = a.RequestKey
		answer, err := p.platform.Write(ctx, writes[0], false)
		switch code := idp.CodeOf(err); {
		case code == idp.CodeAlreadyExists || code == idp.CodeIdempotencyKeyReused:
			// The key is no longer known, or somebody else made the record.
			p.Notes = append(p.Notes, fmt.Sprintf("%s: its secret was made by an apply whose answer was lost, and the "+
				"platform no longer has that answer: %s makes another one", s.Ref, newSecret(s.Kind)))
			answer = nil
		case err != nil:
			return &failure.Error{Code: failure.CodeOf(err, true), Err: fmt.Errorf("%s: %w", s.Ref, err)}
		default:
			if err := made(s, answer); err != nil {
				return err
			}
		}
		p.options.State.put(s.Ref, p.actual.ids[s.Ref], true, a.Values)
		if err := p.options.State.save(ctx); err != nil {
			return err
		}
	}
	return nil
}
