package oidc

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// maxGroups is how many groups an ID token can have; userinfo has them all.
const maxGroups = 200

// claims are members of an ID token or of the answer of userinfo.
type claims map[string]any

// scopeOf says which scope has a claim (OpenID Connect Core §5.4).
var scopeOf = map[string]string{
	"name": "profile", "preferred_username": "profile", "gender": "profile", "locale": "profile",
	"zoneinfo": "profile", "picture": "profile", "updated_at": "profile",
	"email": "email", "email_verified": "email",
	"phone_number": "phone", "phone_number_verified": "phone",
	"groups": "groups",
}

// user are the members of a user's record that claims are made of.
type user struct {
	Username       string     `json:"username"`
	DisplayName    string     `json:"display_name"`
	Email          string     `json:"email"`
	Mobile         string     `json:"mobile"`
	Gender         string     `json:"gender"`
	Locale         string     `json:"locale"`
	Zoneinfo       string     `json:"zoneinfo"`
	AvatarURL      string     `json:"avatar_url"`
	EmailVerified  bool       `json:"email_verified"`
	MobileVerified bool       `json:"mobile_verified"`
	TimeModified   clock.Time `json:"time_modified"`
}

// about returns the claims about a person that were granted: by scope, or one by one. Those without a value are left
// out (OpenID Connect Core §5.3.2). The error is apperr.Unavailable if the groups were granted, and nobody answers: an
// application would take none for true.
func (p *Provider) about(
	ctx context.Context, g *Granted, person protocol.Person, oneByOne map[string]*wantedClaim,
) (claims, error) {
	var u user
	if err := json.Unmarshal(person.User, &u); err != nil {
		return nil, err
	}
	all := claims{
		"name": u.DisplayName, "preferred_username": u.Username, "gender": u.Gender, "locale": u.Locale,
		"zoneinfo": u.Zoneinfo, "updated_at": seconds(u.TimeModified),
		"email": u.Email, "phone_number": u.Mobile,
	}
	if strings.HasPrefix(u.AvatarURL, "https://") { // a path needs a credential that applications do not have
		all["picture"] = u.AvatarURL
	}
	if u.Email != "" {
		all["email_verified"] = u.EmailVerified
	}
	if u.Mobile != "" {
		all["phone_number_verified"] = u.MobileVerified
	}
	if _, asked := oneByOne["groups"]; asked || g.has("groups") {
		groups, err := p.Groups(ctx, person.UserID)
		if err != nil {
			return nil, err
		}
		all["groups"] = groups
	}
	granted := claims{}
	for name, value := range all {
		_, asked := oneByOne[name]
		if (asked || g.has(scopeOf[name])) && value != "" {
			granted[name] = value
		}
	}
	if g.SubAccount != nil {
		granted["sub_account"] = g.SubAccount
		if g.has("profile") || slices.Contains(names(oneByOne), "preferred_username") {
			granted["preferred_username"] = g.SubAccount.Account
		}
	}
	return granted, nil
}

func names(asked map[string]*wantedClaim) (list []string) {
	for name := range asked {
		list = append(list, name)
	}
	return list
}

// ofIDToken and ofUserInfo are the claims that were asked for one by one.
func (g *Granted) ofIDToken() map[string]*wantedClaim {
	if g.Claims == nil {
		return nil
	}
	return g.Claims.IDToken
}

func (g *Granted) ofUserInfo() map[string]*wantedClaim {
	if g.Claims == nil {
		return nil
	}
	return g.Claims.UserInfo
}

func seconds(t clock.Time) int64 { return t.Millis() / 1000 }

func joined(list []string) string { return strings.Join(list, " ") }
