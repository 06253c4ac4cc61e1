package grant

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
)

// An api resource whose code is a scope of the platform's API gives that scope: who has a rule on it can get tokens
// with it. So only a caller who holds the scope may make such a resource, put it into a set, or write a rule that
// allows it.

// errGives is the error for a caller who lacks a scope.
func errGives(scope string) error {
	return apperr.New(apperr.Forbidden, "this gives the scope %s, which the caller lacks", scope)
}

// lacking are the scopes that the caller lacks; none for work without a request.
func lacking(ctx context.Context) (codes []docstore.Value) {
	caller := auth.PrincipalFrom(ctx)
	if caller == nil {
		return nil
	}
	for _, scope := range auth.AllScopes.List() {
		if !caller.Has(scope) {
			codes = append(codes, docstore.Text(string(scope)))
		}
	}
	return codes
}

// mayGive checks a resource of a type with a code.
func mayGive(ctx context.Context, kind, code string) error {
	caller := auth.PrincipalFrom(ctx)
	if given, _ := auth.ParseScopes(code); caller == nil || kind != engine.API || given.Within(caller.Scopes) {
		return nil
	}
	return errGives(code)
}

// mayGrant checks rules whose resources and sets are resolved. It reads only for those about several resources.
func mayGrant(ctx context.Context, tx *docstore.Tx, profiles []RuleProfile) error {
	var wide []RuleProfile
	for i := range profiles {
		p := &profiles[i]
		switch {
		case p.Affect == Deny || p.Type == typeApp:
		case p.Type == typeWildcard || p.Type == typeSet:
			wide = append(wide, *p)
		default:
			if err := mayGive(ctx, p.Type, p.Code); err != nil {
				return err
			}
		}
	}
	if codes := lacking(ctx); len(codes) > 0 {
		for i := range wide {
			if err := wide[i].mayGrant(ctx, tx, codes); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayGrant checks a rule about several resources against the scopes that the caller lacks.
func (p *RuleProfile) mayGrant(ctx context.Context, tx *docstore.Tx, codes []docstore.Value) error {
	if p.Type == typeSet {
		given, err := members.LoadWhere(ctx, tx, docstore.And(docstore.Eq(bySet, docstore.Text(p.ResourceSetID)),
			docstore.Eq(byResourceType, docstore.Text(engine.API)), docstore.In(byResourceCode, codes...)), "", 1)
		if err != nil || len(given) == 0 {
			return err
		}
		return errGives(given[0].ResourceCode)
	}
	given, err := resources.LoadWhere(ctx, tx, docstore.And(ofApplication(p.ApplicationID, true),
		docstore.Eq(byType, docstore.Text(engine.API)), docstore.In(byCode, codes...)), "", maxGlobal)
	if err != nil {
		return err
	}
	for _, r := range given {
		if p.AllResources == On || engine.Match(p.Code, r.Code) {
			return errGives(r.Code)
		}
	}
	return nil
}
