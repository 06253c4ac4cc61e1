package rest_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
)

// admitted is the answer of the operation below.
type admitted struct {
	Tenant string `json:"tenant"`
}

func registerTicket(s *rest.Server, _ service.Deps) {
	rest.Handle(s, rest.Op{
		ID: "report", Method: http.MethodPost, Path: "/v1/reports", Scope: auth.UsersWrite, Ticket: "X-Ticket",
		Summary: "Report",
	}, func(ctx context.Context, in *struct {
		Ticket string `header:"X-Ticket"`
	}) (admitted, error) {
		if in.Ticket == "wrong" {
			return admitted{}, apperr.New(apperr.Unauthenticated, "the ticket is not valid")
		}
		return admitted{request.Tenant(ctx)}, nil
	})
}

// A ticket replaces the credential: the operation alone decides about it, and sees no tenant.
func TestTickets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, registerTicket)
	report := func(ticket string) admitted {
		var a admitted
		w.Stranger().With("X-Ticket", ticket).Post("/v1/reports", nil).OK(&a)
		return a
	}
	require.Equal(t, admitted{}, report("right"))
	w.Stranger().With("X-Ticket", "wrong").Post("/v1/reports", nil).
		Problem(http.StatusUnauthorized, "unauthenticated")
	w.Stranger().Post("/v1/reports", nil).Problem(http.StatusUnauthorized, "unauthenticated")
	w.As("acme", auth.UsersRead).Post("/v1/reports", nil).Problem(http.StatusForbidden, "forbidden")
	var a admitted
	w.client().Post("/v1/reports", nil).OK(&a)
	require.Equal(t, "acme", a.Tenant)

	// Callers with a ticket cannot be told apart, so an Idempotency-Key has no effect.
	keyed := w.Stranger().With("X-Ticket", "right").With("Idempotency-Key", "k")
	require.Empty(t, keyed.Post("/v1/reports", nil).OK(nil).Header.Get("Idempotent-Replayed"))
	require.Empty(t, keyed.Post("/v1/reports", nil).OK(nil).Header.Get("Idempotent-Replayed"))
	w.Stranger().With("X-Ticket", "right").Get("/v1/things").Problem(http.StatusUnauthorized, "unauthenticated")
}
