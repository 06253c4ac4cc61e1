package filter_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/filter"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

var kind = schema.User.With("urn:example:acme")

func decode(t testing.TB, text string) resource.Object {
	t.Helper()
	o, err := resource.DecodeObject([]byte(text))
	require.NoError(t, err)
	return o
}

const bjensen = `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User",
	"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],"id":"2819","externalId":"Ext-1",
	"userName":"bjensen@example.com","name":{"familyName":"O'Malley","givenName":"Barbara"},"title":"Tour Guide",
	"userType":"Intern","active":true,"nickName":"",
	"emails":[{"value":"bjensen@example.com","type":"work","primary":true},{"value":"babs@jensen.org","type":"home"}],
	"addresses":[{"locality":"Hollywood","type":"work"}],
	"meta":{"resourceType":"User","created":"2011-05-13T04:42:34Z","lastModified":"2011-05-13T06:42:34.500+02:00"},
	"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"employeeNumber":"701984","department":"Ｔours",
		"manager":{"value":"26118915"}},
	"urn:example:acme":{"Size":12345678901234567890,"tags":["red","Blue"],"nested":{"value":"x","on":true},
		"list":[{"value":1.5},{"value":-2e3}]}}`

func TestMatch(t *testing.T) {
	t.Parallel()
	r := decode(t, bjensen)
	const e = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:"
	for text, want := range map[string]bool{
		// the examples of RFC 7644 §3.4.2.2
		`userName eq "bjensen"`:                                      false,
		`userName Eq "BJensen@example.com"`:                          true,
		`name.familyName co "O'Malley"`:                              true,
		`userName sw "J"`:                                            false,
		`urn:ietf:params:scim:schemas:core:2.0:User:userName sw "B"`: true,
		`title pr`: true,
		`meta.lastModified gt "2011-05-13T04:42:34Z"`:                                                       true,
		`meta.lastModified ge "2011-05-13T04:42:34Z"`:                                                       true,
		`meta.lastModified lt "2011-05-13T04:42:34Z"`:                                                       false,
		`meta.lastModified le "2011-05-13T04:42:34Z"`:                                                       false,
		`title pr and userType eq "Employee"`:                                                               false,
		`title pr or userType eq "Intern"`:                                                                  true,
		`schemas eq "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"`:                           true,
		`userType eq "Employee" and (emails co "example.com" or emails.value co "org")`:                     false,
		`userType ne "Employee" and not (emails co "example.com")`:                                          false,
		`userType eq "Intern" and (emails.type eq "work")`:                                                  true,
		`userType eq "Intern" and emails[type eq "work" and value co "@example.com"]`:                       true,
		`emails[type eq "work" and value co "@example.com"] or ims[type eq "xmpp" and value co "@foo.com"]`: true,
		// one value must satisfy all of a value path
		`emails[type eq "home" and value co "@example.com"]`: false,
		`emails.type eq "home" and emails.value co "@exam"`:  true,
		`emails[not (type eq "work")]`:                       true,
		`not (emails[type eq "work"])`:                       false,
		`emails[primary eq true]`:                            true,
		`emails[primary ne true]`:                            true,
		`emails[display pr]`:                                 false,
		`ims[type pr]`:                                       false,
		// and binds more than or
		`title eq "x" and title eq "y" or active eq true`:   true,
		`active eq true or title eq "x" and title eq "y"`:   true,
		`(active eq true or title eq "x") and title eq "y"`: false,
		`not (title eq "x" or title eq "y") and active pr`:  true,
		// case and width follow the schema
		`externalId eq "ext-1"`:               false,
		`externalId eq "Ext-1"`:               true,
		`id eq "2819"`:                        true,
		e + `department eq "tOURS"`:           true,
		e + `manager eq "26118915"`:           true,
		e + `manager.value sw "2611"`:         true,
		e + `manager.displayName pr`:          false,
		strings.ToUpper(e[:len(e)-1]) + ` pr`: true,
		`ADDRESSES.Locality ew "WOOD"`:        true,
		`name pr`:                             true,
		// what is absent or empty
		`displayName ne "x"`:          true,
		`displayName eq "x"`:          false,
		`displayName pr`:              false,
		`nickName pr`:                 false,
		`nickName eq ""`:              true,
		`displayName eq ""`:           false,
		`displayName eq null`:         true,
		`title eq null`:               false,
		`title ne null`:               true,
		`emails ne "babs@jensen.org"`: true,
		`name eq null`:                false,
		// booleans, also as texts
		`active eq true`:    true,
		`active eq True`:    true,
		`active eq "True"`:  true,
		`active eq "false"`: false,
		`active ne false`:   true,
		// times by their moment, with any offset
		`meta.created eq "2011-05-13T06:42:34+02:00"`: true,
		`meta.created gt "2011-05-13"`:                true,
		`meta.created sw "2011-05"`:                   true,
		`meta.created lt "2011-05-13T04:42:34.001Z"`:  true,
		// orders of texts
		`userName gt "a"`: true, `userName lt "C"`: true, `userName ge "bjensen@example.com"`: true,
		// an extension of which only the URN is known
		`urn:example:acme:size eq 12345678901234567890`:    true,
		`urn:example:acme:size gt 12345678901234567889`:    true,
		`urn:example:acme:size gt 12345678901234567890`:    false,
		`urn:example:acme:size eq "12345678901234567890"`:  false,
		`urn:example:acme:tags eq "blue"`:                  true,
		`urn:example:acme:tags co "e"`:                     true,
		`urn:example:acme:nested eq "X"`:                   true,
		`urn:example:acme:NESTED.on eq true`:               true,
		`urn:example:acme:nested.on pr`:                    true,
		`urn:example:acme:list.value lt -1999.5`:           true,
		`urn:example:acme:list[value gt 1 and value lt 2]`: true,
		`urn:example:acme:list[value gt 2]`:                false,
		`urn:example:acme:nothing pr`:                      false,
		// of Entra
		`emails[type eq "work"].value eq "bjensen@example.com"`:                    true,
		`emails[type eq "home"].value eq "bjensen@example.com"`:                    false,
		`emails[type eq "work"].value eq "bjensen@example.com" and title pr`:       true,
		`(emails[type eq "work" or type eq "home"].value sw "nobody") or title pr`: true,
		`department eq "tours"`:                          true,
		`manager eq "26118915" and userName sw "bjense"`: true,
		`manager eq "1"`:                                 false,
		// texts of JSON
		`title eq "Tour\u0020Guide"`:   true,
		`title eq "Tour \"Guide\""`:    false,
		"\ttitle  eq\n\"tour guide\" ": true,
	} {
		n, err := filter.Parse(kind, text)
		require.NoError(t, err, text)
		require.Equal(t, want, filter.Match(n, r), text)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, ` `, `userName`, `userName eq`, `userName eq bjensen`, `userName is "a"`, `"a" eq userName`, `eq "a"`,
		`userName eq "a" and`, `userName eq "a" userName eq "b"`, `userName eq "a" xor title pr`, `(userName eq "a"`,
		`userName eq "a")`, `not userName eq "a"`, `not (userName eq "a"`, `userName eq "a`, `userName eq "\q"`,
		`userName eq 'a'`, `userName eq "a";`, `emails[type eq "work"`, `emails[]`,
		`emails[type eq "work"].a eq "a"`, `emails[type eq "work"].value`,
		`emails[type eq "work"].value[type pr]`, `emails[type eq "work"].`,
		`emails[emails[type pr]]`, `emails.type[type pr]`, `userName[value eq "a"]`, `emails[unknown eq "a"]`,
		`unknown eq "a"`, `userName.a pr`, `name.unknown pr`, `a.department eq "a"`, `urn:x:y eq "a"`,
		`urn:ietf:params:scim:schemas:extension:enterprise:2.0:User eq "a"`, `password eq "a"`, `password pr`,
		`active gt true`, `active co "t"`, `active eq "yes"`, `active eq 1`, `userName eq 1`, `userName eq true`,
		`userName gt null`, `userName co 1`, `name eq "a"`, `meta eq "a"`, `meta.created gt "yesterday"`,
		`meta.created gt 5`, `meta.created eq true`, `x509Certificates.value gt "a"`, `userName eq 01`, `userName eq -`,
		`urn:example:acme:a gt true`, `urn:example:acme:a co 5`, "userName eq \"a\x00\"", `userName pr "a"`,
		strings.Repeat("(", 11) + "title pr" + strings.Repeat(")", 11),
		strings.Repeat("title pr or ", 50) + "title pr",
		`title eq "` + strings.Repeat("a", 2048) + `"`,
	} {
		_, err := filter.Parse(kind, text)
		require.Equal(t, scim.InvalidFilter, scim.TypeOf(err), text)
		require.NotContains(t, err.Error(), "bjensen", "no rejected value is echoed")
	}
	for _, text := range []string{
		strings.Repeat("(", 10) + "title pr" + strings.Repeat(")", 10),
		strings.Repeat("title pr or ", 49) + "title pr",
		`title eq "` + strings.Repeat("ü", 2048-11) + `"`,
	} {
		_, err := filter.Parse(kind, text)
		require.NoError(t, err)
	}
}

