// Package client knows the applications and the login templates of each tenant, as far as sign-in needs them. It asks
// their owners (applications, identity-sources) and keeps the answers: until an event says that something of the tenant
// has changed, and for ten minutes at most, so that people can sign in while an owner is away for a moment.
package client

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/questions"
)

const (
	// good is how long an answer is used without its owner.
	good = 10 * time.Minute
	// maxAnswers bounds the answers that a replica keeps of each kind. The least used are dropped first.
	maxAnswers = 10_000
	// maxLists bounds the lists of applications that a replica keeps, one of a tenant.
	maxLists = 100
	// maxPages bounds the applications that are looked at for a list.
	maxPages, perPage = 10, 200
	// maxName bounds the names that are looked up, in bytes: those of applications are shorter.
	maxName = 2048
)

// Clients are the applications and login templates, for one replica. They are safe for concurrent use.
type Clients struct {
	bus       *bus.Bus
	clock     clock.Clock
	follower  atomic.Pointer[stream.Follower]
	all       atomic.Int64 // how often everything was dropped
	mu        sync.Mutex
	changes   map[string]int64 // how many events each tenant had
	clients   *cache.Cache[string, answer[questions.Client]]
	templates *cache.Cache[string, answer[questions.LoginTemplate]]
	lists     *cache.Cache[string, answer[[]questions.Launchable]]
}

// answer is what an owner has answered, and when it was asked.
type answer[T any] struct {
	value T
	asked clock.Time
	age   age
}

// age counts what has happened since the start. An answer is out of date once it differs.
type age struct{ all, tenant int64 }

// New makes an empty cache. Follower must run for as long as it is used.
func New(b *bus.Bus, clk clock.Clock) *Clients {
	return &Clients{
		bus: b, clock: clk, changes: map[string]int64{},
		clients:   cache.New[string, answer[questions.Client]](maxAnswers),
		templates: cache.New[string, answer[questions.LoginTemplate]](maxAnswers),
		lists:     cache.New[string, answer[[]questions.Launchable]](maxLists),
	}
}

// Follower drops what events say is out of date.
func (c *Clients) Follower() stream.FollowerConfig {
	return stream.FollowerConfig{
		Name: "clients",
		Types: stream.Types{
			"application.*", "protocol.*", "auth_template.*",
			"auth_method.*", "connection.*", "connection_domain.*",
		},
		Snapshot: func(context.Context) error {
			c.all.Add(1)
			return nil
		},
		Handle: func(_ context.Context, e stream.Event) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.changes[e.Tenant]++
			return nil
		},
		Started: func(f *stream.Follower) { c.follower.Store(f) },
	}
}

// Of returns an application of the tenant. A service of CAS is named by its URL, of which the query does not count. The
// error is apperr.NotFound, or Unavailable if the applications service does not answer and has not within ten minutes.
func (c *Clients) Of(ctx context.Context, name questions.ClientName) (questions.Client, error) {
	key := name.ClientID
	switch {
	case name.ClientID != "":
		key = "c" + key
	case name.AppID != "":
		key = "a" + name.AppID
	case name.SPEntity != "":
		key = "e" + name.SPEntity
	case name.Origin != "":
		key = "o" + name.Origin
	default:
		var ok bool
		if name.Service, ok = place(name.Service); !ok {
			return questions.Client{}, apperr.Missing("application")
		}
		key = "s" + name.Service
	}
	if len(key) > maxName {
		return questions.Client{}, apperr.Missing("application")
	}
	return ask(ctx, c, c.clients, key, func() (questions.Client, error) {
		return questions.ClientOf.Ask(ctx, c.bus, name)
	})
}

// Launchable returns the tenant's applications that people can open from a list, of the first 2,000. Callers must not
// change it. The error is apperr.Unavailable if the applications service does not answer and has not within ten
// minutes.
func (c *Clients) Launchable(ctx context.Context) ([]questions.Launchable, error) {
	return ask(ctx, c, c.lists, "", func() ([]questions.Launchable, error) {
		var all []questions.Launchable
		q := questions.RecordsPage{Limit: perPage}
		for range maxPages {
			page, err := questions.LaunchableApplications.Ask(ctx, c.bus, q)
			if err != nil {
				return nil, err
			}
			all = append(all, page.Applications...)
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		return all, nil
	})
}

// Template returns a login template of the tenant; its default for an empty code. The error is apperr.Unavailable if
// the identity-sources service does not answer and has not within ten minutes.
func (c *Clients) Template(ctx context.Context, code string) (questions.LoginTemplate, error) {
	if len(code) > maxName {
		return questions.LoginTemplate{}, nil
	}
	return ask(ctx, c, c.templates, code, func() (questions.LoginTemplate, error) {
		return questions.LoginTemplateOf.Ask(ctx, c.bus, questions.TemplateCode{Code: code})
	})
}

// place is a URL without its query and fragment. ok is false if it is none of a web server.
func place(service string) (text string, ok bool) {
	u, err := url.Parse(service)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return "", false
	}
	text, _, _ = strings.Cut(service, "#")
	text, _, _ = strings.Cut(text, "?")
	return text, true
}

// ask returns the kept answer, if it is up to date, or asks. While events do not arrive it may be old: the
// owner is then asked, and the kept answer is used without its answer.
func ask[T any](
	ctx context.Context, c *Clients, cache *cache.Cache[string, answer[T]], key string, question func() (T, error),
) (T, error) {
	tenant := request.Tenant(ctx)
	key = tenant + "/" + key
	now, age := c.clock.Now(), c.age(tenant)
	kept, ok := cache.Get(key)
	ok = ok && kept.age == age && now.Before(kept.asked.Add(good))
	if ok && c.hears() {
		return kept.value, nil
	}
	value, err := question()
	switch {
	case err == nil:
		cache.Set(key, answer[T]{value, now, age}) // what changed meanwhile makes it out of date
		return value, nil
	case apperr.IsNotFound(err):
		cache.Delete(key)
	case ok && apperr.KindOf(err) == apperr.Unavailable:
		return kept.value, nil
	}
	var none T
	return none, err
}

func (c *Clients) age(tenant string) age {
	all := c.all.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	return age{all, c.changes[tenant]}
}

// hears reports whether events arrive.
func (c *Clients) hears() bool {
	f := c.follower.Load()
	return f != nil && f.Ready() == nil && f.Age() == 0
}
