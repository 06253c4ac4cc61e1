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

// Ticket is a callback token, with which a worker reports without a credential; "" if the caller has a credential. It
// is valid for one attempt of a sub-job: <tenant>.<attempt>.<seal>, where the keyring's seal is bound to the tenant,
// the attempt and the sub-job. So it need not be stored, and every replica can check it.
type Ticket string

func newTicket(keys *secret.Keyring, tenant, id string, attempt int64) Ticket {
	number := strconv.FormatInt(attempt, 10)
	return Ticket(tenant + "." + number + "." + keys.Seal(nil, ticketData(tenant, id, number)))
}

// ticketData is what the seal of a ticket is bound to.
func ticketData(tenant, id, attempt string) []byte {
	return []byte("callback/" + tenant + "/" + id + "/" + attempt)
}

// Context returns a context of the tenant that the token names. Whether the token is valid is checked later, by admit.
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

// errOver refuses a report about an attempt that is not the current one: the run has ended, or another replica or
// worker has it.
var errOver = apperr.New(apperr.InvalidState, "the attempt is over")

var errTicket = apperr.New(apperr.Unauthenticated, "the callback token is not valid for this sub-job")

// attempt returns the attempt of the sub-job that the token is valid for. The error is errTicket.
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

// TicketTenant checks that a callback token was made for a sub-job, and returns its tenant. Whether its attempt is the
// current one is checked later. The error is apperr.Unauthenticated.
func (s *Jobs) TicketTenant(ticket, subJob string) (string, error) {
	tenant, _, _ := strings.Cut(ticket, ".")
	if tenant == "" || tenant == request.Platform {
		return "", errTicket
	}
	_, err := Ticket(ticket).attempt(s.Keys, tenant, subJob)
	return tenant, err
}

// admit checks that the token, if there is one, is for the current attempt of the sub-job. The error is errTicket for a
// wrong token, and errOver for one of an earlier attempt.
func (s *Jobs) admit(ctx context.Context, tx *docstore.Tx, t Ticket, id string) error {
	if t == "" {
		return nil
	}
	attempt, err := t.attempt(s.Keys, request.Tenant(ctx), id)
	if err != nil {
		return err
	}
	found, err := runs.LoadMany(ctx, tx, []string{id})
	if err != nil {
		return err
	}
	if len(found) == 0 || found[0].Attempt != attempt || found[0].Phase == ready {
		return errOver
	}
	return nil
}

// workerContext returns the context of a worker's request. The error is errTicket if t cannot be a token, and else that
// of the faults.
func (s *Jobs) workerContext(ctx context.Context, t Ticket, faults *apperr.Faults) (context.Context, error) {
	ctx, err := t.Context(ctx)
	if err != nil {
		return ctx, err
	}
	return ctx, faults.Err()
}
