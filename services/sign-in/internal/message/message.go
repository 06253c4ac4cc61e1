// Package message writes to people by mail. A message is stored in the transaction in which it becomes necessary, and
// sent after the answer (package work): until a mail server takes it, for ten minutes.
package message

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/work"
	"github.com/idplatform/idplatform/services/sign-in/internal/mail"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// Kind says what a message is about.
type Kind string

// The kinds.
const (
	Recovery   Kind = "recovery"   // the code with which a person sets a new password
	Invitation Kind = "invitation" // the link with which a person chooses a first password
	// Verification has the code with which a person shows that an address is theirs.
	Verification Kind = "verification"
	// Linked tells a person that they can sign in through another provider from now on. It has no code.
	Linked Kind = "linked"
)

func (k Kind) known() bool {
	return k == Recovery || k == Invitation || k == Verification || k == Linked
}

// Message is what one person is to be told.
type Message struct {
	Kind   Kind          `json:"kind"`
	UserID string        `json:"user_id"`
	To     string        `json:"to"`     // the mail address
	Name   string        `json:"name"`   // of the person
	Locale string        `json:"locale"` // en or zh
	Code   secret.String `json:"-"`
	Ends   clock.Time    `json:"ends"` // when the code ends: the message is of no use then
	// LoginName is what the person signs in with. Only invitations say it.
	LoginName string `json:"login_name,omitempty"`
	// Through is the name of the connection by which the person is linked. Nothing that the other provider tells is
	// said: it would be a stranger's text.
	Through string `json:"through,omitempty"`
}

// stored is a message that is to be sent.
type stored struct {
	work.Item
	Message
	Sealed string `json:"sealed"` // the code
}

// Invitations are apart, so that many of them delay no code.
var (
	messages    = work.Define(docstore.Schema[stored]{Name: "messages", Noun: "message"})
	invitations = work.Define(docstore.Schema[stored]{Name: "invitation_mails", Noun: "message"})
)

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return []*docstore.Def{messages.Def(), invitations.Def(), outcomes.Def(), counts.Def()}
}

// Config is what a Sender needs. All is required, unless it says otherwise.
type Config struct {
	Store    *docstore.Store
	Bus      *bus.Bus
	Keys     *secret.Keyring
	Settings *settings.Service
	Dialer   *net.Dialer // to mail servers that tenants name
	Log      *slog.Logger
	Metrics  prometheus.Registerer
	// PublicURL is where people find the platform.
	PublicURL string
	// Platform is the mail server of tenants that have none. Optional.
	Platform *mail.Server
	// ToLog writes the mails of tenants without a mail server to the log, with their codes: for a platform that only
	// its own machine can reach.
	ToLog bool
}

// Sender sends messages, for one replica.
type Sender struct {
	Codes, Invitations *work.Queue[stored, *stored]
	Config
	servers *servers
}

// pauses are how long to wait after each attempt that has failed. After the last one the message is given up.
var pauses = []time.Duration{
	5 * time.Second, 20 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute,
}

// places are for the mails of a queue that are on their way from one replica.
var places = fair.Limits{Most: 16, OfTenant: 4}

const (
	patience = 20 * time.Second // with one attempt
	atEnd    = 5 * time.Second  // for mails that are on their way when the process ends
)

// New makes a sender.
func New(c Config) (*Sender, error) {
	servers, err := newServers(c)
	if err != nil {
		return nil, err
	}
	s := &Sender{Config: c, servers: servers}
	s.Codes = s.queue("send mails", messages)
	s.Invitations = s.queue("send invitations", invitations)
	return s, nil
}

func (s *Sender) queue(name string, items *docstore.Collection[stored]) *work.Queue[stored, *stored] {
	return work.NewQueue[stored](work.Config[stored]{
		Name: name, Items: items, Store: s.Store, Log: s.Log, Metrics: s.Metrics,
		Places: places, Time: patience, Grace: atEnd,
		Attempts: int64(len(pauses)) + 1, Pause: func(attempt int64) time.Duration { return pauses[attempt-1] },
		Do: s.attempt,
		Lost: func(_ context.Context, m *stored) work.Outcome {
			return s.giveUp(m, errors.New("the replica that was sending the mail has ended"), reasonAway)
		},
	})
}

// Available reports whether the tenant's people can be written to, as far as is known.
func (s *Sender) Available(ctx context.Context) bool {
	return s.ToLog || s.Platform != nil || s.servers.known(ctx)
}

