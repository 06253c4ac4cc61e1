package signin_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/questions"
)

// policyOf is a policy with a mapping.
func policyOf(mapping map[string]string, more object) string {
	policy := object{"create": "1", "claim_mapping": mapping}
	maps.Copy(policy, more)
	text, _ := json.Marshal(policy)
	return string(text)
}

// A user is made of what the provider tells, as the mapping says.
func TestMembersOfCreatedUsers(t *testing.T) {
	t.Parallel()
	trusts := object{"domains": []string{"acme.test"}}
	for name, c := range map[string]struct {
		mapping map[string]string
		more    object
		claims  object
		info    object
		want    object // of the profile; nil: nobody is created
	}{
		"expressions and further members": {
			mapping: map[string]string{
				"username": "uid", "display_name": `claims.given_name + " " + claims.family_name`,
				"sys_ext_props.department": "dept", "sys_ext_props.level": "level", "gender": "unknown",
			},
			claims: object{"uid": "wei", "given_name": "Wei", "family_name": "Li", "dept": "R&D", "level": 3},
			want: object{
				"username": "wei", "display_name": "Wei Li", "email_verified": false,
				"sys_ext_props": object{"department": "R&D", "level": "3"},
			},
		},
		"claims of userinfo": {
			mapping: map[string]string{"username": "uid", "mobile": "phone_number"},
			claims:  object{"uid": "wei", "name": "Wei", "email": "wei@x.test", "email_verified": true},
			info:    object{"sub": "new", "uid": "other", "phone_number": "+8613800000000"},
			want: object{
				"username": "wei", "display_name": "Wei", "email": "wei@x.test", "email_verified": false,
				"mobile": "+8613800000000",
			},
		},
		"a name that is somebody's address": {
			mapping: map[string]string{"username": "upn"}, claims: object{"upn": "ceo@acme.test"},
		},
		"a name that is an address of a trusted domain": {
			mapping: map[string]string{"username": "upn"}, more: trusts, claims: object{"upn": "wei@acme.test"},
			want: object{"username": "wei@acme.test", "email_verified": false},
		},
		"an address that is not verified": {
			mapping: map[string]string{"username": "uid", "email": "mail"},
			claims:  object{"uid": "wei", "mail": "ceo@acme.test"},
			want:    object{"username": "wei", "email_verified": false},
		},
		"an address of a trusted domain that is not verified": {
			mapping: map[string]string{"username": "upn", "email": "upn"}, more: trusts,
			claims: object{"upn": "wei@acme.test", "email": "x@acme.test", "email_verified": true},
			want:   object{"username": "wei@acme.test", "email": "wei@acme.test", "email_verified": false},
		},
		"a name that the provider does not tell": {
			mapping: map[string]string{"username": "uid"},
			claims:  object{"preferred_username": "wei"},
		},
		"a name that the provider does not tell, with an address": {
			mapping: map[string]string{"username": "uid"}, more: trusts,
			claims: object{"preferred_username": "wei", "email": "wei@acme.test", "email_verified": true},
			want:   object{"username": "wei@acme.test", "email": "wei@acme.test", "email_verified": true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, policyOf(c.mapping, c.more))
			f.UserInfo = c.info
			c.claims["sub"] = "new"
			b := f.goesThrough(f.browser().get(f.authorize("portal")), c.claims)
			if c.want == nil {
				b.shows(200, "sign in here once")
				require.Empty(t, f.changes)
				return
			}
			b.answered(callback)
			require.Equal(t, []object{c.want}, f.changes)
		})
	}
}

