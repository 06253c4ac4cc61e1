package auth

import (
	"context"
	"errors"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Meanwhile is how a verifier learns that the platform's tokens have ended while it is not told.
type Meanwhile struct {
	// Age is how long the verifier has not been told of ended tokens; 0 while it is.
	Age func() time.Duration
	// Active asks whoever knows whether a token is still valid.
	Active func(ctx context.Context, token string) (bool, error)
}

const (
	// unheard is how long a verifier need not be told before it asks: a connection is made anew in less time.
	unheard = 2 * time.Second
	// Grace is how long a verifier accepts tokens about which it asks in vain. Together with MaxCacheTTL it is 30 s.
	Grace = 10 * time.Second
)

// AskMeanwhile makes the verifier ask about the platform's tokens that are not in its cache, while it is not told which
// have ended. If nobody answers for longer than 10 s, Verify fails with apperr.Unavailable.
func (v *Verifier) AskMeanwhile(m Meanwhile) { v.asks.Store(&m) }

func (v *Verifier) ask(ctx context.Context, p *Principal, token string) error {
	m := v.asks.Load()
	if m == nil || p.Issuer != Platform {
		return nil
	}
	age := m.Age()
	if age < unheard {
		return nil
	}
	active, err := m.Active(ctx, token)
	switch {
	case err != nil && age < Grace:
		return nil
	case err != nil:
		return apperr.New(apperr.Unavailable, "whether the token is still valid cannot be found out now").Because(err)
	case !active:
		return refused(errors.New("the token was ended before it expired"))
	}
	return nil
}
