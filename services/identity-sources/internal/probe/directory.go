package probe

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-ldap/ldap/v3"

	"github.com/idplatform/idplatform/services/questions/directory"
)

// ldap connects, encrypts, binds and searches the base (RFC 4511).
func (r *run) ldap() {
	servers := strings.Fields(r.config.text("Url", ""))
	for _, server := range servers {
		name := "connect"
		if len(servers) > 1 {
			name = "connect to " + server
		}
		r.directory(server, name)
	}
}

func (r *run) directory(server, connect string) {
	ctx, cancel := context.WithTimeout(r.ctx, oneStep)
	defer cancel()
	var conn *ldap.Conn
	if !r.step(connect, func(context.Context) (message string, err error) {
		conn, message, err = r.dialDirectory(ctx, server)
		return message, err
	}) {
		return
	}
	defer conn.Close()
	stop := context.AfterFunc(r.ctx, func() { conn.Close() })
	defer stop()
	if !r.step("bind", func(context.Context) (string, error) { return r.bind(conn) }) {
		return
	}
	r.step("search the base", func(context.Context) (string, error) {
		base := r.config.text("BaseDn", "")
		filter := r.config.text("UserFilter", "")
		if filter == "" {
			filter = "(objectClass=*)"
		}
		_, err := conn.Search(&ldap.SearchRequest{
			BaseDN: base, Scope: ldap.ScopeBaseObject, SizeLimit: 1, TimeLimit: int(oneStep / time.Second),
			// The entry itself is found however the filter ends; the server says what it does not accept of it.
			Filter:     "(|(objectClass=*)" + directory.UserFilter(filter, "nobody") + ")",
			Attributes: []string{"1.1"}, // no attributes: RFC 4511, section 4.5.1.8
		})
		if err != nil {
			return "", explainLDAP(err)
		}
		return "the entry " + base + " exists", nil
	})
}

func (r *run) dialDirectory(ctx context.Context, server string) (*ldap.Conn, string, error) {
	conn, encrypted, err := directory.Dial(ctx, server, r.directorySettings(), oneStep, r.dial)
	switch {
	case errors.Is(err, directory.ErrCertificate):
		return nil, "", fault(err.Error())
	case err != nil:
		return nil, "", explainLDAP(err)
	case !encrypted:
		return conn, "connected without encryption; others on the network can read passwords", nil
	}
	return conn, "connected with TLS", nil
}

func (r *run) directorySettings() directory.Settings {
	encrypts := r.flag("StartTls", true)
	return directory.Settings{
		StartTLS: &encrypts, CACertificate: r.config.text("CaCertificate", ""),
		BindDN: r.config.text("BindDn", ""), BindPassword: r.config.text("BindPassword", ""),
	}
}

func (r *run) bind(conn *ldap.Conn) (string, error) {
	s := r.directorySettings()
	err := s.Bind(conn)
	switch {
	case errors.Is(err, directory.ErrNoPassword):
		return "", fault(err.Error())
	case err != nil:
		return "", explainLDAP(err)
	case s.BindDN == "":
		return "bound anonymously", nil
	}
	return "bound as " + s.BindDN, nil
}

// explainLDAP explains a result code. The server's own text is left out.
func explainLDAP(err error) error {
	var result *ldap.Error
	if !errors.As(err, &result) {
		return err
	}
	switch result.ResultCode {
	case ldap.LDAPResultInvalidCredentials:
		return fault("the directory refuses the bind DN or its password")
	case ldap.LDAPResultNoSuchObject:
		return fault("there is no entry at the base DN; check it")
	case ldap.LDAPResultInsufficientAccessRights:
		return fault("the bind DN may not read the base DN")
	case ldap.ErrorFilterCompile, ldap.LDAPResultInappropriateMatching:
		return fault("the user filter is not one that the directory understands")
	case ldap.LDAPResultInvalidDNSyntax:
		return fault("the bind DN or the base DN is not a distinguished name")
	case ldap.LDAPResultInappropriateAuthentication, ldap.LDAPResultUnwillingToPerform:
		return fault("the directory does not allow this kind of bind; give a bind DN and its password")
	case ldap.LDAPResultConfidentialityRequired, ldap.LDAPResultStrongAuthRequired:
		return fault("the directory requires an encrypted connection: set StartTls or use ldaps")
	case ldap.LDAPResultProtocolError:
		return fault("the directory does not support an operation, such as StartTLS; use ldaps, or set StartTls to " +
			"false")
	case ldap.ErrorNetwork:
		return result.Err
	}
	return faultf("the directory answered with result code %d", result.ResultCode)
}
