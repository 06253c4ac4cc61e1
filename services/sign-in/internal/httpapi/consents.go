package httpapi

import (
	"context"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/consent"
)

func (a *api) registerConsents(s *rest.Server) {
	rest.Named[consent.Consent](s, "GivenConsent")
	consents := rest.Resource[consent.Consent, consent.Consent, consent.Filter]{
		Server: s, ID: "consent", One: "a consent", Many: "consents", Path: "/v1/consents",
		Read: auth.SignInRead, Write: auth.SignInWrite,
	}
	consents.List(rest.Op{}, a.Consents.List)
	consents.Get(rest.Op{}, a.Consents.Get)
	consents.Delete(rest.Op{
		Summary: "Withdraw a consent",
		Doc:     "The person is asked again, and refresh tokens that the application has end.",
	}, func(ctx context.Context, id string) (rest.Deleted, error) {
		return a.Consents.Withdraw(ctx, id, "", consent.From{})
	})
}
