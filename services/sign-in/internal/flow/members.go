package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/questions/claimmapping"
	"github.com/idplatform/idplatform/services/sign-in/internal/federation"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
)

// updateAlways is the value of sourcePolicy.Update with which users get their mapped members at each sign-in.
const updateAlways = "always"

// members are those of a user that are made of what a provider tells: by the mapping of the source, and otherwise by
// the usual claims. Names and addresses that are not the person's are left out.
func (s *Source) members(ctx context.Context, who federation.Identity) (map[string]string, error) {
	members := map[string]string{
		"username": who.Username, "display_name": who.DisplayName, "email": who.Email,
	}
	mapped, err := s.policy.ClaimMapping.Apply(ctx, who.Claims)
	if err != nil {
		return nil, err
	}
	for member := range s.policy.ClaimMapping {
		delete(members, member)
	}
	for member, value := range mapped {
		members[member] = value
	}
	if !s.mayHaveAddress(members["email"], who) {
		delete(members, "email")
	}
	_, isMapped := mapped["username"]
	if !s.mayHaveName(members["username"], isMapped, who) {
		members["username"] = members["email"]
	}
	for member, value := range members {
		if value == "" {
			delete(members, member)
		}
	}
	return members, nil
}

// mayHaveAddress reports whether an address is the person's: the provider has verified it, or is trusted for its
// domain.
func (s *Source) mayHaveAddress(address string, who federation.Identity) bool {
	return address == who.Email || s.trustsDomainOf(address)
}

// mayHaveName reports whether a name is the person's. One that looks like an address is so only if the provider has
// verified it, or if it is mapped and the provider is trusted for its domain: nobody gets that of somebody else.
func (s *Source) mayHaveName(name string, isMapped bool, who federation.Identity) bool {
	return name != "" && (!strings.Contains(norm.NFKC.String(name), "@") || name == who.Email ||
		isMapped && s.trustsDomainOf(name))
}

// hasVerified reports whether an address counts as verified here: the provider has verified it, and is trusted for its
// domain.
func (s *Source) hasVerified(address string, who federation.Identity) bool {
	return address != "" && address == who.Email && s.trustsDomainOf(address)
}

// creates reports whether somebody whom no user is linked to becomes a user. Where domains are trusted, the person must
// be of one of them: by an address that the provider has verified, or by a name that is mapped.
func (s *Source) creates(members map[string]string, who federation.Identity) bool {
	known := len(s.policy.Domains) == 0 || s.trustsDomainOf(who.Email) || s.trustsDomainOf(members["username"])
	return s.policy.Create == "1" && known && members["username"] != ""
}

// createUser makes the user who signs in by an identity from then on. If their names are taken, or the identity is
// linked meanwhile, the answer is FindLinked's. The error may be errTooMany.
func (e *Engine) createUser(ctx context.Context, s *Source, in questions.ForeignIdentity, members map[string]string,
	who federation.Identity, v Visitor,
) (questions.Linked, error) {
	if address := keysOf(ctx, "", v).address; address != "" && e.creates.Take(address) != 0 {
		return questions.Linked{}, errTooMany
	}
	number, err := strconv.ParseInt(in.ConnectionID, 10, 64)
	if err != nil {
		return questions.Linked{}, err
	}
	profile := claimmapping.Profile(members)
	profile["email_verified"] = s.hasVerified(members["email"], who)
	_, err = e.changeUser(ctx, questions.UserChange{
		Action: questions.CreateUser, Unique: true, NodeID: s.policy.NodeID,
		Credential: &questions.UserCredential{ProviderCode: in.ProviderCode, IDPConfigID: number, ID1: in.Subject},
	}, profile, apperr.InvalidParameters)
	if err != nil && !refusedLink(err) {
		return questions.Linked{}, err
	}
	return questions.FindLinked.Ask(ctx, e.Bus, in)
}

