package mail

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	netmail "net/mail"
	"net/url"

	"github.com/idplatform/idplatform/pkg/secret"
)

// The ports of servers whose settings name none.
const (
	portOfTLS      = 465
	portOfSTARTTLS = 587
	portOfNone     = 25
)

// ErrNoServer says that settings name no mail server.
var ErrNoServer = errors.New("there is no mail server")

// FromConnection reads the config_fields of a connection to the provider mfa_mail. The error is ErrNoServer if they
// name no server, or that they are not what the provider's schema demands.
func FromConnection(fields []byte) (Server, error) {
	settings := struct {
		Host, Username, Password, From, CaCertificate string
		Port                                          int
		Security                                      Security
	}{Port: portOfSTARTTLS, Security: STARTTLS}
	if err := json.Unmarshal(fields, &settings); err != nil {
		return Server{}, errors.New("the settings of the mail server cannot be read")
	}
	if settings.Host == "" {
		return Server{}, ErrNoServer
	}
	s := Server{
		Host: settings.Host, Port: settings.Port, Security: settings.Security, Username: settings.Username,
		Password: secret.New(settings.Password), From: settings.From,
	}
	if settings.CaCertificate != "" {
		s.CAs = x509.NewCertPool()
		if !s.CAs.AppendCertsFromPEM([]byte(settings.CaCertificate)) {
			return Server{}, errors.New("CaCertificate has no PEM certificate")
		}
	}
	return s, nil
}

// FromURL reads the URL of a mail server: smtp://user:password@host:587?from=codes@example.com begins with STARTTLS,
// smtps:// with TLS, and smtp+none:// is not encrypted. No error has a part of the URL, which has a password.
func FromURL(text string) (Server, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Path != "" && u.Path != "/" {
		return Server{}, errors.New("must be a URL such as smtp://user:password@host:587?from=codes@example.com")
	}
	s := Server{Host: u.Hostname()}
	absent := 0
	switch u.Scheme {
	case "smtp":
		s.Security, absent = STARTTLS, portOfSTARTTLS
	case "smtps":
		s.Security, absent = TLS, portOfTLS
	case "smtp+none":
		s.Security, absent = None, portOfNone
	default:
		return Server{}, errors.New("must begin with smtp://, smtps:// or smtp+none://")
	}
	if s.Port, err = port(u.Port(), absent); err != nil {
		return Server{}, err
	}
	s.Username = u.User.Username()
	password, _ := u.User.Password()
	s.Password = secret.New(password)
	if s.Username != "" && s.Security == None {
		return Server{}, errors.New("must not have a password without encryption")
	}
	from, err := netmail.ParseAddress(u.Query().Get("from"))
	if err != nil || from.Name != "" {
		return Server{}, errors.New("must name the address that mails come from: ?from=codes@example.com")
	}
	s.From = from.Address
	return s, nil
}

// Anywhere connects to any address: for a server that the operator of the platform has named, not a tenant.
func Anywhere(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: patience}).DialContext(ctx, network, address)
}
