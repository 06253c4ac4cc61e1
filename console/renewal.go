package console

import (
	"context"
	"errors"
	"net/http"

	"github.com/idplatform/idplatform/console/internal/issuer"
	"github.com/idplatform/idplatform/console/internal/session"
	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

const renewalPath = "/console/~/renewal"

// serveRenewal asks the issuer for another token if the session's own ends soon. The page asks when a call was refused,
// one tab at a time, so that a refresh token is sent once even where several replicas run.
func (c *Console) serveRenewal(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		problem.Write(w, apperr.New(apperr.MethodNotAllowed, "the path has only POST"))
		return
	}
	s, ok := c.cookies.Read(r)
	if !ok {
		problem.Write(w, errNobody)
		return
	}
	if s.Due(c.now()) {
		renewed, err := c.renew(r, s)
		if err != nil {
			problem.Write(w, err)
			return
		}
		s = renewed
		if !c.cookies.Write(w, r, s) {
			problem.Write(w, apperr.New(apperr.TooLarge, "the tokens are too large for a session"))
			return
		}
	}
	writeJSON(w, c.aboutSession(r, s, true))
}

// renew returns the session with new tokens. Who it is, and since when, stays.
func (c *Console) renew(r *http.Request, s session.Session) (session.Session, error) {
	if s.Refresh == "" || c.issuer == nil || s.Issuer != c.issuer.Name() {
		return s, errNobody
	}
	return c.renewals.Do(r.Context(), s, func(ctx context.Context, s session.Session) (session.Session, error) {
		tokens, err := c.issuer.Renew(ctx, s.Refresh)
		if errors.Is(err, issuer.ErrRefused) {
			return s, errNobody.Because(err)
		}
		if err != nil {
			return s, apperr.Away("the issuer", err)
		}
		before := s
		c.keep(&s, tokens) // even if the platform is away: the former refresh token may be used up
		if code := c.identify(ctx, r, &s); code != "" && code != platformAway {
			return s, errNobody.Because(errors.New(code))
		}
		if s.Actor != before.Actor || s.Tenant != before.Tenant {
			return s, errNobody.Because(errors.New("the issuer renewed somebody else's token"))
		}
		return s, nil
	})
}
