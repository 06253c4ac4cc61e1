// Package directory connects to directories (LDAP, RFC 4511): identity-sources tests connections to them, and sign-in
// checks passwords there.
package directory

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
)

// Settings are those config_fields of a connection that say how to connect.
type Settings struct {
	StartTLS      *bool  `json:"StartTls"` // nil: true
	CACertificate string `json:"CaCertificate"`
	BindDN        string `json:"BindDn"`
	BindPassword  string
}

var (
	// ErrCertificate says that CACertificate has no certificate.
	ErrCertificate = errors.New("CaCertificate has no PEM certificate")
	// ErrNoPassword says that a bind DN comes without a password: a bind without one succeeds with every name (RFC
	// 4513 §5.1.2).
	ErrNoPassword = errors.New("a bind DN needs a bind password")
)

// Dial connects to a server, an ldap:// or ldaps:// URL, and encrypts the connection if the settings say so. patience
// is how long each operation lasts at most. encrypted reports whether others on the network cannot read along. The
// error may be of go-ldap, of crypto/tls or dial's.
func Dial(ctx context.Context, server string, s Settings, patience time.Duration,
	dial func(ctx context.Context, address string) (net.Conn, error),
) (conn *ldap.Conn, encrypted bool, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, false, err
	}
	settings, err := s.tls(u.Hostname())
	if err != nil {
		return nil, false, err
	}
	port := cmp.Or(u.Port(), map[string]string{"ldap": "389", "ldaps": "636"}[u.Scheme])
	raw, err := dial(ctx, net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, false, err
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	encrypted = u.Scheme == "ldaps"
	if encrypted {
		secured := tls.Client(raw, settings)
		if err := secured.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, false, err
		}
		raw = secured
	}
	conn = ldap.NewConn(raw, encrypted)
	conn.SetTimeout(patience)
	conn.Start()
	if !encrypted && (s.StartTLS == nil || *s.StartTLS) {
		if err := startTLS(conn, settings); err != nil {
			conn.Close()
			return nil, false, err
		}
		encrypted = true
	}
	return conn, encrypted, nil
}

func (s Settings) tls(host string) (*tls.Config, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if s.CACertificate != "" {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM([]byte(s.CACertificate)) {
			return nil, ErrCertificate
		}
	}
	return settings, nil
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
		return cmp.Or(invalid, err)
	}
	return nil
}

// Bind binds as who reads the directory: BindDN, or anonymously.
func (s Settings) Bind(conn *ldap.Conn) error {
	switch {
	case s.BindDN == "":
		return conn.UnauthenticatedBind("")
	case s.BindPassword == "":
		return ErrNoPassword
	}
	return conn.Bind(s.BindDN, s.BindPassword)
}

// Username stands in a user filter for what was typed.
const Username = "{username}"

// UserFilter is a user filter (RFC 4515) for a name.
func UserFilter(filter, name string) string {
	return strings.ReplaceAll(filter, Username, ldap.EscapeFilter(name))
}
