// Package mail sends mails by SMTP (RFC 5321).
package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/wneessen/go-mail"

	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/secret"
)

// Mail is a mail to one person. HTML says the same as Text.
type Mail struct {
	ID         string // is the same in each attempt to send it, so that mail programs show it once
	To         string
	Sender     string // the name beside the server's From
	ReplyTo    string // an address; empty: From
	Subject    string
	Text, HTML string
	Time       time.Time
	Locale     string // BCP 47
}

// Server is a mail server.
type Server struct {
	Host     string
	Port     int
	Security Security
	Username string // empty: it takes mails from anybody
	Password secret.String
	From     string         // the address that mails come from
	CAs      *x509.CertPool // nil: the public ones
	// Dial connects to it. Required.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Security is how a connection is encrypted.
type Security string

// The values of Security.
const (
	STARTTLS Security = "starttls"
	TLS      Security = "tls"
	None     Security = "none" // no password is sent then
)

// Refusal says that the server does not take a mail, and would not at another time.
type Refusal struct{ Code int }

func (r Refusal) Error() string {
	return fmt.Sprintf("the mail server refuses the recipient (reply code %d)", r.Code)
}

const (
	// maxTalk is how many bytes a server may send while it takes one mail. Hundreds are normal.
	maxTalk = 64 << 10
	// patience is how long one reply may take.
	patience = 10 * time.Second
)

// Send sends a mail. The error is Refusal if there is no use in another attempt. It has no text of the server's, which
// can contain the address.
func (s Server) Send(ctx context.Context, m Mail) error {
	message, err := s.message(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which closes the connection
	client, err := s.client(ctx)
	if err != nil {
		return err
	}
	conversation, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return explain(err)
	}
	if err := client.SendWithSMTPClient(conversation, message); err != nil && !message.IsDelivered() {
		return explain(err)
	}
	_ = conversation.Quit() // the server has the mail, whatever it says now
	return nil
}

func (s Server) message(m Mail) (*mail.Msg, error) {
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := errors.Join(msg.FromFormat(oneLine(m.Sender), s.From), msg.To(m.To)); err != nil {
		return nil, errAddress // without the address
	}
	if m.ReplyTo != "" {
		if err := msg.ReplyTo(m.ReplyTo); err != nil {
			return nil, errAddress
		}
	}
	msg.Subject(oneLine(m.Subject))
	msg.SetDateWithValue(m.Time)
	msg.SetMessageIDWithValue(m.ID + "@" + domain(s.From))
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no automatic replies
	msg.SetGenHeader("Content-Language", m.Locale)
	msg.SetBodyString(mail.TypeTextPlain, m.Text)
	msg.AddAlternativeString(mail.TypeTextHTML, m.HTML)
	return msg, nil
}

// oneLine keeps a text from adding headers.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

var errAddress = errors.New("the sender or the recipient is not a mail address")

// client makes a client whose connection ends with ctx.
func (s Server) client(ctx context.Context) (*mail.Client, error) {
	options := []mail.Option{
		mail.WithPort(s.Port), mail.WithTimeout(patience), mail.WithoutNoop(), mail.WithHELO(domain(s.From)),
		mail.WithDialContextFunc(func(dialing context.Context, network, address string) (net.Conn, error) {
			conn, err := s.dial(dialing, network, address)
			if err == nil {
				context.AfterFunc(ctx, func() { conn.Close() })
			}
			return conn, err
		}),
		mail.WithTLSConfig(s.tls()), mail.WithTLSPolicy(mail.NoTLS),
	}
	if s.Security == STARTTLS {
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if s.Username != "" {
		if s.Security == None {
			return nil, errors.New("a password is not sent to a mail server without encryption")
		}
		options = append(options, mail.WithUsername(s.Username), mail.WithPassword(s.Password.Reveal()),
			mail.WithOpportunisticSMTPAuth(mail.SMTPAuthPlain, mail.SMTPAuthLogin, mail.SMTPAuthSCRAMSHA256))
	}
	return mail.NewClient(s.Host, options...)
}

func (s Server) tls() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.Host, RootCAs: s.CAs}
}

// dial connects, and encrypts where the connection begins with that.
func (s Server) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := s.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	bounded := outbound.Bounded(conn, maxTalk)
	if s.Security != TLS {
		return bounded, nil
	}
	encrypted := tls.Client(bounded, s.tls())
	if err := encrypted.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return encrypted, nil
}

// explain leaves out what the server says.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if failed, ok := errors.AsType[*mail.SendError](err); ok {
		if failed.Reason == mail.ErrSMTPRcptTo && !failed.IsTemp() && failed.ErrorCode() >= 500 {
			return Refusal{failed.ErrorCode()}
		}
		if failed.ErrorCode() == 0 {
			return errors.New("the mail server has broken off before it took the mail")
		}
		return fmt.Errorf("the mail server does not take the mail (reply code %d)", failed.ErrorCode())
	}
	if reply, ok := errors.AsType[*textproto.Error](err); ok {
		return fmt.Errorf("the mail server refuses the connection or the password (reply code %d)", reply.Code)
	}
	return errors.New("the mail server: " + outbound.Explain(err))
}

// domain is what follows the @ of an address.
func domain(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

func port(text string, absent int) (int, error) {
	if text == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 65535 {
		return 0, errors.New("the port must lie in 1…65535")
	}
	return n, nil
}
