package probe

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-ldap/ldap/v3"

	"github.com/idplatform/idplatform/services/identity-sources/internal/provider"
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
			Filter:     "(|(objectClass=*)" + provider.UserFilter(filter, "nobody") + ")",
			Attributes: []string{"1.1"}, // no attributes: RFC 4511, section 4.5.1.8
		})
		if err != nil {
			return "", explainLDAP(err)
		}
		return "the entry " + base + " exists", nil
	})
}

func (r *run) dialDirectory(ctx context.Context, server string) (*ldap.Conn, string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, "", fault("the address is not a URL")
	}
	settings, err := r.tls(u.Hostname())
	if err != nil {
		return nil, "", err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"ldap": "389", "ldaps": "636"}[u.Scheme]
	}
	raw, err := r.dial(ctx, net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, "", err
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	encrypted := u.Scheme == "ldaps"
	if encrypted {
		secured := tls.Client(raw, settings)
		if err := secured.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, "", err
		}
		raw = secured
	}
	conn := ldap.NewConn(raw, encrypted)
	conn.SetTimeout(oneStep)
	conn.Start()
	if !encrypted && r.flag("StartTls", true) {
		if err := startTLS(conn, settings); err != nil {
			conn.Close()
			return nil, "", err
		}
		encrypted = true
	}
	if !encrypted {
		return conn, "connected without encryption; others on the network can read passwords", nil
	}
	return conn, "connected with TLS", nil
}

// startTLS encrypts a connection. The library hides why a handshake failed, so the certificate is verified here, in the
// way of crypto/tls.
func startTLS(conn *ldap.Conn, settings *tls.Config) error {
	var invalid error
	settings = settings.Clone()
	settings.InsecureSkipVerify = true //nolint:gosec // VerifyConnection does it
	settings.VerifyConnection = func(state tls.ConnectionState) error {
		options := x509.VerifyOptions{Roots: settings.RootCAs, DNSName: settings.ServerName,
			Intermediates: x509.NewCertPool()}
		for _, certificate := range state.PeerCertificates[1:] {
			options.Intermediates.AddCert(certificate)
		}
		_, invalid = state.PeerCertificates[0].Verify(options)
		return invalid
	}
	if err := conn.StartTLS(settings); err != nil {
		return cmp.Or(invalid, explainLDAP(err))
	}
	return nil
}

func (r *run) bind(conn *ldap.Conn) (string, error) {
	dn, password := r.config.text("BindDn", ""), r.config.text("BindPassword", "")
	if dn == "" {
		if err := conn.UnauthenticatedBind(""); err != nil {
			return "", explainLDAP(err)
		}
		return "bound anonymously", nil
	}
	if password == "" { // a bind without a password succeeds with every name (RFC 4513, section 5.1.2)
		return "", fault("a bind DN needs a bind password")
	}
	if err := conn.Bind(dn, password); err != nil {
		return "", explainLDAP(err)
	}
	return "bound as " + dn, nil
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
