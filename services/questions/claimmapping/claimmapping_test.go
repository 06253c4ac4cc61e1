package claimmapping_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/questions/claimmapping"
)

func TestApply(t *testing.T) {
	t.Parallel()
	claims := json.RawMessage(`{
		"sub": "1", "given_name": "Ann", "family_name": "Lee", "level": 3, "rate": 1.5, "contractor": true, "none": null,
		"groups": ["Staff", "Admins"], "https://acme.test/dept": "R&D", "address": {"country": "CN"}, "name": "李伟"
	}`)
	for source, want := range map[string]string{
		"given_name":             "Ann",
		"name":                   "李伟",
		"level":                  "3",
		"rate":                   "1.5",
		"contractor":             "true",
		"https://acme.test/dept": "R&D",
		`claims.given_name + " " + claims.family_name`:               "Ann Lee",
		`claims["https://acme.test/dept"].lowerAscii()`:              "r&d",
		`claims.address.country`:                                     "CN",
		`string(claims.level)`:                                       "3",
		`"Admins" in claims.groups ? "admin" : "staff"`:              "admin",
		`has(claims.nickname) ? claims.nickname : claims.given_name`: "Ann",
		`"nickname" in claims ? "yes" : "no"`:                        "no",
		`claims.groups.filter(g, g.startsWith("A"))[0]`:              "Admins",
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, claimmapping.Check(source))
			members, err := claimmapping.Mapping{"display_name": source}.Apply(t.Context(), claims)
			require.NoError(t, err)
			require.Equal(t, map[string]string{"display_name": want}, members)
		})
	}
	for _, source := range []string{
		"none", "groups", "address", "unknown", "claims", // no text, no number, no boolean
		`claims.nickname`, `claims.level`, `claims.groups[9]`, `claims.given_name +`,
	} {
		t.Run("nothing of "+source, func(t *testing.T) {
			t.Parallel()
			members, err := claimmapping.Mapping{"display_name": source}.Apply(t.Context(), claims)
			require.NoError(t, err)
			require.Empty(t, members)
		})
	}
	_, err := claimmapping.Mapping{"display_name": "x"}.Apply(t.Context(), json.RawMessage(`[]`))
	require.Error(t, err)
	members, err := claimmapping.Mapping{}.Apply(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, members)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for source, fault := range map[string]string{
		"email":                                  "",
		"claims_of_mine":                         "",
		`claims.a + claims.b`:                    "",
		`claims.a +`:                             "syntax error",
		`user.name + claims.a`:                   "undeclared reference",
		`claims.a == "x"`:                        "must be a text; it is of type bool",
		`has(claims.a)`:                          "must be a text",
		`claims.a.matches(claims.b) ? "x" : "y"`: "matches needs a pattern",
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			err := claimmapping.Check(source)
			if fault == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, fault)
		})
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	for member, can := range map[string]bool{
		"username": true, "sys_ext_props.dept": true, "sys_ext_props.a-b": true, "status": false, "email_verified": false,
		"must_change_password": false, "id": false, "sys_ext_props": false, "sys_ext_props.": false,
		"sys_ext_props.a.b": false, "free_ext_props.x": false, "": false,
	} {
		require.Equal(t, can, claimmapping.Sets(member), member)
	}
	require.Equal(t, map[string]any{"email": "a@b.test", "sys_ext_props": map[string]any{"dept": "x"}},
		claimmapping.Profile(map[string]string{"email": "a@b.test", "sys_ext_props.dept": "x"}))
}
