package flow

import (
	"context"
	"net/netip"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// Guess is a kind of secret that people can guess. Each kind has its own counts, so guesses at device codes do not slow
// down passwords.
type Guess string

// The kinds of guesses.
const (
	Password   Guess = "password"
	DeviceCode Guess = "device code"
	MailCode   Guess = "mail code"
	FactorCode Guess = "factor code" // of an app, or a recovery code
	// DirectoryPassword is a password of another provider that is asked for here.
	DirectoryPassword Guess = "directory password"
	// PasskeyAnswer cannot be guessed; each wrong one costs an event.
	PasskeyAnswer Guess = "passkey"
	// ProviderCode cannot be guessed; each wrong one costs another provider a request.
	ProviderCode Guess = "provider code"
)

// failures counts wrong guesses, by the minute, in the memory of a replica. The users service counts wrong passwords
// for each user, in its store.
//
// An address with too many failures is refused. In a tenant with too many, each attempt waits: strangers with many
// addresses can cause that at will, so a refusal would lock people out. Failures of its own network lengthen the wait.
type failures struct {
	now    func() clock.Time
	counts *cache.Cache[string, minute]
	turns  *cache.Cache[string, clock.Time] // by network: when its last waiting attempt begins
}

// minute is a count that begins at a time.
type minute struct {
	begun clock.Time
	n     int
}

const (
	// maxCounts bounds the memory. The least used are forgotten first.
	maxCounts = 100_000
	// pause is how long an attempt waits in a tenant with too many failures. Each failure of its network doubles it.
	pause      = time.Second
	maxDoubled = 3
	// maxWait is how long an attempt waits for earlier ones of its network. Beyond it, the network is refused.
	maxWait = 12 * time.Second
)

func newFailures(now func() clock.Time) *failures {
	return &failures{now: now, counts: cache.New[string, minute](maxCounts),
		turns: cache.New[string, clock.Time](maxCounts)}
}

// counted are the keys that a visitor's guesses count for.
type counted struct {
	tenant string
	// address is an IPv4 address or an IPv6 network of 64 bits, because one machine has so many. It is empty for a
	// loopback address: that is a proxy on the same machine, or its owner.
	address string
	// network is what takes turns: an IPv4 address or an IPv6 network of 48 bits, because one customer can have that.
	network string
}

func keysOf(ctx context.Context, kind Guess, v Visitor) counted {
	k := counted{tenant: string(kind) + " " + request.Tenant(ctx)}
	if address, network := addressOf(v); address != "" {
		k.address, k.network = k.tenant+" "+address, k.tenant+" "+network
	}
	return k
}

// addressOf returns a visitor's address and network, as counted has them.
func addressOf(v Visitor) (address, network string) {
	addr, err := netip.ParseAddr(v.Address)
	addr = addr.Unmap()
	switch {
	case err != nil || addr.IsLoopback():
		return "", ""
	case addr.Is6():
		return netip.PrefixFrom(addr, 64).Masked().String(), netip.PrefixFrom(addr, 48).Masked().String()
	}
	return addr.String(), addr.String()
}

func (f *failures) number(key string) int {
	m, ok := f.counts.Get(key)
	if !ok || f.now().Sub(m.begun) >= time.Minute {
		return 0
	}
	return m.n
}

// refused reports whether an address has failed as often as the settings bear.
func (f *failures) refused(k counted, limits *settings.Settings) bool {
	return k.address != "" && f.number(k.address) >= limits.FailuresPerMin
}

// slow reports whether a tenant has as many failures as the settings bear.
func (f *failures) slow(k counted, limits *settings.Settings) bool {
	return f.number(k.tenant) >= limits.FailuresOfTenant
}

// turn takes the next turn of a network, and returns how long it is until then; false if too many wait already.
func (f *failures) turn(k counted) (wait time.Duration, ok bool) {
	if k.network == "" {
		return pause, true
	}
	now, step := f.now(), pause<<min(f.number(k.network), maxDoubled)
	f.turns.Change(k.network, func(last clock.Time, found bool) clock.Time {
		next := now.Add(step)
		if found && last.After(now) {
			next = last.Add(step)
		}
		if wait = next.Sub(now); wait > maxWait {
			return last
		}
		return next
	})
	return wait, wait <= maxWait
}

// count counts a failure. It reports whether the address had as many as the settings bear before.
func (f *failures) count(k counted, limits *settings.Settings) (over bool) {
	now := f.now()
	keys := []string{k.tenant, k.address}
	if k.network != k.address {
		keys = append(keys, k.network)
	}
	for _, key := range keys {
		if key == "" {
			continue
		}
		f.counts.Change(key, func(old minute, found bool) minute {
			if !found || now.Sub(old.begun) >= time.Minute {
				old = minute{begun: now}
			}
			old.n++
			return old
		})
	}
	return k.address != "" && f.number(k.address) > limits.FailuresPerMin
}

// Attempt is a guess that may be looked at.
type Attempt struct {
	engine    *Engine
	kind      Guess
	keys      counted
	limits    *settings.Settings
	visitor   Visitor
	loginName string
}

// Admit waits until a guess may be looked at; nil if it may not, because there were too many failures. A browser in
// which the person with the login name has signed in before always may: the users service counts its failures.
func (e *Engine) Admit(ctx context.Context, kind Guess, v Visitor, loginName string) (*Attempt, error) {
	limits, err := e.Settings.Of(ctx)
	if err != nil {
		return nil, err
	}
	a := &Attempt{e, kind, keysOf(ctx, kind, v), limits, v, loginName}
	refused, slow := e.failures.refused(a.keys, limits), e.failures.slow(a.keys, limits)
	if !refused && !slow {
		return a, nil
	}
	known, err := a.known(ctx)
	switch {
	case known || err != nil:
		return a, err
	case refused:
		return nil, nil
	}
	wait, ok := e.failures.turn(a.keys)
	if !ok {
		return nil, nil
	}
	return a, e.Pause(ctx, wait)
}

// Settle counts a wrong guess, and reports whether its sender may learn what came of it. Not if others of the address
// have failed meanwhile: attempts that run at the same time have all found room.
func (a *Attempt) Settle(ctx context.Context, right bool) (bool, error) {
	var over bool
	if right {
		over = a.engine.failures.refused(a.keys, a.limits)
	} else {
		over = a.engine.failures.count(a.keys, a.limits)
	}
	if !over {
		return true, nil
	}
	return a.known(ctx)
}

// known reports whether the person with the login name has signed in with the browser before; for another provider's
// answer, whether anybody has.
func (a *Attempt) known(ctx context.Context) (bool, error) {
	if a.visitor.Browser == "" || a.loginName == "" && a.kind != ProviderCode {
		return false, nil
	}
	ids, err := a.engine.Sessions.KnownTo(ctx, a.visitor.Browser)
	if err != nil || a.kind == ProviderCode {
		return len(ids) > 0, err
	}
	for _, id := range ids {
		p, err := person.Find(ctx, a.engine.Store, id)
		if apperr.IsNotFound(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		u, err := person.Parse(p.User)
		if err != nil || u.Answers(a.loginName) {
			return err == nil, err
		}
	}
	return false, nil
}

// The flows that an address may begin without a session and without a password: many people of one office at once.
const (
	beginsAtOnce    = 120
	beginsPerSecond = 1
)

// How many users can be made by sign-ins at other providers from one address: a whole office on its first day.
const (
	createsAtOnce    = 500
	createsPerSecond = 0.2
)

// hasRoom reports whether a flow may be stored for a visitor who has proven nothing. One with a session always may, and
// wrong passwords have limits of their own.
func (e *Engine) hasRoom(ctx context.Context, f *Flow, v Visitor) (bool, error) {
	address := keysOf(ctx, "", v).address
	if f.ID != "" || address == "" || e.begins.Take(address) == 0 {
		return true, nil
	}
	s, err := e.Sessions.Of(ctx, v.Cookie)
	return s != nil, err
}

// wait waits for a time, or until the request ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return apperr.Away("this service", ctx.Err())
	case <-timer.C:
		return nil
	}
}