// changeUser asks for a change of a user. If it is refused because of members of the profile that are not needed, for a
// reason of some kinds, it asks again without them.
func (e *Engine) changeUser(ctx context.Context, c questions.UserChange, profile map[string]any, kinds ...apperr.Kind,
) (questions.UserState, error) {
	for {
		text, err := json.Marshal(profile)
		if err != nil {
			return questions.UserState{}, err
		}
		c.ID, c.Profile = secret.Token(idBytes), text
		state, err := questions.ChangeUser.Ask(ctx, e.Bus, c)
		if err == nil || !dropRefused(profile, err, kinds) || len(profile) == 0 {
			return state, err
		}
		e.Log.WarnContext(ctx, "members that another provider tells of a user are refused", "user", c.UserID,
			"error", short(err))
	}
}

// dropRefused removes the members of a profile that an error is about, and reports whether there were any.
func dropRefused(profile map[string]any, err error, kinds []apperr.Kind) (dropped bool) {
	refusal, ok := errors.AsType[*apperr.Error](err)
	if !ok {
		return false
	}
	for _, kind := range kinds {
		if refusal.Kind != kind {
			continue
		}
		for _, fault := range refusal.Faults {
			member, _, _ := strings.Cut(strings.TrimPrefix(fault.Location, "body."), ".")
			if _, has := profile[member]; has && member != "username" {
				delete(profile, member)
				dropped = true
				if member == "email" { // else it would be about the present one
					delete(profile, "email_verified")
				}
			}
		}
	}
	return dropped
}

// updateUser gives a user the mapped members, but for the username and those that a provisioning connection manages.
// It returns the user as of then. An address is changed only to one that counts as verified.
func (e *Engine) updateUser(ctx context.Context, s *Source, in questions.SignedIn, members map[string]string,
	who federation.Identity, v Visitor,
) (questions.SignedIn, error) {
	wanted := map[string]any{}
	for member := range s.policy.ClaimMapping {
		value, has := members[member]
		switch {
		case !has || member == "username" || member == "email" && !s.hasVerified(value, who):
			continue
		case member == "email":
			wanted["email_verified"] = true
		}
		wanted[member] = value
	}
	for range 2 { // a new address is not verified at once, whatever the change says
		user, err := person.Parse(in.User)
		if err != nil {
			return in, err
		}
		profile, version, err := changes(in.User, wanted)
		if err != nil || len(profile) == 0 {
			return in, err
		}
		state, err := e.changeUser(As(ctx, v.Issuer, user.ID), questions.UserChange{
			UserID: user.ID, Version: version, Action: questions.UpdateUser, Unique: true,
		}, profile, apperr.InvalidParameters, apperr.AlreadyExists)
		switch {
		case refusedLink(err) || apperr.KindOf(err) == apperr.VersionMismatch: // changed or deleted meanwhile
			return in, nil
		case err != nil:
			return in, err
		}
		in = questions.SignedIn(state)
		if profile["email"] == nil {
			break
		}
	}
	return in, nil
}

// changes is a change of a profile to what is wanted, without the members that have the value already, and those that
// a provisioning connection manages. It is for a version of the record.
func changes(record json.RawMessage, wanted map[string]any) (profile map[string]any, version int64, err error) {
	var is map[string]any
	var of struct {
		Version   int64               `json:"version"`
		ManagedBy questions.ManagedBy `json:"managed_by"`
	}
	if err := cmp.Or(json.Unmarshal(record, &is), json.Unmarshal(record, &of)); err != nil {
		return nil, 0, err
	}
	props, _ := is["sys_ext_props"].(map[string]any)
	differing, verified := map[string]string{}, false
	for member, value := range wanted {
		present := is[member]
		if prop, ok := strings.CutPrefix(member, claimmapping.Props); ok {
			present = props[prop]
		}
		if present == value || slices.Contains(of.ManagedBy.Members, member) {
			continue
		}
		if text, ok := value.(string); ok {
			differing[member] = text
		} else {
			verified = true
		}
	}
	profile = claimmapping.Profile(differing)
	if verified && (is["email"] == wanted["email"] || profile["email"] != nil) {
		profile["email_verified"] = true
	}
	return profile, of.Version, nil
}
