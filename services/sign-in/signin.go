// Package signin is the sign-in service: people of a tenant sign in once for its applications, which speak OpenID
// Connect, SAML and CAS. It exports only what a program needs to run it.
package signin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/cas"
	"github.com/idplatform/idplatform/services/sign-in/internal/client"
	"github.com/idplatform/idplatform/services/sign-in/internal/consent"
	"github.com/idplatform/idplatform/services/sign-in/internal/factor"
	"github.com/idplatform/idplatform/services/sign-in/internal/federation"
	"github.com/idplatform/idplatform/services/sign-in/internal/flow"
	"github.com/idplatform/idplatform/services/sign-in/internal/httpapi"
	"github.com/idplatform/idplatform/services/sign-in/internal/invitation"
	"github.com/idplatform/idplatform/services/sign-in/internal/link"
	"github.com/idplatform/idplatform/services/sign-in/internal/mail"
	"github.com/idplatform/idplatform/services/sign-in/internal/message"
	"github.com/idplatform/idplatform/services/sign-in/internal/notice"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/backchannel"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/keys"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/recovery"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
	"github.com/idplatform/idplatform/services/sign-in/internal/signout"
)

// Config holds the service's own settings.
type Config struct {
	SessionIdle time.Duration `mapstructure:"session_idle" doc:"How long a person stays signed in without opening an application"`
	SessionMax  time.Duration `mapstructure:"session_max" doc:"How long a person stays signed in at all"`
	AccessTTL   time.Duration `mapstructure:"access_ttl" doc:"How long access tokens of people are valid"`
	SMTPURL     secret.String `mapstructure:"smtp_url" doc:"The mail server of tenants that have no connection to one: smtp://user:password@host:587?from=codes@example.com, smtps:// or smtp+none://; log: writes mails to the log, if only this machine can reach the platform"`
}

// ToLog is the SMTPURL that writes mails to the log.
const ToLog = "log:"

// DefaultConfig is that of a working day.
func DefaultConfig() Config {
	return Config{SessionIdle: 8 * time.Hour, SessionMax: 24 * time.Hour, AccessTTL: 10 * time.Minute}
}

// Validate is called by config.Load.
func (c Config) Validate() error {
	const least, most = time.Minute, 90 * 24 * time.Hour
	switch {
	case c.SessionIdle < least || c.SessionMax < c.SessionIdle || c.SessionMax > most:
		return errors.New("session_idle must be at least 1m, and session_max lie between it and 2160h")
	case c.AccessTTL < least || c.AccessTTL > time.Hour:
		return errors.New("access_ttl must lie in 1m…1h")
	}
	if text := c.SMTPURL.Reveal(); text != "" && text != ToLog {
		if _, err := mail.FromURL(text); err != nil {
			return fmt.Errorf("smtp_url %w", err)
		}
	}
	return nil
}

