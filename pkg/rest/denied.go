package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
)

// Denial is a write that was refused because of the credential.
type Denial struct {
	Tenant    string // the credential's; "" if there is no valid one
	Actor     string // see auth.Principal; "" if there is no valid one
	Address   string // the client's; "" if it is not known. See Sender
	Operation string
	Record    string // the id of the record that the request named; "" if it named none
	Reason    string // the kind of the refusal and its sentence
	RequestID string
}

// noteDenied reports a refused write to Config.Denied.
func (s *Server) noteDenied(ctx context.Context, op *Op, r *http.Request, err error) {
	refused, ok := errors.AsType[*apperr.Error](err)
	if s.cfg.Denied == nil || !op.writes() || !ok ||
		refused.Kind != apperr.Unauthenticated && refused.Kind != apperr.Forbidden {
		return
	}
	info, address := request.From(ctx), ""
	if addr := s.cfg.Forwarded.Client(r); addr.IsValid() {
		address = addr.String()
	}
	s.cfg.Denied(Denial{
		Tenant: info.Tenant, Actor: info.Actor, Address: address, Operation: op.ID,
		Reason: string(refused.Kind) + ": " + refused.Detail, Record: op.recordOf(r), RequestID: info.ID,
	})
}

// recordOf returns the last id in a request's path, "" if the path has none.
func (op *Op) recordOf(r *http.Request) string {
	sent := strings.Split(r.URL.Path, "/")
	for i, segment := range slices.Backward(strings.Split(op.Path, "/")) {
		if strings.HasPrefix(segment, "{") && i < len(sent) && len(sent[i]) <= maxRecord {
			return sent[i]
		}
	}
	return ""
}

const maxRecord = 64 // bytes
