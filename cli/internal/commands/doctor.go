package commands

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/operations"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

const (
	stateOK      = "ok"
	stateWarning = "warning"
	stateFault   = "fault"

	lookLimit  = 30 * time.Second    // the document of all operations takes a busy machine 10 s
	tlsWarning = 14 * 24 * time.Hour // before a certificate ends
	skewLimit  = 30 * time.Second    // of clocks: signed assertions and tokens are refused beyond a minute
)

// finding is a line of doctor.
type finding struct {
	Check   string `json:"check"`
	State   string `json:"state"`
	Message string `json:"message"`
	Advice  string `json:"advice"`
}

// examination collects findings.
type examination struct {
	session  *session.Session
	address  *url.URL
	findings []finding
}

func (e *examination) ok(check, format string, args ...any) {
	e.findings = append(e.findings, finding{check, stateOK, fmt.Sprintf(format, args...), ""})
}

func (e *examination) bad(state, check, advice, format string, args ...any) {
	e.findings = append(e.findings, finding{check, state, fmt.Sprintf(format, args...), advice})
}

// doctor makes the command that finds out why something does not work.
func doctor(a *App) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Find out what is wrong between here and the platform", Args: cobra.NoArgs,
		Long: "Look at the configuration, the network, the platform and the credential: a line each, with what\n" +
			"to do. The exit code is 10 if there is a fault.",
		Example: "  idp doctor\n  idp doctor -o json",
		RunE:    a.run(examine),
	}
}

func examine(ctx context.Context, s *session.Session, _ []string) error {
	printer, err := s.Printer()
	if err != nil {
		return err
	}
	e := &examination{session: s}
	e.look(ctx)
	body, err := json.Marshal(e.findings)
	if err != nil {
		return err
	}
	view := output.View{Columns: columns("check", "state", "message", "advice"), Name: "check"}
	if err := printer.Body(body, view); err != nil {
		return err
	}
	if slices.ContainsFunc(e.findings, func(f finding) bool { return f.State == stateFault }) {
		return failure.ErrNo
	}
	return nil
}

// look goes from here to the platform. What cannot be looked at after a fault is left out.
func (e *examination) look(ctx context.Context) {
	client, err := e.configuration()
	if err != nil || !e.network(ctx) {
		return
	}
	if !e.readiness(ctx) {
		return
	}
	e.credential(ctx, client)
	e.operations(ctx)
}

func (e *examination) configuration() (*idp.Client, error) {
	client, err := e.session.Client()
	if err != nil {
		e.bad(stateFault, "configuration", "idp login URL", "%v", err)
		return nil, err
	}
	name, c, err := e.session.ContextName()
	if err != nil {
		e.bad(stateFault, "configuration", "idp login URL", "%v", err)
		return nil, err
	}
	if e.address, err = url.Parse(c.URL); err != nil {
		e.bad(stateFault, "configuration", "idp login URL", "the URL cannot be read")
		return nil, err
	}
	if name == "" {
		name = "of the IDPCLI_ variables"
	}
	e.ok("configuration", "context %s, %s", name, e.session.Target())
	if ip := net.ParseIP(e.address.Hostname()); e.address.Scheme == "http" && (ip == nil || !ip.IsLoopback()) &&
		e.address.Hostname() != "localhost" {
		e.bad(stateWarning, "encryption", "use https", "secrets go to %s unencrypted", e.address.Host)
	}
	return client, nil
}

// network finds the way: through a proxy or not, and to which address.
func (e *examination) network(ctx context.Context) bool {
	ctx, cancel := session.AwaitedBy(ctx, lookLimit)
	defer cancel()
	host := e.address.Hostname()
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: e.address})
	switch {
	case err != nil:
		e.bad(stateFault, "proxy", "correct HTTP_PROXY and HTTPS_PROXY", "the proxy's URL cannot be read")
		return false
	case proxy != nil:
		e.ok("proxy", "requests go through %s", proxy.Host)
		host = proxy.Hostname() // which looks up the platform's name itself
	default:
		e.ok("proxy", "none")
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		e.bad(stateFault, "dns", "look at the name in the URL, and at this machine's DNS", "%s has no address", host)
		return false
	}
	e.ok("dns", "%s is %s", host, strings.Join(addresses, ", "))
	return true
}

// certificate looks at what a TLS handshake brought.
func (e *examination) certificate(state tls.ConnectionState, err error) {
	if err != nil {
		e.bad(stateFault, "tls", "look at the certificate: its name, its end and who signed it", "%v", err)
		return
	}
	ends := state.PeerCertificates[0].NotAfter
	left := time.Until(ends)
	switch {
	case left < 0:
		e.bad(stateFault, "tls", "replace the certificate", "it ended on %s", ends.Format(time.DateOnly))
	case left < tlsWarning:
		e.bad(stateWarning, "tls", "replace the certificate", "it ends in %d days", int(left.Hours()/24))
	default:
		e.ok("tls", "good until %s", ends.Format(time.DateOnly))
	}
}