// OnLoopback reports whether only its own machine can reach a platform with a public URL.
func OnLoopback(publicURL string) bool {
	u, err := url.Parse(publicURL)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// mails is how mails leave. The error is that of a log: on a platform that others can reach.
func (c Config) mails(to *message.Config, publicURL string) error {
	switch text := c.SMTPURL.Reveal(); text {
	case "":
	case ToLog:
		if !OnLoopback(publicURL) {
			return errors.New("smtp_url: log: would write codes to the log, but others can reach the platform; " +
				"name a mail server")
		}
		to.ToLog = true
	default:
		server, err := mail.FromURL(text)
		if err != nil {
			return err
		}
		server.Dial = mail.Anywhere
		to.Platform = &server
	}
	return nil
}

// Spec describes the service with a configuration.
func Spec(c Config) service.Spec {
	return service.Spec{
		Name: "sign-in",
		Collections: slices.Concat(session.Collections(), person.Collections(), consent.Collections(),
			settings.Collections(), flow.Collections(), oidc.Collections(), saml.Collections(), cas.Collections(),
			notice.Collections(), signout.Collections(), message.Collections(), recovery.Collections(),
			invitation.Collections(), factor.Collections(), link.Collections()),
		New: c.new,
	}
}

// app is the service's parts.
type app struct {
	service.Deps
	sessions    *session.Sessions
	consents    *consent.Consents
	engine      *flow.Engine
	provider    *oidc.Provider
	saml        *saml.Provider
	cas         *cas.Server
	notices     *notice.Sender
	signOuts    *signout.SignOuts
	messages    *message.Sender
	recovery    *recovery.Recoveries
	invitations *invitation.Invitations
}

func (c Config) new(ctx context.Context, d service.Deps) (service.App, error) {
	if err := c.Validate(); err != nil {
		return service.App{}, err
	}
	seed, err := d.DataKey(ctx, "refresh tokens of people")
	if err != nil {
		return service.App{}, err
	}
	a := &app{Deps: d, consents: &consent.Consents{
		Store: d.Store,
		Withdrawn: func(ctx context.Context, userID, appID string) error {
			return oidc.EndConsent(ctx, d.Store, userID, appID)
		},
	}}
	a.sessions = session.New(session.Deps{Store: d.Store, Idle: c.SessionIdle, Max: c.SessionMax, Ended: a.ended})
	clients, signing := client.New(d.Bus, d.Clock), keys.New(d.Store)
	settled := &settings.Service{Store: d.Store}
	factors := &factor.Factors{Store: d.Store, Keys: d.Keys}
	own := flow.Own{
		Sessions: a.sessions, Consents: a.consents, Clients: clients, Factors: factors, Bus: d.Bus,
		Site:     factor.SiteOf(d.PublicURL),
		EndGrant: func(ctx context.Context, id, userID string) error { return a.provider.EndOwnGrant(ctx, id, userID) },
	}
	if err := a.addMails(c, settled); err != nil {
		return service.App{}, err
	}
	a.invitations = invitation.New(invitation.Config{
		Store: d.Store, Bus: d.Bus, Messages: a.messages, Clients: clients, Log: d.Log, Metrics: d.Metrics,
	})
	elsewhere, err := federation.New(federation.Config{
		Bus: d.Bus, HTTP: d.Outbound, Dialer: d.Dialer, Now: d.Store.Now,
	})
	if err != nil {
		return service.App{}, err
	}
	protocols := map[string]protocol.Protocol{flow.OwnPage: own}
	a.engine = flow.New(flow.Deps{
		Store: d.Store, Bus: d.Bus, Keys: d.Keys, Clients: clients, Sessions: a.sessions, Consents: a.consents,
		Settings: settled, Protocols: protocols, Recovery: a.recovery, Invitations: a.invitations,
		Factors: factors, Site: factor.SiteOf(d.PublicURL), Federation: elsewhere, Log: d.Log,
		Messages: a.messages,
	})
	if err := questions.WhatIsDue.Answer(d.Bus, a.engine.WhatIsDue); err != nil {
		return service.App{}, err
	}
	a.provider = oidc.New(oidc.Deps{
		Store: d.Store, Keys: signing, Clients: clients, Person: a.engine.Person, Exist: a.engine.Exist,
		MayUse: a.engine.MayUse,
		Groups: a.engine.Groups, Holds: a.engine.Holds, Consent: a.consents.Covering, Seed: seed,
		PublicURL: d.PublicURL, AccessTTL: c.AccessTTL, HTTP: d.Outbound, Log: d.Log,
		Metrics:         d.Metrics,
		HasApplications: a.hasApplications,
	})
	if err := a.addOthers(clients); err != nil {
		return service.App{}, err
	}
	protocols[protocol.OIDC], protocols[protocol.SAML], protocols[protocol.CAS] = a.provider, a.saml, a.cas
	server := d.Server("sign-in")
	httpapi.Register(server, httpapi.Deps{
		Engine: a.engine, Own: own, Sessions: a.sessions, Consents: a.consents, Settings: settled, OIDC: a.provider,
		SAML: a.saml, CAS: a.cas, SignOuts: a.signOuts, Messages: a.messages, Invitations: a.invitations, Log: d.Log,
		Factors:   factors,
		PublicURL: d.PublicURL,
	})
	return service.App{
		Handler: server, Tasks: a.tasks(), Followers: []stream.FollowerConfig{clients.Follower()},
		Consumers: []stream.ConsumerConfig{
			{Name: "sign-in-users", Types: stream.Types{"user.*"}, Handle: a.onUser},
			{Name: "sign-in-factors", Types: stream.Types{"factor.deleted"}, Handle: a.onFactorDeleted},
			{Name: "sign-in-links", Types: stream.Types{"credential.updated", "credential.deleted"}, Handle: a.onLink},
			{Name: "sign-in-connections", Handle: a.onConnection, Types: stream.Types{
				"connection.disabled", "connection.deleted",
			}},
			{Name: "sign-in-applications", Handle: a.onApplication, Types: stream.Types{
				"application.deleted", "application.disabled",
			}},
		},
	}, nil
}

// addMails makes what writes to people.
func (a *app) addMails(c Config, settled *settings.Service) (err error) {
	config := message.Config{
		Store: a.Store, Bus: a.Bus, Keys: a.Keys, Settings: settled, Dialer: a.Dialer, Log: a.Log, Metrics: a.Metrics,
		PublicURL: a.PublicURL,
	}
	if err = c.mails(&config, a.PublicURL); err != nil {
		return err
	}
	if config.ToLog {
		a.Log.Warn("mails are not sent: they are written to this log, with their codes")
	}
	if a.messages, err = message.New(config); err != nil {
		return err
	}
	a.recovery = recovery.New(recovery.Config{
		Store: a.Store, Bus: a.Bus, Keys: a.Keys, Messages: a.messages, Log: a.Log, Metrics: a.Metrics,
	})
	return nil
}

// addOthers makes the protocols beside OpenID Connect.
func (a *app) addOthers(clients *client.Clients) error {
	seed := make([]byte, 32)
	_, _ = rand.Read(seed) // never fails (crypto/rand)
	recipient, err := secret.NewRecipient(seed)
	if err != nil {
		return err
	}
	a.saml = saml.New(saml.Config{
		Store: a.Store, Clients: clients, Groups: a.engine.Groups, Recipient: recipient,
		SigningKey: func(ctx context.Context, q questions.SigningKeyQuestion) (questions.SigningKey, error) {
			return questions.SigningKeyOf.Ask(ctx, a.Bus, q)
		},
		HasApplications: a.hasApplications,
	})
	a.cas = cas.New(a.Store, clients, a.engine.Groups)
	a.notices = notice.New(notice.Deps{
		Store: a.Store, SAML: a.saml, CAS: a.cas, HTTP: a.Outbound, Log: a.Log, Metrics: a.Metrics,
	})
	a.signOuts = &signout.SignOuts{Store: a.Store, SAML: a.saml, Tell: a.notices.TellSAML}
	return nil
}

// hasApplications reports whether the tenant has any.
func (a *app) hasApplications(ctx context.Context) (bool, error) {
	found, err := questions.ApplicationRecords.Ask(ctx, a.Bus, questions.RecordsPage{Limit: 1})
	return len(found.Applications) > 0, err
}

// ended is told of each session that ends: the applications in it hear of it.
func (a *app) ended(ctx context.Context, tx *docstore.Tx, s *session.Session) error {
	issuer := a.PublicURL + "/sign-in/" + s.TenantID
	e := backchannel.Ended{Issuer: issuer, SessionID: s.ID, UserID: s.UserID}
	for _, entered := range s.Applications {
		if entered.Protocol == protocol.OIDC {
			e.AppIDs = append(e.AppIDs, entered.AppID)
		}
	}
	if err := oidc.TellLogout(ctx, tx, e); err != nil {
		return err
	}
	if err := oidc.EndSession(ctx, tx, s.ID); err != nil {
		return err
	}
	return a.notices.Tell(ctx, tx, issuer, s.ID)
}

// tasks are what falls due.
func (a *app) tasks() []service.Task {
	work := append(a.provider.Work(),
		service.DueWork{Name: "end sessions", Every: 10 * time.Second, Due: session.Due, Do: a.sessions.EndDue},
		service.DueWork{Name: "forget browsers", Every: time.Minute, Due: session.DueBrowsers,
			Do: a.sessions.ForgetBrowser},
		service.DueWork{Name: "forget links", Every: time.Minute, Due: link.Due,
			Do: func(ctx context.Context, id string) error { return link.Forget(ctx, a.Store, id) }},
		service.DueWork{Name: "forget flows", Every: time.Minute, Due: flow.Due, Do: a.engine.Forget},
		service.DueWork{Name: "forget recoveries", Every: time.Minute, Due: recovery.Due, Do: a.recovery.Forget},
		service.DueWork{Name: "end invitations", Every: time.Minute, Due: invitation.Due, Do: a.invitations.Apply},
		service.DueWork{Name: "forget counts of mails", Every: time.Minute, Due: message.Due, Do: a.messages.Forget},
		service.DueWork{Name: "forget CAS tickets", Every: 10 * time.Second, Due: cas.Due, Do: a.cas.Expire},
		service.DueWork{Name: "give up sign-outs in browsers", Every: 10 * time.Second, Due: signout.Due,
			Do: a.signOuts.GiveUp},
	)
	for _, e := range a.saml.Expiring() {
		work = append(work, service.DueWork{Name: e.Name, Every: time.Minute, Due: e.Due, Do: e.Do})
	}
	tasks := []service.Task{
		a.provider.Logouts(), service.QueueTask(a.notices.Name, a.notices),
		service.QueueTask(a.messages.Codes.Name, a.messages.Codes),
		service.QueueTask(a.messages.Invitations.Name, a.messages.Invitations),
		service.QueueTask(a.recovery.Name, a.recovery), service.QueueTask(a.invitations.Name, a.invitations),
	}
	for _, w := range work {
		tasks = append(tasks, a.DueTask(w))
	}
	return tasks
}
