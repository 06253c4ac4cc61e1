package federation

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-ldap/ldap/v3"

	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/services/questions/directory"
)

// ErrWrong is in the chain of every ErrRefused that means: the name or the password is wrong, or the directory lets the
// person not in.
var ErrWrong = errors.New("the name or the password is wrong")

const (
	activeDirectory = "active_directory"
	// onServer is how long one server is waited for, of those of a connection.
	onServer = 4 * time.Second
	// maxEntry bounds what a directory may send for one sign-in, in bytes. A picture may be among it.
	maxEntry = 1 << 20
	// maxValue and maxValues bound the values of an attribute that become claims, in bytes and in number.
	maxValue, maxValues = 1 << 10, 500
)

// IsDirectory reports whether a provider is a directory (LDAP): the person's password there is asked for on a page of
// this service.
func IsDirectory(providerCode string) bool {
	return providerCode == "ldap" || providerCode == activeDirectory
}

// usual are the attributes of the members of an identity, unless the connection names others, and the filter by which a
// name is found.
type usual struct{ filter, username string }

var usualOf = map[string]usual{
	"ldap":          {"(uid={username})", "uid"},
	activeDirectory: {"(&(objectCategory=person)(sAMAccountName={username}))", "sAMAccountName"},
}

// Login is a name and a password for a directory.
type Login struct {
	Name, Password string
	// MayTry is asked before the password is tried. It gets the entry's distinguished name, because one entry has many
	// login names: `ann`, `CORP\ann`, `Ann`. If there is no entry, it gets the account name. Its error is Password's.
	MayTry func(ctx context.Context, entry string) error
}

