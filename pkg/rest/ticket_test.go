package rest_test

import (
	"context"
	"net/http"
	"strings"
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
		ID: "report", Method: http.MethodPost, Path: "/v1/reports", Scope: auth.UsersWrite, CallbackToken: "X-Ticket",
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

	// The operation does not say whose ticket it is, so an Idempotency-Key has no effect.
	keyed := w.Stranger().With("X-Ticket", "right").With("Idempotency-Key", "k")
	require.Empty(t, keyed.Post("/v1/reports", nil).OK(nil).Header.Get("Idempotent-Replayed"))
	require.Empty(t, keyed.Post("/v1/reports", nil).OK(nil).Header.Get("Idempotent-Replayed"))
	w.Stranger().With("X-Ticket", "right").Get("/v1/things").Problem(http.StatusUnauthorized, "unauthenticated")
}

// If the operation says whose a ticket is, an Idempotency-Key counts for that ticket.
func TestKeysWithTickets(t *testing.T) {
	t.Parallel()
	made := 0
	w := newWorld(t, func(s *rest.Server, _ service.Deps) {
		rest.Handle(s, rest.Op{
			ID: "report", Method: http.MethodPost, Path: "/v1/reports/{id}", Scope: auth.UsersWrite,
			CallbackToken: "X-Ticket",
			Summary:       "Report", CallbackTenant: func(ticket, record string) (string, error) {
				tenant, of, _ := strings.Cut(ticket, ".")
				if !strings.HasPrefix(of, record) {
					return "", apperr.New(apperr.Unauthenticated, "the ticket is not valid")
				}
				return tenant, nil
			},
		}, func(context.Context, *struct {
			rest.ByID
			Ticket string `header:"X-Ticket"`
		}) (map[string]int, error) {
			made++
			return map[string]int{"made": made}, nil
		})
	})
	post := func(ticket, key string) (answer map[string]int, replayed string) {
		a := w.Stranger().With("X-Ticket", ticket).With("Idempotency-Key", key).Post("/v1/reports/7", nil)
		a.OK(&answer)
		return answer, a.Header.Get("Idempotent-Replayed")
	}
	for _, row := range []struct {
		ticket, key string
		made        int
		replayed    string
	}{
		{"acme.7", "k", 1, ""}, {"acme.7", "k", 1, "true"}, {"acme.7", "other", 2, ""}, {"acme.7b", "k", 3, ""},
		{"globex.7", "k", 4, ""}, {"acme.7", "k", 1, "true"},
	} {
		answer, replayed := post(row.ticket, row.key)
		require.Equal(t, map[string]int{"made": row.made}, answer, row)
		require.Equal(t, row.replayed, replayed, row)
	}
	w.Stranger().With("X-Ticket", "acme.8").With("Idempotency-Key", "k").Post("/v1/reports/7", nil).
		Problem(http.StatusUnauthorized, "unauthenticated")
}
