// Package probe tests connections: it connects to a provider as a login would, as far as that is possible without a
// person. For each step it returns whether it worked and, if not, what an administrator can change.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/identity-sources/internal/provider"
)

const (
	atOnce   = 32               // the most tests that run at a time, of all tenants
	share    = 4                // the same of one tenant
	waiting  = 64               // the most tests that wait
	waitTurn = 2 * time.Second  // how long a test waits
	whole    = 12 * time.Second // how long a test takes
	oneStep  = 6 * time.Second  // how long one step takes
)

// Result is the outcome of a test. It is OK if every step is.
type Result struct {
	OK    bool   `json:"ok" doc:"Whether all steps worked"`
	Steps []Step `json:"steps" doc:"In the order in which they were tried; none after one that failed"`
}

// Step is one step of a test.
type Step struct {
	Name       string `json:"name" doc:"What was tried"`
	OK         bool   `json:"ok" doc:"Whether it worked"`
	Message    string `json:"message" doc:"What was found"`
	DurationMS int64  `json:"duration_ms" doc:"How long it took"`
}

// Config is a connection's config_fields with its secrets in plain text. It must reach no log, event or answer.
type Config map[string]json.RawMessage

// text returns the text of a field, or absent if the field is missing.
func (c Config) text(name, absent string) string {
	text := absent
	if value, ok := c[name]; ok {
		_ = json.Unmarshal(value, &text) // the provider's schema has checked it
	}
	return text
}

// Prober tests connections. It is safe for concurrent use: 32 tests run at a time, 4 of a tenant, and
// tenants take turns.
type Prober struct {
	client *http.Client
	dialer *net.Dialer
	gate   *fair.Semaphore
}

// New makes a Prober. Its client and dialer come from package outbound, which guards requests that leave the platform.
func New(client *http.Client, dialer *net.Dialer) *Prober {
	gate := fair.NewSemaphore("tests of connections", atOnce, atOnce+waiting)
	gate.Share(share)
	return &Prober{client: client, dialer: dialer, gate: gate}
}

// Test tests a connection within 14 seconds. With offline it makes no requests to others. The error is
// apperr.Unavailable if too many tests are running.
func (p *Prober) Test(ctx context.Context, of *provider.Provider, c Config, offline bool) (Result, error) {
	turn, cancel := context.WithTimeout(ctx, waitTurn)
	defer cancel()
	leave, err := p.gate.Enter(turn, request.Tenant(ctx), 1)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	ctx, cancel = context.WithTimeout(ctx, whole)
	defer cancel()
	r := &run{ctx: ctx, Prober: p, config: c}
	r.shapes(of)
	if !offline {
		r.ask(of)
	}
	if err := context.Cause(ctx); errors.Is(err, context.Canceled) {
		return Result{}, err // the caller has disconnected
	}
	return r.result(), nil
}

// run is one test.
type run struct {
	*Prober
	ctx    context.Context
	config Config
	steps  []Step
	conn   *outbound.BoundedConn // the last connection; nil for HTTP
}

// step runs one step. The result has the message that fn returns or, for an error, its explanation.
func (r *run) step(name string, try func(ctx context.Context) (string, error)) bool {
	began := time.Now()
	ctx, cancel := context.WithTimeout(r.ctx, oneStep)
	defer cancel()
	message, err := try(ctx)
	if err != nil {
		message = explain(r.cause(ctx, err))
	}
	r.steps = append(r.steps, Step{Name: name, OK: err == nil, Message: message,
		DurationMS: time.Since(began).Milliseconds()})
	return err == nil
}

// cause returns why a step failed, because libraries may only report that the connection was closed.
func (r *run) cause(ctx context.Context, err error) error {
	_, explained := errors.AsType[fault](err)
	deadline, _ := ctx.Deadline() // a connection may time out shortly before ctx does
	switch {
	case explained:
		return err
	case r.conn != nil && r.conn.Exceeded():
		return outbound.ErrTooLarge
	case !time.Now().Before(deadline):
		return context.DeadlineExceeded
	}
	return err
}

func (r *run) result() Result {
	ok := true
	for _, s := range r.steps {
		ok = ok && s.OK
	}
	if len(r.steps) == 0 {
		return Result{OK: true, Steps: []Step{{Name: "settings", OK: true,
			Message: "nothing outside the platform is needed"}}}
	}
	return Result{OK: ok, Steps: r.steps}
}

// shapes compares the settings with the usual forms of the provider.
func (r *run) shapes(of *provider.Provider) {
	for _, name := range of.ShapeNames() {
		if _, given := r.config[name]; !given {
			continue
		}
		shape := of.Shapes[name]
		r.step(name, func(context.Context) (string, error) {
			if !shape.Pattern.MatchString(r.config.text(name, "")) {
				return "", fault(shape.Hint)
			}
			return "looks like one of " + of.Name, nil
		})
	}
}

// ask runs the steps of the provider's protocol.
func (r *run) ask(of *provider.Provider) {
	switch of.Check {
	case provider.OIDCCheck:
		r.oidc(of)
	case provider.SAMLCheck:
		r.saml()
	case provider.LDAPCheck:
		r.ldap()
	case provider.CASCheck:
		r.cas()
	case provider.SMTPCheck:
		r.smtp()
	case provider.NoCheck, provider.ShapeCheck:
	}
}
