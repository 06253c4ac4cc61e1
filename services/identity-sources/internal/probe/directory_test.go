package probe_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/hashicorp/go-hclog"
	"github.com/jimlambrt/gldap"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// directory is an LDAP server with one user and one base. With ldaps it expects TLS from the start.
func directory(t *testing.T, id identity, ldaps bool) (address string) {
	t.Helper()
	mux, err := gldap.NewMux()
	require.NoError(t, err)
	require.NoError(t, mux.Bind(func(w *gldap.ResponseWriter, r *gldap.Request) {
		code := gldap.ResultInvalidCredentials
		if m, err := r.GetSimpleBindMessage(); err == nil {
			if m.UserName == "cn=reader" && m.Password == "right" || m.UserName == "" && m.Password == "" {
				code = gldap.ResultSuccess
			}
		}
		_ = w.Write(r.NewBindResponse(gldap.WithResponseCode(code)))
	}))
	require.NoError(t, mux.Search(func(w *gldap.ResponseWriter, r *gldap.Request) {
		code := gldap.ResultNoSuchObject
		if m, err := r.GetSearchMessage(); err == nil && m.BaseDN == "dc=acme" {
			code = gldap.ResultSuccess
			_ = w.Write(r.NewSearchResponseEntry(m.BaseDN))
		}
		_ = w.Write(r.NewSearchDoneResponse(gldap.WithResponseCode(code)))
	}))
	require.NoError(t, mux.ExtendedOperation(func(w *gldap.ResponseWriter, r *gldap.Request) {
		answer := r.NewExtendedResponse(gldap.WithResponseCode(gldap.ResultSuccess))
		answer.SetResponseName(gldap.ExtendedOperationStartTLS)
		_ = w.Write(answer)
		_ = r.StartTLS(id.tls)
	}, gldap.ExtendedOperationStartTLS))
	server, err := gldap.NewServer(gldap.WithLogger(hclog.NewNullLogger()))
	require.NoError(t, err)
	require.NoError(t, server.Router(mux))
	address = freeAddress(t)
	done := make(chan error, 1)
	var options []gldap.Option
	if ldaps {
		options = append(options, gldap.WithTLSConfig(id.tls))
	}
	go func() { done <- server.Run(address, options...) }()
	t.Cleanup(func() {
		require.NoError(t, server.Stop())
		<-done
	})
	wait.Until(t, server.Ready)
	return address
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func TestLDAP(t *testing.T) {
	t.Parallel()
	id, other := good(t), good(t)
	starttls, ldaps := directory(t, id, false), directory(t, id, true)
	fields := func(change object) object {
		all := object{
			"Url": "ldap://" + starttls, "CaCertificate": id.pem, "BaseDn": "dc=acme", "BindDn": "cn=reader",
			"BindPassword": "right",
		}
		for name, value := range change {
			all[name] = value
		}
		return all
	}
	for name, change := range map[string]object{
		"StartTLS": {}, "ldaps": {"Url": "ldaps://" + ldaps}, "without TLS": {"StartTls": false},
		"anonymous": {"BindDn": ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireSuccess(t, run(t, other, "ldap", fields(change)), "connect", "bind", "search the base")
		})
	}
	for name, row := range map[string]struct {
		change        object
		step, message string
	}{
		"wrong password":    {object{"BindPassword": "wrong"}, "bind", "bind DN or its password"},
		"no password":       {object{"BindPassword": ""}, "bind", "needs a bind password"},
		"no base":           {object{"BaseDn": "dc=none"}, "search the base", "no entry"},
		"unknown authority": {object{"CaCertificate": other.pem}, "connect", "authority that is not known"},
		"no certificate":    {object{"CaCertificate": "x"}, "connect", "no PEM certificate"},
		"no TLS there":      {object{"Url": "ldaps://" + starttls}, "connect", "whether it speaks this protocol"},
		"nobody there":      {object{"Url": "ldap://127.0.0.1:1"}, "connect", "nothing listens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireFailure(t, run(t, id, "ldap", fields(row.change)), row.step, row.message)
		})
	}
}

// mailbox is a session of an SMTP server.
type mailbox struct{}

func (mailbox) Reset()                               {}
func (mailbox) Logout() error                        { return nil }
func (mailbox) Rcpt(string, *smtp.RcptOptions) error { return errors.New("no mail is sent") }
func (mailbox) Data(io.Reader) error                 { return errors.New("no mail is sent") }
func (mailbox) AuthMechanisms() []string             { return []string{sasl.Plain} }

func (mailbox) Mail(from string, _ *smtp.MailOptions) error {
	if from != "codes@acme.test" {
		return &smtp.SMTPError{Code: 553, Message: "not yours"}
	}
	return nil
}

func (mailbox) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		if username == "codes" && password == "right" {
			return nil
		}
		return smtp.ErrAuthFailed
	}), nil
}

// mail is an SMTP server, with TLS from the start, with STARTTLS, or without TLS.
func mail(t *testing.T, id identity, fromTheStart, starttls bool) (port int) {
	t.Helper()
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return mailbox{}, nil }))
	server.Domain = "smtp.acme.test"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port = listener.Addr().(*net.TCPAddr).Port
	switch {
	case fromTheStart:
		listener = tls.NewListener(listener, id.tls)
	case starttls:
		server.TLSConfig = id.tls
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return port
}

func TestSMTP(t *testing.T) {
	t.Parallel()
	id, other := good(t), good(t)
	starttls, encrypted, plain := mail(t, id, false, true), mail(t, id, true, false), mail(t, id, false, false)
	fields := func(change object) object {
		all := object{
			"Host": "127.0.0.1", "Port": starttls, "CaCertificate": id.pem, "From": "codes@acme.test",
			"Username": "codes", "Password": "right",
		}
		for name, value := range change {
			all[name] = value
		}
		return all
	}
	requireSuccess(t, run(t, other, "mfa_mail", fields(nil)), "connect", "sign in", "sender")
	requireSuccess(t, run(t, other, "mfa_mail", fields(object{"Port": encrypted, "Security": "tls"})), "connect",
		"sign in", "sender")
	requireSuccess(t, run(t, other, "mfa_mail", fields(object{"Port": plain, "Security": "none", "Username": ""})),
		"connect", "sender")
	for name, row := range map[string]struct {
		change        object
		step, message string
	}{
		"nothing":           {object{"Host": ""}, "settings", "no SMTP server"},
		"wrong password":    {object{"Password": "wrong"}, "sign in", "user name or the password"},
		"wrong sender":      {object{"From": "boss@acme.test"}, "sender", "553"},
		"no STARTTLS":       {object{"Port": plain}, "connect", "does not offer STARTTLS"},
		"without TLS":       {object{"Port": plain, "Security": "none"}, "sign in", "sign in"},
		"unknown authority": {object{"CaCertificate": other.pem}, "connect", "authority that is not known"},
		"nobody there":      {object{"Port": 1}, "connect", "nothing listens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireFailure(t, run(t, id, "mfa_mail", fields(row.change)), row.step, row.message)
		})
	}
}
