package oidc

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/attribute"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// maxGroups is how many groups an ID token can have; userinfo has them all.
const maxGroups = 200

// claims are members of an ID token or of the answer of userinfo.
type claims map[string]any

// scopeOf says which scope has a claim (OpenID Connect Core §5.4).
var scopeOf = map[string]string{
	"name": "profile", "given_name": "profile", "family_name": "profile", "middle_name": "profile",
	"preferred_username": "profile", "gender": "profile", "locale": "profile",
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

	SysExtProps json.RawMessage `json:"sys_ext_props"`
}

// addNames adds the parts of the person's name, if a SCIM client has written them (RFC 7643 §4.1.1).
func (u *user) addNames(to claims) {
	var name struct{ GivenName, FamilyName, MiddleName string }
	if json.Unmarshal(attribute.Below(u.SysExtProps, "scim.name"), &name) != nil {
		return // there is none, or it has another form
	}
	to["given_name"], to["family_name"], to["middle_name"] = name.GivenName, name.FamilyName, name.MiddleName
}

// about returns the claims about a person that were granted: by scope, or one by one, and those of the application's
// settings. Claims without a value are left out (OpenID Connect Core §5.3.2). The error is apperr.Unavailable if groups
// are among them, and nobody answers: an application would take none for true.
func (p *Provider) about(
	ctx context.Context, client questions.Client, g *Granted, person protocol.Person, oneByOne map[string]*wantedClaim,
) (claims, error) {
	var attributes []questions.Attribute
	if client.OIDC != nil {
		attributes = client.OIDC.ResponseAttributes
	}
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
	u.addNames(all)
	var groups []string
	_, asked := oneByOne["groups"]
	if asked = asked || g.has("groups"); asked || attribute.TellGroups(attributes) {
		var err error
		if groups, err = p.Groups(ctx, person.UserID); err != nil {
			return nil, err
		}
	}
	if asked {
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
	return granted, granted.add(attributes, g, person, groups)
}

// add adds the claims of an application's settings.
func (c claims) add(attributes []questions.Attribute, g *Granted, person protocol.Person, groups []string) error {
	if len(attributes) == 0 {
		return nil
	}
	record, err := attribute.RecordOf(person)
	if err != nil {
		return err
	}
	person.SubAccount = g.SubAccount
	for _, a := range attributes {
		name := attribute.Name(a)
		switch {
		case questions.IsReservedClaim(name): // stored before names were checked
		case attribute.IsGroups(a):
			c[name] = groups
		default:
			if value := attribute.Value(a, person, record, nil); value != nil {
				c[name] = value
			}
		}
	}
	return nil
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
