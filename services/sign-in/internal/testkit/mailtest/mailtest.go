// Package mailtest has a mail server for tests.
package mailtest

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// Mail is a mail that the server has taken.
type Mail struct {
	From, To string
	Data     string // with its headers
}

// Server takes mails of the user "codes" with the password "right", if it encrypts; otherwise of anybody.
type Server struct {
	Port int
	CA   string // PEM

	mu     sync.Mutex
	mails  []Mail
	answer func(to string) error
	tried  int
}

// The ways in which a Server encrypts.
const (
	STARTTLS = "starttls"
	TLS      = "tls"
	None     = "none"
)

// Start starts a server on 127.0.0.1.
func Start(t testing.TB, security string) *Server {
	t.Helper()
	s := &Server{}
	certified := httptest.NewTLSServer(nil) // only for its certificate
	certified.Close()
	s.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw}))
	encryption := &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &session{server: s, encrypted: security != None, in: security == None}, nil
	}))
	server.Domain = "smtp.acme.test"
	server.ErrorLog = log.New(io.Discard, "", 0)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.Port = listener.Addr().(*net.TCPAddr).Port
	switch security {
	case TLS:
		listener = tls.NewListener(listener, encryption)
	case STARTTLS:
		server.TLSConfig = encryption
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Close()
		listener.Close() // the server may not have begun
		<-done
	})
	return s
}

// Answer sets how recipients are answered; nil: they are taken.
func (s *Server) Answer(answer func(to string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// Mails returns the mails so far.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Mail(nil), s.mails...)
}

// Tried counts the recipients that were named, whether taken or not.
func (s *Server) Tried() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried
}

// Wait waits until there are so many mails, and returns them.
func (s *Server) Wait(t testing.TB, n int) []Mail {
	t.Helper()
	wait.Reach(t, n, func() int { return len(s.Mails()) }, "mails")
	require.Len(t, s.Mails(), n)
	return s.Mails()
}

// Refused is a reply of a server.
func Refused(code int) error { return &smtp.SMTPError{Code: code, Message: "not li@acme.test"} }

type session struct {
	server        *Server
	encrypted, in bool
	mail          Mail
}

func (s *session) Reset()                   { s.mail = Mail{} }
func (s *session) Logout() error            { return nil }
func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		if s.in = s.encrypted && username == "codes" && password == "right"; s.in {
			return nil
		}
		return smtp.ErrAuthFailed
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if !s.in {
		return smtp.ErrAuthRequired
	}
	s.mail.From = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.server.mu.Lock()
	answer := s.server.answer
	s.server.tried++
	s.server.mu.Unlock()
	if s.mail.To = to; answer != nil {
		return answer(to)
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mail.Data = string(data)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mails = append(s.server.mails, s.mail)
	return nil
}
