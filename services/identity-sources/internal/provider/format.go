package provider

import (
	"errors"
	"strings"
	"unicode"

	"github.com/go-ldap/ldap/v3"

	"github.com/idplatform/idplatform/pkg/schema"
	"github.com/idplatform/idplatform/pkg/weburl"
	"github.com/idplatform/idplatform/services/questions/directory"
)

// formats are those of config_fields beside JSON Schema's own.
var formats = []schema.Format{
	{Name: "http-url", Check: checkHTTPURL},
	{Name: "ldap-urls", Check: checkLDAPURLs},
	{Name: "ldap-dn", Check: checkDN},
	{Name: "ldap-filter", Check: checkFilter},
	{Name: "no-blanks", Check: func(text string) error {
		if strings.ContainsFunc(text, unicode.IsSpace) {
			return errors.New("must not have blanks")
		}
		return nil
	}},
	{Name: "scope", Check: checkScope},
}

func checkHTTPURL(text string) error {
	_, err := weburl.HTTP(text)
	if err == nil && strings.ContainsAny(text, "?#") {
		err = errors.New("must not have a query or fragment")
	}
	return err
}

// checkLDAPURLs checks the URLs of servers (RFC 4516), separated by spaces.
func checkLDAPURLs(text string) error {
	servers := strings.Split(text, " ")
	for _, server := range servers {
		if server == "" {
			continue
		}
		u, err := weburl.Parse(server, "ldap", "ldaps")
		if err != nil {
			return errors.New("must be ldap:// or ldaps:// URLs with a port of 1…65535 or none, separated by spaces")
		}
		if u.Path != "" || strings.ContainsAny(server, "?#") {
			return errors.New("must have nothing after host and port")
		}
	}
	return nil
}

func checkDN(text string) error {
	if dn, err := ldap.ParseDN(text); err != nil || len(dn.RDNs) == 0 {
		return errors.New("must be a distinguished name (RFC 4514), like ou=people,dc=acme,dc=test")
	}
	return nil
}

func checkFilter(text string) error {
	if _, err := ldap.CompileFilter(directory.UserFilter(text, "x")); err != nil {
		return errors.New("must be an LDAP filter (RFC 4515), like (uid={username})")
	}
	if !strings.Contains(text, directory.Username) {
		return errors.New("must contain {username}: without it everybody is found")
	}
	return nil
}

// checkScope checks a scope (RFC 6749 §3.3).
func checkScope(text string) error {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
		return errors.New("must be a scope: ASCII without blanks, quotes and backslashes")
	}
	return nil
}
