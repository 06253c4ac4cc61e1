package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/factor"
)

// RecoveryCodes are new recovery codes of a user.
type RecoveryCodes struct {
	Codes []string `json:"codes" doc:"Each works once. They are shown only here" example:"[\"BCDF-GHJK-MN\"]"`
}

type recoveryCodesInput struct {
	ID string `path:"id" doc:"The user" example:"1048577"`
}

func (a *api) registerFactors(s *rest.Server) {
	factors := rest.Resource[factor.Factor, factor.Factor, factor.Filter]{
		Server: s, ID: "factor", One: "a factor", Many: "factors", Path: "/v1/factors",
		Read: auth.SignInRead, Write: auth.UsersSecrets,
	}
	factors.List(rest.Op{
		Doc: "People set up factors themselves, at a sign-in or on their own page. No answer has a factor's secret.",
	}, a.Factors.List)
	factors.Get(rest.Op{}, a.Factors.Get)
	factors.Delete(rest.Op{
		Doc: "For somebody who has lost it. Sessions and tokens that rest on it end. With a user's last factor go " +
			"the recovery codes, and the user signs in with the password alone, or sets up another where an " +
			"application demands one.",
	}, func(ctx context.Context, id string) (rest.Deleted, error) { return a.Factors.Delete(ctx, id, "") })
	rest.Handle(s, rest.Op{
		ID: "renew-recovery-codes", Method: http.MethodPost, Path: "/v1/users/{id}/recovery-codes",
		Scope: auth.UsersSecrets, IfMatchParam: rest.NoRecord,
		Summary: "Give a user new recovery codes", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "For somebody who has lost a factor and the codes. The former codes end, and the sessions that began " +
			"with one. The error `invalid_state` says that the user has no second factor.",
		Response: map[string]any{"codes": []string{"BCDF-GHJK-MN"}},
	}, func(ctx context.Context, in *recoveryCodesInput) (RecoveryCodes, error) {
		codes, err := a.Factors.NewCodes(ctx, in.ID, factor.From{})
		return RecoveryCodes{codes}, err
	})
}
