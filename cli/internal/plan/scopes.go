package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/operations"
)

// administrator is the scope that covers all others.
const administrator = "platform:admin"

// scopes are what the caller may do. They are asked for when the platform refuses something for the first time.
type scopes struct {
	known bool
	has   []string
}

func (s *scopes) read(ctx context.Context, platform Platform) error {
	if s.known {
		return nil
	}
	var who struct {
		Scopes []string `json:"scopes"`
	}
	err := platform.Get(ctx, "/v1/oauth2/whoami", nil, &who)
	s.known, s.has = err == nil, who.Scopes
	return err
}

// lacks is the scope that an operation needs and the caller does not have, as far as that is known; "" if none.
func (s *scopes) lacks(operation string) string {
	scope := operations.CompiledIn().Find(operation).Scope
	if !s.known || scope == "" || slices.Contains(s.has, scope) || slices.Contains(s.has, administrator) {
		return ""
	}
	return scope
}

// withoutScope marks steps that the caller may not even try.
func (b batch) withoutScope(scope string) {
	for _, s := range b {
		s.Scope = scope
	}
}

// NotAllowed is the error of a plan with steps that the caller may not do; nil if there are none.
func (p *Plan) NotAllowed() error {
	count, missing := 0, []string{}
	for _, s := range p.Steps {
		if s.Scope != "" {
			count++
			missing = append(missing, s.Scope)
		}
	}
	if count == 0 {
		return nil
	}
	slices.Sort(missing)
	return &failure.Error{Code: failure.NotAllowed, Err: fmt.Errorf("%d of these steps need scopes that the caller "+
		"lacks: %s", count, strings.Join(slices.Compact(missing), ", "))}
}