// readiness asks /readyz. It reports whether somebody answers.
func (e *examination) readiness(ctx context.Context) bool {
	ctx, cancel := session.AwaitedBy(ctx, lookLimit)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{TLSHandshakeDone: e.certificate})
	response, err := e.session.Glance(ctx, "/readyz")
	if err != nil {
		e.bad(stateFault, "platform", "look whether it runs, and at the firewall", "it does not answer: %v", err)
		return false
	}
	defer response.Body.Close()
	var answer struct {
		Status   string
		Services map[string]string
		Warnings map[string][]string
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status == "" {
		e.bad(stateFault, "platform", "look at the URL: something else answers there",
			"%s/readyz is not the platform's: %s", e.address, response.Status)
		return false
	}
	if response.StatusCode != http.StatusOK {
		status := strings.ReplaceAll(answer.Status, "_", " ")
		e.bad(stateFault, "platform", "look at the platform's log", "it is %s", status)
	} else {
		e.ok("platform", "ready, %d services", len(answer.Services))
	}
	for _, service := range slices.Sorted(maps.Keys(answer.Services)) {
		if answer.Services[service] != "ready" {
			e.bad(stateWarning, "platform", "look at the log of "+service, "%s is not ready", service)
		}
		for _, warning := range answer.Warnings[service] {
			e.bad(stateWarning, "platform", "look at the log of "+service, "%s works %s", service, warning)
		}
	}
	e.clock(response.Header.Get("Date"))
	return true
}

// clock compares this machine's clock with the platform's.
func (e *examination) clock(date string) {
	at, err := http.ParseTime(date)
	if err != nil {
		return // a proxy left it out
	}
	if skew := time.Since(at).Abs(); skew > skewLimit {
		e.bad(stateWarning, "clock", "set this machine's clock", "it differs from the platform's by %v",
			skew.Round(time.Second))
		return
	}
	e.ok("clock", "as the platform's")
}

// operations compares what idp and the platform know of each other.
func (e *examination) operations(ctx context.Context) {
	ctx, cancel := session.AwaitedBy(ctx, lookLimit)
	defer cancel()
	server, err := e.session.ServerTable(ctx)
	if err != nil {
		e.bad(stateWarning, "operations", "look at /openapi.json of the platform", "%v", err)
		return
	}
	own := operations.CompiledIn()
	newer, older := missing(server, own), missing(own, server)
	switch {
	case len(newer) > 0:
		e.bad(stateWarning, "operations", "update idp, or call them with idp api --from-server",
			"the platform has %d that this idp does not know, such as %s", len(newer), newer[0])
	case len(older) > 0:
		e.bad(stateWarning, "operations", "update the platform, or start the service that has them",
			"the platform lacks %d of idp's, such as %s", len(older), older[0])
	default:
		e.ok("operations", "%d, as the platform's", len(own.All))
	}
}

// missing lists the operations that one table has and another has not.
func missing(from, in *operations.Table) []string {
	var out []string
	for _, o := range from.All {
		if in.Find(o.ID) == nil {
			out = append(out, o.ID)
		}
	}
	return out
}

// credential gets a token and asks what it may do.
func (e *examination) credential(ctx context.Context, client *idp.Client) {
	ctx, cancel := session.AwaitedBy(ctx, lookLimit)
	defer cancel()
	who, err := client.WhoAmI(ctx)
	if err != nil {
		e.bad(stateFault, "credential", "idp login again", "%v", err)
		return
	}
	e.ok("credential", "%s, the token is good until %s", who.Actor, who.TimeExpires.Local().Format(time.DateTime))
	if len(who.Scopes) == 0 {
		e.bad(stateWarning, "scopes", "give the application scopes", "none: the token may do nothing")
	} else {
		e.ok("scopes", "%s", strings.Join(who.Scopes, " "))
	}
	admin := slices.Contains(who.Scopes, "platform:admin")
	if tenant := e.session.TenantName(); tenant != "" && tenant != who.TenantID && !admin {
		e.bad(stateFault, "tenant", "leave --tenant and IDPCLI_TENANT out",
			"%s is not the credential's tenant, which is %s", tenant, who.TenantID)
	} else if _, err := client.ListUsers(ctx, idp.ListUsersParams{PageSize: 1}); idp.CodeOf(err) == session.NoTenant {
		e.bad(stateFault, "tenant", "look at its name; --create-tenant makes one", "there is no tenant %s", tenant)
	} else {
		e.ok("tenant", "%s", cmp.Or(tenant, who.TenantID))
	}
	e.ok("versions", "platform %s, idp %s", who.PlatformVersion, version())
}