// Password returns who has a name and a password in the directory of a connection. The entry is searched for, and bound
// with the password. The error is as Begin's, MayTry's or ErrWrong.
func (c *Connections) Password(ctx context.Context, connectionID string, in Login) (Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	code, fields, err := c.settings(ctx, connectionID)
	if err != nil {
		return Identity{}, err
	}
	if !IsDirectory(code) {
		return Identity{}, refused("the provider %s is no directory", code)
	}
	if in.Name == "" || in.Password == "" { // a bind without a password succeeds with every name (RFC 4513 §5.1.2)
		return Identity{}, fmt.Errorf("%w: %w", ErrRefused, ErrWrong)
	}
	conn, err := c.dial(ctx, fields)
	if err != nil {
		return Identity{}, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := fields.Bind(conn); err != nil {
		return Identity{}, directoryFailure("bind as the reader", err)
	}
	account := accountOf(code, fields, in.Name)
	entry, err := find(conn, code, fields, account)
	if err != nil {
		return Identity{}, err
	}
	dn := "cn=" + rand.Text() + "," + fields.BaseDN // binds for a name that nobody has, too: the answer takes as long
	if entry != nil {
		dn, account = entry.DN, entry.DN
	}
	if err := in.MayTry(ctx, account); err != nil {
		return Identity{}, err
	}
	err = conn.Bind(dn, in.Password)
	switch {
	case entry == nil || isWrong(err):
		return Identity{}, fmt.Errorf("%w: %w", ErrRefused, ErrWrong)
	case err != nil:
		return Identity{}, directoryFailure("bind as the person", err)
	}
	return identityOf(entry, code, fields)
}

// accountOf is the name by which an entry is found, of what a person has typed: without the domain, in either of the
// forms that people know from Windows.
func accountOf(code string, fields fields, name string) string {
	if code != activeDirectory {
		return name
	}
	if _, account, ok := strings.Cut(name, `\`); ok {
		return account
	}
	if account, domain, ok := strings.Cut(name, "@"); ok && strings.EqualFold(domain, fields.Domain) {
		return account
	}
	return name
}

// dial connects to the first server of a connection that answers.
func (c *Connections) dial(ctx context.Context, fields fields) (*ldap.Conn, error) {
	err := error(ErrRefused)
	for _, server := range strings.Fields(fields.URL) {
		var conn *ldap.Conn
		conn, err = c.dialServer(ctx, server, fields.Settings)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrAway, err)
}

func (c *Connections) dialServer(ctx context.Context, server string, s directory.Settings) (*ldap.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, onServer)
	defer cancel()
	conn, _, err := directory.Dial(ctx, server, s, onServer,
		func(ctx context.Context, address string) (net.Conn, error) {
			raw, err := c.Dialer.DialContext(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			return outbound.Bounded(raw, maxEntry), nil
		})
	return conn, err
}

// find searches for the entry that a name belongs to; nil if there is none.
func find(conn *ldap.Conn, code string, fields fields, name string) (*ldap.Entry, error) {
	filter := directory.UserFilter(cmp.Or(fields.UserFilter, usualOf[code].filter), name)
	found, err := conn.Search(&ldap.SearchRequest{
		BaseDN: fields.BaseDN, Scope: ldap.ScopeWholeSubtree, SizeLimit: 2, TimeLimit: int(onServer / time.Second),
		Filter: filter, Attributes: append([]string{"*", "memberOf"}, identifiers...),
	})
	several := ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded)
	switch {
	case err != nil && !several:
		return nil, directoryFailure("search for the person", err)
	case several || len(found.Entries) > 1:
		return nil, refused("the user filter finds several entries for one name")
	case len(found.Entries) == 0:
		return nil, nil
	}
	return found.Entries[0], nil
}

// isWrong reports whether an error of a bind says that the password is wrong, or that the directory lets the entry not
// in.
func isWrong(err error) bool {
	return ldap.IsErrorAnyOf(err, ldap.LDAPResultInvalidCredentials, ldap.LDAPResultInappropriateAuthentication,
		ldap.LDAPResultNoSuchObject, ldap.LDAPResultUnwillingToPerform, ldap.LDAPResultConstraintViolation)
}

// directoryFailure is the error for one of a directory, without the server's own text.
func directoryFailure(doing string, err error) error {
	answer, ok := errors.AsType[*ldap.Error](err)
	switch {
	case !ok:
		return refused("%s: %w", doing, err)
	case answer.ResultCode == ldap.ErrorNetwork || answer.ResultCode == ldap.LDAPResultBusy ||
		answer.ResultCode == ldap.LDAPResultUnavailable || answer.ResultCode == ldap.LDAPResultTimeLimitExceeded:
		return fmt.Errorf("%w: %s: result code %d", ErrAway, doing, answer.ResultCode)
	}
	return refused("%s: %w: the directory answers with result code %d", doing, ErrClient, answer.ResultCode)
}

// identifiers are the attributes that name an entry for ever, however it is moved or called: RFC 4530, Active
// Directory, 389 Directory Server, FreeIPA and eDirectory.
var identifiers = []string{"entryUUID", "objectGUID", "nsUniqueId", "ipaUniqueID", "GUID"}

func identityOf(entry *ldap.Entry, code string, fields fields) (Identity, error) {
	subject := subjectOf(entry)
	if subject == "" {
		return Identity{}, refused("the entry has none of the attributes %s, by which it would be known again",
			strings.Join(identifiers, ", "))
	}
	first := func(member string, usual ...string) string {
		if name := fields.Attributes[member]; name != "" {
			usual = []string{name}
		}
		for _, name := range usual {
			if value := entry.GetEqualFoldAttributeValue(name); value != "" {
				return value
			}
		}
		return ""
	}
	who := Identity{
		Subject: subject, Username: first("username", usualOf[code].username),
		DisplayName: first("display_name", "displayName", "cn"), Email: first("email", "mail"),
	}
	var err error
	who.Claims, err = claimsOf(entry, who)
	return who, err
}

// subjectOf is what an entry is known by; empty if it has nothing of the kind. Binary values are written in hexadecimal
// digits.
func subjectOf(entry *ldap.Entry) string {
	for _, name := range identifiers {
		value := entry.GetEqualFoldRawAttributeValue(name)
		switch {
		case len(value) == 0 || len(value) > maxSubject/2:
		case strings.EqualFold(name, "entryUUID") || utf8.Valid(value) && len(value) != 16:
			return strings.ToLower(string(value))
		default:
			return hex.EncodeToString(value)
		}
	}
	return ""
}

// claimsOf are the attributes of an entry that are texts: one value as a text, several as an array. What looks like a
// password is left out.
func claimsOf(entry *ldap.Entry, who Identity) (json.RawMessage, error) {
	all := map[string]any{}
	for _, attribute := range entry.Attributes {
		values := slices.DeleteFunc(slices.Clone(attribute.Values), func(value string) bool {
			return len(value) > maxValue || !utf8.ValidString(value) || strings.ContainsRune(value, 0)
		})
		values = values[:min(len(values), maxValues)]
		switch {
		case len(values) == 0 || isSecret(attribute.Name):
		case len(values) == 1 && !strings.EqualFold(attribute.Name, "memberOf"):
			all[attribute.Name] = values[0]
		default:
			all[attribute.Name] = values
		}
	}
	all["sub"] = who.Subject
	return json.Marshal(all)
}

// isSecret reports whether an attribute can hold a password, or a hash of one.
func isSecret(attribute string) bool {
	name := strings.ToLower(attribute)
	return strings.Contains(name, "password") || strings.Contains(name, "pwd") || strings.HasPrefix(name, "krb")
}
