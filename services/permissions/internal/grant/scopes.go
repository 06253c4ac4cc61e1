package grant

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/permissions/internal/engine"
)

// An api resource whose code is a scope of the platform's API gives that scope: who has a rule on it can get tokens
// with it. So only a caller who holds the scope may make such a resource, put it into a set, write a rule that allows
// it, add people to a group that has such a rule, or give the rules of a unit to another identity.

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

// mayGain checks that the caller holds all scopes that the rules of a unit give. apperr.Forbidden or Unavailable.
func (s *Grants) mayGain(ctx context.Context, unitID string) error {
	if len(lacking(ctx)) == 0 {
		return nil
	}
	given, err := s.Scopes(ctx, unitID)
	if scope := given.Lacking(ctx); err == nil && scope != "" {
		err = errGives(string(scope))
	}
	return err
}

// mayGive checks a resource of a type with a code.
func mayGive(ctx context.Context, kind, code string) error {
	caller := auth.PrincipalFrom(ctx)
	if given, _ := auth.ParseScopes(code); caller == nil || kind != engine.API || given.Within(caller.Scopes) {
		return nil
	}
	return errGives(code)
}

// mayGrant checks rules whose resources and sets are resolved. It reads at most twice, and only for rules about several
// resources. apperr.Forbidden, or InvalidParameters if more than maxGlobal resources must be read.
func mayGrant(ctx context.Context, tx *docstore.Tx, profiles []RuleProfile) error {
	var sets []docstore.Value
	var patterns []*RuleProfile
	for i := range profiles {
		p := &profiles[i]
		switch {
		case p.Affect == Deny || p.Type == typeApp:
		case p.Type == typeSet:
			sets = append(sets, docstore.Text(p.ResourceSetID))
		case p.Type == typeWildcard:
			patterns = append(patterns, p)
		default:
			if err := mayGive(ctx, p.Type, p.Code); err != nil {
				return err
			}
		}
	}
	codes := lacking(ctx)
	if len(codes) == 0 {
		return nil
	}
	if err := noneInSets(ctx, tx, sets, codes); err != nil {
		return err
	}
	return noneMatches(ctx, tx, patterns, codes)
}

// noneInSets checks that no api resource with one of the codes is in one of the sets.
func noneInSets(ctx context.Context, tx *docstore.Tx, sets, codes []docstore.Value) error {
	if len(sets) == 0 {
		return nil
	}
	given, err := members.LoadWhere(ctx, tx, docstore.And(docstore.In(bySet, sets...),
		docstore.Eq(byResourceType, docstore.Text(engine.API)), docstore.In(byResourceCode, codes...)), "", 1)
	if err != nil || len(given) == 0 {
		return err
	}
	return errGives(given[0].ResourceCode)
}

// noneMatches checks that no api resource with one of the codes is one that the patterns match.
func noneMatches(ctx context.Context, tx *docstore.Tx, patterns []*RuleProfile, codes []docstore.Value) error {
	if len(patterns) == 0 {
		return nil
	}
	applications := make([]docstore.Value, len(patterns))
	for i, p := range patterns {
		applications[i] = docstore.Text(p.ApplicationID)
	}
	reached := docstore.Or(docstore.In(byApplication, applications...), docstore.Eq(byGlobal, docstore.Text(On)))
	given, err := resources.LoadWhere(ctx, tx, docstore.And(docstore.Eq(byType, docstore.Text(engine.API)),
		docstore.In(byCode, codes...), reached), "", maxGlobal+1)
	if err != nil {
		return err
	}
	if len(given) > maxGlobal {
		return apperr.New(apperr.InvalidParameters, "more than %d api resources have codes of scopes that the caller "+
			"lacks: grant in several requests", maxGlobal)
	}
	for _, r := range given {
		for _, p := range patterns {
			if (r.ApplicationID == p.ApplicationID || r.IsGlobal == On) &&
				(p.AllResources == On || engine.Match(p.Code, r.Code)) {
				return errGives(r.Code)
			}
		}
	}
	return nil
}
