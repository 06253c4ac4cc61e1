package mail

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/sign-in/internal/testkit/mailtest"
)

func TestMain(m *testing.M) { basic.Main(m) }

func code() Mail {
	return Mail{
		ID: "7", To: "li@acme.test", Sender: "示例科技", Subject: "您的验证码",
		Text: "BCDF-GHJK\n", HTML: "<p>BCDF-GHJK</p>",
		Time: time.UnixMilli(1_700_000_000_000), Locale: "zh-Hans",
	}
}

func to(t *testing.T, at *mailtest.Server, security Security) Server {
	t.Helper()
	s := Server{
		Host: "127.0.0.1", Port: at.Port, Security: security, From: "codes@acme.test", CAs: x509.NewCertPool(),
		Dial: Anywhere,
	}
	require.True(t, s.CAs.AppendCertsFromPEM([]byte(at.CA)))
	if security != None {
		s.Username, s.Password = "codes", secret.New("right")
	}
	return s
}

func TestSend(t *testing.T) {
	t.Parallel()
	for _, security := range []Security{STARTTLS, TLS, None} {
		t.Run(string(security), func(t *testing.T) {
			t.Parallel()
			at := mailtest.Start(t, string(security))
			require.NoError(t, to(t, at, security).Send(t.Context(), code()))
			require.NoError(t, to(t, at, security).Send(t.Context(), code()))
			mails := at.Mails()
			require.Len(t, mails, 2)
			require.Equal(t, "codes@acme.test", mails[0].From)
			require.Equal(t, "li@acme.test", mails[0].To)
			parsed, err := mail.ReadMessage(strings.NewReader(mails[0].Data))
			require.NoError(t, err)
			require.Equal(t, "<7@acme.test>", parsed.Header.Get("Message-Id"))
			require.Equal(t, "auto-generated", parsed.Header.Get("Auto-Submitted"))
			require.Contains(t, parsed.Header.Get("Content-Type"), "multipart/alternative")
			from, err := parsed.Header.AddressList("From")
			require.NoError(t, err)
			require.Equal(t, []*mail.Address{{Name: "示例科技", Address: "codes@acme.test"}}, from)
			require.Contains(t, mails[0].Data, "BCDF-GHJK")
		})
	}
}

func TestServersThatDoNotTakeIt(t *testing.T) {
	t.Parallel()
	at, plain := mailtest.Start(t, mailtest.STARTTLS), mailtest.Start(t, mailtest.None)
	good := to(t, at, STARTTLS)
	for name, c := range map[string]struct {
		change func(*Server, *Mail)
		says   string
	}{
		"another password": {func(s *Server, _ *Mail) { s.Password = secret.New("wrong") }, "reply code 535"},
		"an authority":     {func(s *Server, _ *Mail) { s.CAs = nil }, "certificate"},
		"no STARTTLS":      {func(s *Server, _ *Mail) { s.Port = plain.Port }, "STARTTLS"},
		"no TLS":           {func(s *Server, _ *Mail) { s.Security = TLS }, "tls"},
		"nobody":           {func(s *Server, _ *Mail) { s.Port = 1 }, "the connection failed"},
		"no encryption":    {func(s *Server, _ *Mail) { s.Security = None }, "without encryption"},
		"no address":       {func(_ *Server, m *Mail) { m.To = "li" }, "not a mail address"},
		"two recipients":   {func(_ *Server, m *Mail) { m.To = "li@acme.test, b@evil.test" }, "not a mail address"},
		"header":           {func(_ *Server, m *Mail) { m.To = "li@acme.test\r\nBcc: b@b.test" }, "not a mail address"},
		"no reply address": {func(_ *Server, m *Mail) { m.ReplyTo = "li\r\nX: y" }, "not a mail address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, m := good, code()
			c.change(&s, &m)
			err := s.Send(t.Context(), m)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "li@")
			require.False(t, errors.As(err, &Refusal{}))
		})
	}
	t.Cleanup(func() { require.Empty(t, at.Mails()) })
}

// What ends a mail for good, and what another attempt may mend.
func TestReplies(t *testing.T) {
	t.Parallel()
	for reply, final := range map[int]bool{550: true, 553: true, 450: false, 421: false} {
		at := mailtest.Start(t, mailtest.None)
		at.Answer(func(string) error { return mailtest.Refused(reply) })
		err := to(t, at, None).Send(t.Context(), code())
		require.Error(t, err)
		require.NotContains(t, err.Error(), "li@")
		require.Equal(t, final, errors.As(err, &Refusal{}), "%d: %v", reply, err)
	}
}

