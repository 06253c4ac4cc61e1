package message

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/mail"
)

// servers knows the mail servers of tenants.
type servers struct {
	Config
	bus       *bus.Bus
	recipient *secret.Recipient
	have      *cache.Cache[string, answer] // by tenant
}

// answer is whether a tenant had a mail server at a time.
type answer struct {
	has  bool
	read clock.Time
}

const (
	// reread is how long it is remembered whether a tenant has a mail server. Messages always ask.
	reread     = time.Minute
	maxTenants = 10_000
	// glance is how long a page waits for it, and retryAfter how long it is not asked again then.
	glance     = 500 * time.Millisecond
	retryAfter = 5 * time.Second

	provider = "mfa_mail"
)

func newServers(c Config) (*servers, error) {
	seed := make([]byte, 32)
	_, _ = rand.Read(seed) // never fails (crypto/rand)
	recipient, err := secret.NewRecipient(seed)
	if err != nil {
		return nil, err
	}
	return &servers{c, c.Bus, recipient, cache.New[string, answer](maxTenants)}, nil
}

// ofConnection returns the mail server that the tenant's connection names. The error is mail.ErrNoServer if there is
// none, or apperr.Unavailable.
func (s *servers) ofConnection(ctx context.Context) (mail.Server, error) {
	sealed, err := questions.SettingsOfConnection.Ask(ctx, s.bus, questions.SettingsQuestion{
		ProviderCode: provider, To: s.recipient.Key(),
	})
	if apperr.IsNotFound(err) {
		return mail.Server{}, mail.ErrNoServer
	}
	if err != nil {
		return mail.Server{}, err
	}
	fields, err := s.recipient.Open(sealed.Sealed, questions.ForSettings)
	if err != nil {
		return mail.Server{}, err
	}
	server, err := mail.FromConnection([]byte(fields.Reveal()))
	server.Dial = s.Dialer.DialContext
	return server, err
}

// known reports whether the tenant's connection names a mail server, as it was within the last minute. A page asks,
// only to show a link: so it waits for half a second at most, others do not wait meanwhile, and no failure stops it.
// Then it is as it was before.
func (s *servers) known(ctx context.Context) bool {
	tenant, now := request.Tenant(ctx), s.Store.Now()
	last, ok := s.have.Get(tenant)
	if ok && now.Sub(last.read) >= 0 && now.Sub(last.read) < reread {
		return last.has
	}
	s.have.Set(tenant, answer{last.has, now.Add(retryAfter - reread)})
	asking, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	_, err := s.ofConnection(asking)
	if err != nil && !errors.Is(err, mail.ErrNoServer) {
		s.Log.WarnContext(ctx, "it is not known whether the tenant has a mail server", "error", err)
		return last.has
	}
	s.have.Set(tenant, answer{err == nil, now})
	return err == nil
}