// sealedFor binds a code to its tenant.
func sealedFor(ctx context.Context) []byte { return []byte("message " + request.Tenant(ctx)) }

// Submit stores a message, in a transaction; the queue sends it. If the tenant's limits are reached, Submit stores
// nothing and tells that the message was refused.
func (s *Sender) Submit(ctx context.Context, tx *docstore.Tx, m Message, by Requester) (accepted bool, err error) {
	of, err := settings.In(ctx, tx)
	if err != nil {
		return false, err
	}
	item := s.seal(ctx, tx, m)
	reason, err := take(ctx, tx, m, by, of.Messages)
	if err != nil {
		return false, err
	}
	if reason != "" {
		return false, tell(ctx, tx, item, "refused", reason)
	}
	_, err = messages.Insert(ctx, tx, item)
	return err == nil, err
}

func (s *Sender) seal(ctx context.Context, tx *docstore.Tx, m Message) *stored {
	return &stored{
		Item: work.New(tx.Now), Message: m, Sealed: s.Keys.Seal([]byte(m.Code.Reveal()), sealedFor(ctx)),
	}
}

// SubmitInvitations stores messages that an administrator has asked for, in a transaction, and returns their ids; the
// queue sends them. The error is apperr.RateLimited if the tenant's limits would be exceeded.
func (s *Sender) SubmitInvitations(ctx context.Context, tx *docstore.Tx, how Inviting, all []Message) (ids []string,
	err error,
) {
	of, err := settings.In(ctx, tx)
	if err != nil {
		return nil, err
	}
	if err := takeInvitations(ctx, tx, all, of.Messages, how); err != nil {
		return nil, err
	}
	items := make([]*stored, len(all))
	for i, m := range all {
		items[i] = s.seal(ctx, tx, m)
		ids = append(ids, items[i].ID)
	}
	_, err = invitations.InsertMany(ctx, tx, func(int) string { return "" }, items...)
	return ids, err
}

// Withdraw deletes those invitations that have not been sent yet. One that is on its way may arrive.
func Withdraw(ctx context.Context, tx *docstore.Tx, ids []string) error {
	found, err := invitations.LoadMany(ctx, tx, ids)
	for i := 0; err == nil && i < len(found); i++ {
		_, err = invitations.Delete(ctx, tx, found[i])
	}
	return err
}

// Check says who would take mails of the tenant. The error is apperr.InvalidState if there is no mail server, or
// Unavailable.
func (s *Sender) Check(ctx context.Context) (Carrier, error) {
	by, err := s.deliver(ctx, "", Message{}, Text{}, true)
	if errors.Is(err, mail.ErrNoServer) {
		err = apperr.New(apperr.InvalidState, "there is no mail server: the tenant needs an enabled connection of %s",
			provider)
	}
	return by, err
}

// attempt sends a message, if that is of use still.
func (s *Sender) attempt(ctx context.Context, m *stored) work.Outcome {
	if !m.Ends.IsZero() && !s.Store.Now().Before(m.Ends) {
		return s.giveUp(m, errors.New("the mail is of no use any more"), reasonAway)
	}
	if !m.Kind.known() { // of a later version: a replica that knows it sends it
		return s.again(m, fmt.Errorf("the kind %q of a mail is not known here", m.Kind))
	}
	code, err := s.Keys.Open(m.Sealed, sealedFor(ctx))
	if err != nil {
		return s.giveUp(m, fmt.Errorf("the code of a mail: %w", err), reasonAway)
	}
	m.Code = secret.New(string(code))
	of, err := s.Settings.Of(ctx)
	if err != nil {
		return s.again(m, err)
	}
	_, err = s.deliver(ctx, m.ID, m.Message, s.compose(ctx, of, m.Message), false)
	refusal, refused := errors.AsType[mail.Refusal](err)
	switch {
	case refused:
		return s.giveUp(m, refusal, reasonAddress)
	case errors.Is(err, mail.ErrNoServer):
		return s.giveUp(m, err, reasonNoServer)
	case err != nil:
		return s.again(m, err)
	}
	return work.Done()
}

// link is the address of the page that a message leads to; empty: it leads to none.
func (s *Sender) link(ctx context.Context, m Message) string {
	own := s.PublicURL + "/sign-in/" + request.Tenant(ctx)
	switch m.Kind {
	case Invitation:
		return own + "/invitation?code=" + Grouped(m.Code.Reveal())
	case Linked:
		return own
	}
	return ""
}