func TestParsePath(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		path     string
		filtered bool
		err      scim.Type
	}{
		`members`:                                        {"", false, scim.InvalidPath},
		`name.familyName`:                                {"name.familyName", false, ""},
		` USERNAME `:                                     {"userName", false, ""},
		`addresses[type eq "work"]`:                      {"addresses", true, ""},
		`Emails[TYPE eq "work"].VALUE`:                   {"emails.value", true, ""},
		`emails [ type eq "w]" ] .value`:                 {"", false, scim.InvalidPath},
		`emails [ type eq "w]" ]`:                        {"emails", true, ""},
		`emails[type eq "work"].`:                        {"", false, scim.InvalidPath},
		`emails[type eq "work"]value`:                    {"", false, scim.InvalidPath},
		`emails[type eq "work"].value.x`:                 {"", false, scim.InvalidPath},
		`emails[type eq "work"].unknown`:                 {"", false, scim.InvalidPath},
		`emails[type eq "work"].value extra`:             {"", false, scim.InvalidPath},
		`emails[type eq "work"`:                          {"", false, scim.InvalidPath},
		`emails[]`:                                       {"", false, scim.InvalidPath},
		`emails[unknown eq 1]`:                           {"", false, scim.InvalidPath},
		`userName[value eq "a"]`:                         {"", false, scim.InvalidPath},
		`unknown`:                                        {"", false, scim.InvalidPath},
		`unknown[a eq "b"]`:                              {"", false, scim.InvalidPath},
		`emails.value[type eq "work"]`:                   {"", false, scim.InvalidPath},
		``:                                               {"", false, scim.InvalidPath},
		`name..x`:                                        {"", false, scim.InvalidPath},
		schema.EnterpriseURN:                             {schema.EnterpriseURN, false, ""},
		schema.EnterpriseURN + `[a eq "b"]`:              {"", false, scim.InvalidPath},
		schema.EnterpriseURN + `:manager`:                {schema.EnterpriseURN + ":manager", false, ""},
		schema.UserURN + `:emails[type eq "work"].value`: {"emails.value", true, ""},
		`urn:example:acme:list[value eq 1].value`:        {"urn:example:acme:list.value", true, ""},
		strings.Repeat("a", 3000):                        {"", false, scim.InvalidPath},
	} {
		target, err := filter.ParsePath(kind, text)
		if want.err != "" {
			require.Equal(t, want.err, scim.TypeOf(err), text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want.path, target.Path.String(), text)
		require.Equal(t, want.filtered, target.Filter != nil, text)
	}
}

func TestEquals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]any{
		`emails[type eq "work"]`:                        {"type": "work"},
		`emails[TYPE eq "work" and primary eq "True"]`:  {"type": "work", "primary": true},
		`emails[(type eq "work" and (type eq "work"))]`: {"type": "work"},
		`emails[type eq "work" and type eq "home"]`:     nil,
		`emails[type eq "work" or type eq "home"]`:      nil,
		`emails[type ne "work"]`:                        nil,
		`emails[type eq null]`:                          nil,
		`emails[not (type eq "work")]`:                  nil,
	} {
		target, err := filter.ParsePath(kind, text)
		require.NoError(t, err, text)
		values, is := filter.Equals(target.Filter)
		require.Equal(t, want != nil, is, text)
		require.Equal(t, want, values, text)
	}
}
