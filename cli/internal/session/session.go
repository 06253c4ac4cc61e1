// Package session is one run of a command: where it goes, as whom, and the rules that hold for every request, so that
// commands need not know them.
package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/idplatform/idplatform/cli/internal/config"
	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// Options are the flags that all commands have.
type Options struct {
	Context, Tenant string
	CreateTenant    bool // the tenant may be new
	Format, JQ      string
	Fields          []string
	All             bool

	DryRun, Yes, Curl, Verbose bool
	IfVersion                  string
	IdempotencyKey             string
	Wait, Timeout              time.Duration
}

// Terminal is what a command reads and writes, and knows of its surroundings.
type Terminal struct {
	In            io.Reader
	Out, Err      io.Writer
	InIsTerminal  bool
	OutIsTerminal bool
	ErrIsTerminal bool
	Width         int // columns of the terminal; 0: unknown
	Getenv        func(string) string
	ReadPassword  func() (string, error) // without showing it
	ConfigPath    string
	CachePath     string // a folder
}

// Session is one run of a command.
type Session struct {
	Options
	Terminal
	lines *bufio.Reader // of In

	// Hasty is the time for what comes before the first request; 0 for no hurry. A completion, which ends soon, begins
	// nothing that must not be broken off.
	Hasty time.Duration

	// Interrupted is closed when somebody ends the command; nil: never.
	Interrupted <-chan struct{}

	name      string // of the context; "" if it is made of variables
	context   *config.Context
	client    *idp.Client
	transport http.RoundTripper // of client
	given     bool              // the context is one of Use
	told      bool              // where changes go
	named     bool              // the person has typed the name of the protected context

	changes *atomic.Bool // the last request was a change; a lock is renewed beside other requests
}

// New makes a session. It reads and sends nothing.
func New(t Terminal, o Options) *Session {
	return &Session{Options: o, Terminal: t, changes: &atomic.Bool{}}
}

// Changes reports whether the last request was one that changes something.
func (s *Session) Changes() bool { return s.changes.Load() }

// Notef writes a line for people to standard error. Names of records in it cannot steer the terminal.
func (s *Session) Notef(format string, args ...any) {
	fmt.Fprintln(s.Err, output.PrintableLines(fmt.Sprintf(format, args...)))
}

// Stored is where text goes that others have stored: standard output, where it cannot steer a terminal.
func (s *Session) Stored() io.Writer {
	if s.OutIsTerminal {
		return output.Safe(s.Out)
	}
	return s.Out
}

// Printer makes the printer that the flags ask for.
func (s *Session) Printer() (*output.Printer, error) {
	return output.New(s.Out, output.Form{
		Format: s.Format, JQ: s.JQ, Fields: s.Fields, Width: s.Width, Terminal: s.OutIsTerminal, Style: s.Style(),
	})
}

// Style says whether standard output has colours.
func (s *Session) Style() output.Style {
	dumb := s.Getenv("TERM") == "dumb" || runtime.GOOS == "windows" && s.Getenv("WT_SESSION") == ""
	return output.Style(s.OutIsTerminal && s.Getenv("NO_COLOR") == "" && !dumb)
}

// Show prints a record, or a list, in the form that the flags ask for.
func (s *Session) Show(value any, view output.View) error {
	printer, err := s.Printer()
	if err != nil {
		return err
	}
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return printer.Body(body, view)
}

// Line reads a line of standard input; on a terminal it asks for it.
func (s *Session) Line(question string) (string, error) {
	if s.InIsTerminal {
		fmt.Fprint(s.Err, question+": ")
	}
	if s.lines == nil {
		s.lines = bufio.NewReader(s.In)
	}
	line, err := s.await(func() (string, error) { return s.lines.ReadString('\n') })
	if errors.Is(err, context.Canceled) {
		return "", err
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" && err != nil {
		return "", failure.Usagef("standard input ended before: %s", question)
	}
	return line, nil
}

// await waits for what a person types, or for the end of the command.
func (s *Session) await(read func() (string, error)) (string, error) {
	type result struct {
		text string
		err  error
	}
	typed := make(chan result, 1)
	go func() {
		text, err := read()
		typed <- result{text, err}
	}()
	select {
	case got := <-typed:
		return got.text, got.err
	case <-s.Interrupted:
		return "", context.Canceled
	}
}

// Secret reads a line that a terminal does not show.
func (s *Session) Secret(question string) (string, error) {
	if !s.InIsTerminal {
		return s.Line(question)
	}
	fmt.Fprint(s.Err, question+": ")
	secret, err := s.await(s.ReadPassword)
	fmt.Fprintln(s.Err)
	return strings.TrimSpace(secret), err
}

// Confirm asks before something that cannot be taken back. Without a terminal it wants --yes.
func (s *Session) Confirm(what string) error {
	if s.Yes || s.DryRun {
		return nil
	}
	if !s.InIsTerminal {
		return failure.Usagef("%s: --yes is needed", what)
	}
	answer, err := s.Line(what + "? [y/N]")
	if err != nil {
		return err
	}
	if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
		return failure.Usagef("nothing was done")
	}
	return nil
}

// BeforeChange tells where a change goes, and lets none reach a protected context by mistake.
func (s *Session) BeforeChange() error {
	s.changes.Store(true)
	return s.beforeChange(s.DryRun)
}

// beforeChange is BeforeChange for a change that may only be tried.
func (s *Session) beforeChange(try bool) error {
	if !s.told {
		s.told = true
		s.Notef("%s", s.Target())
	}
	if !s.context.Protected || s.named || s.DryRun || try {
		return nil
	}
	if s.Yes && s.Options.Context == s.name {
		return nil
	}
	if !s.InIsTerminal {
		return failure.Usagef("the context %s is protected: --yes --context %s is needed", s.name, s.name)
	}
	answer, err := s.Line(fmt.Sprintf("The context %s is protected. Its name, to go on", s.name))
	if err != nil {
		return err
	}
	if answer != s.name {
		return failure.Usagef("nothing was done")
	}
	s.Yes, s.named = true, true
	return nil
}

// Target says where requests go: acme @ https://idp.example.
func (s *Session) Target() string {
	if s.context == nil {
		return ""
	}
	tenant := s.TenantName()
	if tenant == "" {
		tenant = "the token's tenant"
	}
	return tenant + " @ " + s.context.URL
}

// TenantName is the tenant of requests; "" if only the token tells.
func (s *Session) TenantName() string {
	if s.Tenant != "" {
		return s.Tenant
	}
	return s.context.Tenant
}

// AwaitedBy makes a context with a time limit, for what must not hold up anything.
func AwaitedBy(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, errors.New("it took too long"))
}
