package flow

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/factor"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// WhatIsDue answers questions.WhatIsDue: what is due to somebody who has shown a password to a program of the tenant,
// and perhaps a code. Conditions know neither the address nor the browser. The error is apperr.NotFound or Unavailable.
func (e *Engine) WhatIsDue(ctx context.Context, q questions.SecondStep) (questions.Due, error) {
	view := View{Flow: Begin(protocol.Request{AppID: q.AppID})}
	if err := e.loadClient(ctx, &view); err != nil {
		return questions.Due{}, err
	}
	if view.Kind == Unknown {
		return questions.Due{}, apperr.Missing("application")
	}
	user, err := person.Parse(orNull(q.User))
	if err != nil {
		return questions.Due{}, err
	}
	who := subject{
		userID: q.UserID, user: user,
		proofs: []proof.Proof{proof.ByPassword(e.Store.Now(), user.TimePasswordChanged)},
	}
	if q.Code != "" {
		tried, err := e.Factors.TryApp(ctx, q.UserID, q.Code, factor.From{})
		switch {
		case err != nil:
			return questions.Due{}, err
		case tried.Blocked:
			return questions.Due{Refused: questions.CodesBlocked}, nil
		case tried.Proof == nil:
			return questions.Due{Refused: questions.InvalidCode}, nil
		}
		who.proofs = append(who.proofs, *tried.Proof)
	}
	if len(view.Methods) > 0 { // nobody can enter
		return questions.Due{Required: true}, nil
	}
	next, err := e.next(ctx, &view, &who)
	if err != nil {
		return questions.Due{}, err
	}
	if len(who.begins) > 0 { // days of grace begin here, too
		err = docstore.Do(ctx, e.Store, func(tx *docstore.Tx) error {
			return factor.BeginGrace(ctx, tx, q.UserID, who.begins)
		})
	}
	return questions.Due{
		Required: !next.Done() && len(next.Offer) == 0,
		Methods: slices.DeleteFunc(next.Show, func(m string) bool {
			return !proof.IsFactor(m) || m == proof.RecoveryCode
		}),
	}, err
}
