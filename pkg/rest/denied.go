package rest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
)

// Denial is a write that was refused because of the credential.
type Denial struct {
	Tenant    string // the credential's; "" if there is no valid one
	Actor     string // the token's subject; "" if there is no valid one
	Address   string // the client's, as the gateway saw it
	Operation string
	Reason    string // the kind of the refusal and its sentence
}

// noteDenied reports a refused write to Config.Denied.
func (s *Server) noteDenied(ctx context.Context, op *Op, r *http.Request, err error) {
	refused, ok := errors.AsType[*apperr.Error](err)
	if s.cfg.Denied == nil || !op.writes() || !ok ||
		refused.Kind != apperr.Unauthenticated && refused.Kind != apperr.Forbidden {
		return
	}
	info := request.From(ctx)
	s.cfg.Denied(Denial{
		Tenant: info.Tenant, Actor: info.Actor, Address: addressOf(r), Operation: op.ID,
		Reason: string(refused.Kind) + ": " + refused.Detail,
	})
}

// addressOf is the client's address. The gateway replaces what a client says of X-Forwarded-For.
func addressOf(r *http.Request) string {
	forwarded, _, _ := strings.Cut(r.Header.Get("X-Forwarded-For"), ",")
	if ip := net.ParseIP(strings.TrimSpace(forwarded)); ip != nil {
		return ip.String()
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || net.ParseIP(host) == nil {
		return ""
	}
	return host
}
