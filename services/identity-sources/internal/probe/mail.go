package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"net/textproto"
	"strconv"
)

// smtp connects to a mail server, encrypts, signs in and names the sender (RFC 5321). It sends no mail.
func (r *run) smtp() {
	host := r.config.text("Host", "")
	if host == "" {
		r.step("settings", func(context.Context) (string, error) {
			return "", fault("no SMTP server is given: codes can't be sent")
		})
		return
	}
	var client *smtp.Client
	if !r.step("connect", func(ctx context.Context) (message string, err error) {
		client, message, err = r.dialMail(ctx, host)
		return message, err
	}) {
		return
	}
	defer client.Close()
	if user := r.config.text("Username", ""); user != "" {
		if !r.step("sign in", func(context.Context) (string, error) { return r.signIn(client, host, user) }) {
			return
		}
	}
	r.step("sender", func(context.Context) (string, error) {
		if err := client.Mail(r.config.text("From", "")); err != nil {
			return "", explainSMTP(err, "the server does not accept the sender")
		}
		return "the server accepts the sender", nil
	})
	_ = client.Quit() // the result no longer depends on it
}

func (r *run) dialMail(ctx context.Context, host string) (*smtp.Client, string, error) {
	settings, err := r.tls(host)
	if err != nil {
		return nil, "", err
	}
	security := r.config.text("Security", "starttls")
	conn, err := r.dial(ctx, net.JoinHostPort(host, strconv.Itoa(r.number("Port", 587))))
	if err != nil {
		return nil, "", err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if security == "tls" {
		conn = tls.Client(conn, settings)
	}
	client, err := smtp.NewClient(conn, host)
	if err != nil {
		conn.Close()
		return nil, "", explainSMTP(err, "the server refuses the connection")
	}
	if security == "starttls" {
		if offered, _ := client.Extension("STARTTLS"); !offered {
			client.Close()
			return nil, "", fault("the server does not offer STARTTLS; use another port, or set Security to tls")
		}
		if err := client.StartTLS(settings); err != nil {
			client.Close()
			return nil, "", explainSMTP(err, "the server refuses STARTTLS")
		}
	}
	if security == "none" {
		return client, "connected without encryption; others on the network can read passwords and codes", nil
	}
	return client, "connected with TLS", nil
}

func (r *run) signIn(client *smtp.Client, host, user string) (string, error) {
	if offered, _ := client.Extension("AUTH"); !offered {
		return "", fault("the server does not offer to sign in (AUTH); leave out Username and Password, or use " +
			"another port")
	}
	if r.config.text("Security", "starttls") == "none" {
		return "", fault("a password is not sent without encryption")
	}
	if err := client.Auth(smtp.PlainAuth("", user, r.config.text("Password", ""), host)); err != nil {
		return "", explainSMTP(err, "the server refuses the user name or the password")
	}
	return "signed in", nil
}

// explainSMTP explains a reply; refusal is the explanation of a refusal. The server's own text is left out.
func explainSMTP(err error, refusal string) error {
	if reply, ok := errors.AsType[*textproto.Error](err); ok {
		return faultf("%s (reply code %d)", refusal, reply.Code)
	}
	return err
}

// tls returns the TLS settings for a server. The connection may name its own certificate authority.
func (r *run) tls(host string) (*tls.Config, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if pem := r.config.text("CaCertificate", ""); pem != "" {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM([]byte(pem)) {
			return nil, fault("CaCertificate has no PEM certificate")
		}
	}
	return settings, nil
}

func (r *run) flag(name string, absent bool) bool {
	flag := absent
	if value, ok := r.config[name]; ok {
		_ = json.Unmarshal(value, &flag) // the provider's schema has checked it
	}
	return flag
}

func (r *run) number(name string, absent int) int {
	n := absent
	if value, ok := r.config[name]; ok {
		_ = json.Unmarshal(value, &n) // the provider's schema has checked it
	}
	return n
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