// Names and subjects with line ends make no headers.
func TestHeadersAreNotInjected(t *testing.T) {
	t.Parallel()
	at := mailtest.Start(t, mailtest.None)
	m := code()
	m.Sender, m.Subject = "Acme\r\nBcc: a@evil.test", "Hello\r\nBcc: b@evil.test\r\n\r\nbody"
	require.NoError(t, to(t, at, None).Send(t.Context(), m))
	parsed, err := mail.ReadMessage(strings.NewReader(at.Mails()[0].Data))
	require.NoError(t, err)
	require.Empty(t, parsed.Header.Get("Bcc"))
	require.Contains(t, parsed.Header.Get("Content-Type"), "multipart/alternative")
}

// raw is a server that does what talk does with a connection.
func raw(t *testing.T, talk func(net.Conn)) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		talk(conn)
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return listener.Addr().(*net.TCPAddr).Port
}

// An attempt ends with its context if the server says nothing, and soon if the server sends a line without end.
func TestServersThatAreStrange(t *testing.T) {
	t.Parallel()
	s := Server{Host: "127.0.0.1", Security: None, From: "codes@acme.test", Dial: Anywhere}
	ctx, cancel := context.WithCancel(t.Context())
	s.Port = raw(t, func(conn net.Conn) {
		cancel()
		_, _ = io.Copy(io.Discard, conn)
	})
	require.Error(t, s.Send(ctx, code()))
	s.Port = raw(t, func(conn net.Conn) {
		for {
			if _, err := conn.Write([]byte(strings.Repeat("2", 4096))); err != nil {
				return
			}
		}
	})
	require.Error(t, s.Send(t.Context(), code()))
}

// A server that breaks off after it has taken the mail does not get it again.
func TestBreaksOffWhenItHasTheMail(t *testing.T) {
	t.Parallel()
	s := Server{Host: "127.0.0.1", Security: None, From: "codes@acme.test", Dial: Anywhere}
	s.Port = raw(t, func(conn net.Conn) {
		lines := bufio.NewReader(conn)
		reply := func(text string) { _, _ = io.WriteString(conn, text+"\r\n") }
		reply("220 smtp.acme.test")
		inData := false
		for {
			line, err := lines.ReadString('\n')
			switch {
			case err != nil:
				return
			case inData && line == ".\r\n":
				reply("250 taken")
				return
			case inData:
			case strings.HasPrefix(line, "DATA"):
				inData = true
				reply("354 go on")
			default:
				reply("250 yes")
			}
		}
	})
	require.NoError(t, s.Send(t.Context(), code()))
}

func TestFromURL(t *testing.T) {
	t.Parallel()
	s, err := FromURL("smtp://codes:p%40ss@smtp.acme.test?from=codes@acme.test")
	require.NoError(t, err)
	require.Equal(t, "p@ss", s.Password.Reveal())
	require.Equal(t, []any{"smtp.acme.test", 587, STARTTLS, "codes", "codes@acme.test"},
		[]any{s.Host, s.Port, s.Security, s.Username, s.From})
	s, err = FromURL("smtps://[::1]?from=codes@acme.test")
	require.NoError(t, err)
	require.Equal(t, []any{"::1", 465, TLS, ""}, []any{s.Host, s.Port, s.Security, s.Username})
	s, err = FromURL("smtp+none://relay:2525/?from=codes@acme.test")
	require.NoError(t, err)
	require.Equal(t, []any{2525, None}, []any{s.Port, s.Security})
	for _, wrong := range []string{
		"", "smtp.acme.test", "http://smtp.acme.test?from=a@b.test", "smtp://smtp.acme.test", "smtp://h:0?from=a@b.test",
		"smtp://h:70000?from=a@b.test", "smtp://h?from=a", "smtp://h?from=A%20%3Ca@b.test%3E", "smtp://?from=a@b.test",
		"smtp+none://codes:sesame@h?from=a@b.test", "smtp://h/path?from=a@b.test", "smtp://codes:ses%ame@h?from=a@b.test",
	} {
		_, err := FromURL(wrong)
		require.Error(t, err, wrong)
		require.NotContains(t, err.Error(), "ses", wrong)
	}
}

func TestFromConnection(t *testing.T) {
	t.Parallel()
	s, err := FromConnection([]byte(`{"Host":"h","From":"a@b.test","Username":"u","Password":"p","displayName":"x"}`))
	require.NoError(t, err)
	require.Equal(t, []any{"h", 587, STARTTLS, "u", "p", "a@b.test"},
		[]any{s.Host, s.Port, s.Security, s.Username, s.Password.Reveal(), s.From})
	s, err = FromConnection([]byte(`{"Host":"h","From":"a@b.test","Port":2465,"Security":"tls"}`))
	require.NoError(t, err)
	require.Equal(t, []any{2465, TLS}, []any{s.Port, s.Security})
	_, err = FromConnection([]byte(`{}`))
	require.ErrorIs(t, err, ErrNoServer)
	_, err = FromConnection([]byte(`{"Host":"h","CaCertificate":"x"}`))
	require.ErrorContains(t, err, "PEM")
	_, err = FromConnection([]byte(`[]`))
	require.Error(t, err)
}
