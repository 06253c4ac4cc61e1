package job

import (
	"context"
	"strconv"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
)

// Ticket is a callback token with which a worker reports without another credential; "" if it has one. It is good for
// one attempt of a sub-job: <tenant>.<attempt>.<seal>, where the keyring's seal is bound to both and to the sub-job. So
// nothing of it is stored, and every replica can check it.
type Ticket string

func newTicket(keys *secret.Keyring, tenant, id string, attempt int64) Ticket {
	number := strconv.FormatInt(attempt, 10)
	return Ticket(tenant + "." + number + "." + keys.Seal(nil, ticketData(tenant, id, number)))
}

// ticketData is what the seal of a ticket is bound to.
func ticketData(tenant, id, attempt string) []byte {
	return []byte("callback/" + tenant + "/" + id + "/" + attempt)
}

// Context returns a context of the tenant that the token says. Whether the token is valid is checked later, by admit.
// The error is apperr.Unauthenticated.
func (t Ticket) Context(ctx context.Context) (context.Context, error) {
	if t == "" {
		return ctx, nil
	}
	tenant, _, ok := strings.Cut(string(t), ".")
	if !ok || tenant == "" || tenant == request.Platform {
		return nil, errTicket
	}
	return request.System(ctx, tenant), nil
}

var errTicket = apperr.New(apperr.Unauthenticated, "the callback token is not valid here")

// attempt returns the attempt that a token of the sub-job is good for. The error is errTicket.
func (t Ticket) attempt(keys *secret.Keyring, tenant, id string) (int64, error) {
	rest, ours := strings.CutPrefix(string(t), tenant+".")
	number, seal, _ := strings.Cut(rest, ".")
	attempt, err := strconv.ParseInt(number, 10, 64)
	if !ours || err != nil {
		return 0, errTicket
	}
	if _, err := keys.Open(seal, ticketData(tenant, id, number)); err != nil {
		return 0, errTicket
	}
	return attempt, nil
}

// admit checks that the token, if there is one, is the sub-job's and current. The error is apperr.Unauthenticated for a
// wrong token, and errOver for that of an earlier attempt.
func (s *Jobs) admit(ctx context.Context, tx *docstore.Tx, t Ticket, id string) error {
	if t == "" {
		return nil
	}
	attempt, err := t.attempt(s.Keys, request.Tenant(ctx), id)
	if err != nil {
		return err
	}
	left, err := runs.LoadMany(ctx, tx, []string{id})
	if err != nil {
		return err
	}
	if len(left) == 0 || left[0].Attempt != attempt || left[0].Phase == ready {
		return errOver
	}
	return nil
}

// enter makes the context of a worker's call. Faults are told only to callers with a credential.
func (s *Jobs) enter(ctx context.Context, t Ticket, faults *apperr.Faults) (context.Context, error) {
	ctx, err := t.Context(ctx)
	if err != nil {
		return ctx, err
	}
	return ctx, faults.Err()
}