// compose makes the text of a message that leaves now.
func (s *Sender) compose(ctx context.Context, of *settings.Settings, m Message) Text {
	return Compose(of, m, s.link(ctx, m), s.Store.Now())
}

// Carrier is who takes mails.
type Carrier string

// The carriers.
const (
	byConnection Carrier = "connection" // the tenant's mail server
	byPlatform   Carrier = "platform"   // the platform's
	byLog        Carrier = "log"
)

// deliver sends a mail now, and returns who has taken it. The error is mail.Refusal, mail.ErrNoServer, or what another
// attempt may mend. A dry run only finds out who would take it.
func (s *Sender) deliver(ctx context.Context, id string, m Message, text Text, dryRun bool) (Carrier, error) {
	by := byConnection
	server, err := s.servers.ofConnection(ctx)
	if errors.Is(err, mail.ErrNoServer) {
		switch {
		case s.Platform != nil:
			by, server, err = byPlatform, *s.Platform, nil
		case s.ToLog:
			if !dryRun {
				s.Log.InfoContext(ctx, "a mail that is not sent, since there is no mail server", "to", m.To,
					"subject", text.Subject, "text", text.Plain)
			}
			return byLog, nil
		}
	}
	if err != nil || dryRun {
		return by, err
	}
	return by, server.Send(ctx, mail.Mail{
		ID: id, To: m.To, Sender: text.Sender, ReplyTo: text.ReplyTo, Subject: text.Subject, Text: text.Plain,
		HTML: text.HTML, Time: s.Store.Now().Std(), Locale: text.Lang,
	})
}

// again is another attempt, if one is left.
func (s *Sender) again(m *stored, err error) work.Outcome {
	if int(m.Attempt) > len(pauses) {
		return s.giveUp(m, err, reasonAway)
	}
	return work.Retry(err)
}

func (s *Sender) giveUp(m *stored, err error, reason string) work.Outcome {
	return work.GiveUp(err).With("", func(ctx context.Context, tx *docstore.Tx) error {
		return tell(ctx, tx, m, "failed", reason)
	})
}

// The reasons of events.
const (
	reasonAway     = "no_answer"     // of the mail server, until the message was of no use
	reasonNoServer = "no_server"     // the tenant has no mail server
	reasonAddress  = "address"       // the mail server does not know it
	reasonOfOne    = "address_limit" // so many messages for one address
	reasonOfAll    = "tenant_limit"  // so many messages of the tenant
)

// outcome is the record that events about a message belong to. It is empty, because the message has an address and a
// code.
type outcome struct{ docstore.Meta }

var outcomes = docstore.Define(docstore.Schema[outcome]{Name: "message_ends", Noun: "message"})

// told is the record of message.failed and message.refused.
type told struct {
	ID          string     `json:"id"`
	TenantID    string     `json:"tenant_id"`
	TimeCreated clock.Time `json:"time_created"`
	UserID      string     `json:"user_id"`
	Kind        Kind       `json:"kind"`
	Channel     string     `json:"channel"`
	Reason      string     `json:"reason"`
}

var eventKind = outbox.Kind{Entity: "message", Source: "/sign-in/messages"}

// TellNotMade tells that a message was not made, because the person could not be looked up.
func TellNotMade(ctx context.Context, tx *docstore.Tx, id string, kind Kind) error {
	return tell(ctx, tx, &stored{Item: work.Item{Meta: docstore.Meta{ID: id}}, Message: Message{Kind: kind}}, "failed",
		reasonAway)
}

// tell tells what has become of a message. The record lives no longer than the transaction.
func tell(ctx context.Context, tx *docstore.Tx, m *stored, action, reason string) error {
	o := &outcome{docstore.Meta{ID: m.ID}}
	doc, err := outcomes.Insert(ctx, tx, o)
	if err != nil {
		return err
	}
	record, err := json.Marshal(told{
		ID: m.ID, TenantID: request.Tenant(ctx), TimeCreated: tx.Now, UserID: m.UserID, Kind: m.Kind, Channel: "mail",
		Reason: reason,
	})
	if err != nil {
		return err
	}
	if err := outbox.TellAs(ctx, tx, eventKind, action, &doc, record, nil); err != nil {
		return err
	}
	_, err = outcomes.Delete(ctx, tx, o)
	return err
}