// What the users service refuses of a mapped member costs the member, and not the person.
func TestMembersThatAreRefused(t *testing.T) {
	t.Parallel()
	f := federate(t, policyOf(map[string]string{"username": "uid", "locale": "lang"}, object{"node_id": "31"}))
	f.refuseChange = func(profile object) error {
		if profile["locale"] == "klingon" {
			return apperr.Invalid("locale", "must be a BCP 47 tag")
		}
		return nil
	}
	who := object{"sub": "new", "uid": "wei", "lang": "klingon"}
	f.goesThrough(f.browser().get(f.authorize("portal")), who).answered(callback)
	require.Len(t, f.changes, 2)
	require.Equal(t, object{"username": "wei", "email_verified": false}, f.changes[1])
	require.Equal(t, "31", f.node)

	f.refuseChange = func(object) error { return apperr.Invalid("username", "must be another") }
	f.goesThrough(f.browser().get(f.authorize("portal")), object{"sub": "more", "uid": "x"}).
		shows(200, "sign in here once")
}

// With update, the members follow the provider at each sign-in.
func TestMembersAreUpdated(t *testing.T) {
	t.Parallel()
	mapping := map[string]string{
		"username": "uid", "display_name": "name", "email": "email", "mobile": "phone",
		"sys_ext_props.department": "dept",
	}
	always := object{"update": "always", "domains": []string{"acme.test"}}
	for name, c := range map[string]struct {
		more   object
		claims object
		change func(*user)
		refuse func(object) error
		want   []object
	}{
		"what differs": {
			more: always, claims: object{"name": "Ann Li", "uid": "ann2", "dept": "R&D", "phone": ""},
			want: []object{{"display_name": "Ann Li", "sys_ext_props": object{"department": "R&D"}}},
		},
		"nothing differs": {
			more: always, claims: object{"name": "Ann Lee", "email": "ann@acme.test", "email_verified": true},
		},
		"only at first": {more: object{}, claims: object{"name": "Ann Li"}},
		"of somebody with a scope": {
			more: always, claims: object{"name": "Ann Li"}, change: func(u *user) { u.scoped = true },
		},
		"what is managed": {
			more: always, claims: object{"name": "Ann Li", "phone": "+8613800000000"},
			change: func(u *user) {
				u.record["managed_by"] = questions.ManagedBy{ConnectionID: "4", Members: []string{"display_name"}}
			},
			want: []object{{"mobile": "+8613800000000"}},
		},
		"an address": {
			more: always, claims: object{"name": "Ann Lee", "email": "li@acme.test", "email_verified": true},
			want: []object{{"email": "li@acme.test"}, {"email_verified": true}},
		},
		"an address of somebody whose present one is not verified": {
			more: always, claims: object{"name": "Ann Lee", "email": "li@acme.test", "email_verified": true},
			change: func(u *user) { u.record["email_verified"] = false },
			want:   []object{{"email": "li@acme.test", "email_verified": true}},
		},
		"an address that is not verified": {
			more: always, claims: object{"name": "Ann Lee", "email": "li@acme.test"},
		},
		"an address of another domain": {
			more: always, claims: object{"name": "Ann Lee", "email": "li@x.test", "email_verified": true},
		},
		"an address that is taken": {
			more: always, claims: object{"name": "Ann Li", "email": "li@acme.test", "email_verified": true},
			change: func(u *user) { u.record["email_verified"] = false },
			refuse: func(profile object) error {
				if profile["email"] != nil {
					return apperr.Taken("email")
				}
				return nil
			},
			want: []object{
				{"display_name": "Ann Li", "email": "li@acme.test", "email_verified": true}, {"display_name": "Ann Li"},
			},
		},
		"a user who changes meanwhile": {
			more: always, claims: object{"name": "Ann Li"},
			refuse: func(object) error { return apperr.New(apperr.VersionMismatch, "it has changed") },
			want:   []object{{"display_name": "Ann Li"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := federate(t, policyOf(mapping, c.more))
			f.linkAnn()
			f.refuseChange = c.refuse
			if c.change != nil {
				c.change(f.users["ann"])
			}
			c.claims["sub"] = "ann-at-corp"
			b := f.goesThrough(f.browser().get(f.authorize("portal")), c.claims)
			if !f.users["ann"].scoped {
				b.answered(callback)
			}
			require.Equal(t, c.want, f.changes)
			require.Equal(t, "ann", f.users["ann"].record["username"])
		})
	}
}
