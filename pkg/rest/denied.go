package rest

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
)

// Denial is a write that was refused because of the credential.
type Denial struct {
	Tenant    string // the credential's; "" if there is no valid one
	Actor     string // the token's subject; "" if there is no valid one
	Address   string // the client's; "" if it is not known. See Sender
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
	info, address := request.From(ctx), ""
	if addr := addressOf(r); addr.IsValid() {
		address = addr.String()
	}
	s.cfg.Denied(Denial{
		Tenant: info.Tenant, Actor: info.Actor, Address: address, Operation: op.ID,
		Reason: string(refused.Kind) + ": " + refused.Detail,
	})
}

// addressOf returns the client's address: the one in X-Forwarded-For, which the gateway sets and clients cannot, or
// that of the connection. It is invalid if there is neither.
func addressOf(r *http.Request) netip.Addr {
	forwarded, _, _ := strings.Cut(r.Header.Get("X-Forwarded-For"), ",")
	if addr, err := netip.ParseAddr(strings.TrimSpace(forwarded)); err == nil {
		return addr.Unmap()
	}
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap()
}
