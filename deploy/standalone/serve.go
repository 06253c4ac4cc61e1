package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/idplatform/idplatform/pkg/memory"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/services/applications"
)

// garbagePercent is how much garbage may gather, of the heap in use. Most of it is short-lived, and a calm process has
// little. With 60, pages of 50 users are answered a fifth slower; after a load of 20,000 users and as many creations
// the process has 265 MiB instead of 380.
const garbagePercent = 200

// serve runs the platform until SIGTERM or SIGINT, then drains it.
func serve(ctx context.Context, args []string, out, notes io.Writer) (err error) {
	s, err := load(args, out)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	log := telemetry.NewLogger(notes, s.Log.Level, s.Log.Format)
	memory.Limit(int64(s.Caches.MiB)<<20, log)
	f, unlock, err := takeFolder(s.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.tighten(log); err != nil {
		return err
	}

	// The listener comes first: if the port is in use, nothing else needs to start.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("%w: choose another address with IDP_LISTEN", err)
	}
	defer listener.Close()
	registry := telemetry.NewRegistry()
	address := baseURL(s, listener.Addr())
	p, err := start(ctx, s, f, address, log, registry)
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.DrainTimeout)
		defer cancel()
		err = errors.Join(err, p.stop(stopping))
	}()
	admin, err := telemetry.ServeAdmin(context.WithoutCancel(ctx), s.AdminListen,
		telemetry.AdminHandler(registry, telemetry.ReadBuild()), log)
	if err != nil {
		return fmt.Errorf("%w: choose another address with IDP_ADMIN_LISTEN, or off", err)
	}
	defer admin.Close()

	stopControl, err := f.listenControl(p.source(f), log)
	if err != nil {
		return err
	}
	defer stopControl()
	if err := f.replace(addressFile, address); err != nil {
		return err
	}
	administrator, err := f.administrator(s.Bootstrap)
	if err != nil {
		return err
	}
	greet(out, s, f, p, address, admin.Addr())
	greetConsole(ctx, out, s, f, p, address, administrator)
	debug.FreeOSMemory() // what only the start needed
	return p.gateway.Serve(ctx, listener)
}

// baseURL returns the URL at which this machine reaches the platform.
func baseURL(s settings, listen net.Addr) string {
	address := listen.String()
	if at, ok := listen.(*net.TCPAddr); ok && at.IP.IsUnspecified() {
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port))
	}
	if s.TLS.CertFile != "" {
		return "https://" + address
	}
	return "http://" + address
}

// greet prints the addresses of the platform and how to use them.
func greet(out io.Writer, s settings, f folder, p *platform, base, admin string) {
	fmt.Fprintf(out, "idplatform is running\n\n")
	fmt.Fprintf(out, "  API      %s/v1/users\n", base)
	fmt.Fprintf(out, "  docs     %s/docs\n", base)
	fmt.Fprintf(out, "  token    IDP_DATA_DIR=%s %s token\n", f.path, program())
	if s.Bootstrap.ClientID == "" {
		fmt.Fprintf(out, "  client   the administrator's id and secret are in %s\n", f.join(administratorFile))
	}
	if s.PublicURL == "" {
		fmt.Fprintf(out, "  issuer   %s, because IDP_PUBLIC_URL is not set\n", base)
	}
	fmt.Fprintf(out, "  data     %s\n", f.path)
	if p.natsURL != "" {
		fmt.Fprintf(out, "  events   nats sub --server \"$(cat %s)\" 'idp.events.>'\n", f.join("nats.url"))
		fmt.Fprintf(out, "  jobs     nats reply --server \"$(cat %s)\" 'idp.jobs.<tenant>.<subject>' ''\n",
			f.join(workersURL))
	}
	if s.logsMails(base) {
		fmt.Fprintf(out, "  mails    are not sent, they are in this log, because IDP_SIGN_IN_SMTP_URL is not set\n")
	}
	if admin != "" {
		fmt.Fprintf(out, "  metrics  http://%s/metrics\n", admin)
	}
	fmt.Fprintf(out, "\nTry: curl -H \"Authorization: Bearer $(IDP_DATA_DIR=%s %s token)\" %s/v1/users\n",
		f.path, program(), base)
}

// greetConsole prints the console's address and, if the administrator may have a token, a link that signs in.
func greetConsole(
	ctx context.Context, out io.Writer, s settings, f folder, p *platform, base string,
	administrator applications.Bootstrap,
) {
	if p.console == nil {
		return
	}
	base = cmp.Or(s.PublicURL, base)
	path, err := p.console.Link(ctx, administrator.ClientID, administrator.ClientSecret.Reveal())
	if err != nil {
		fmt.Fprintf(out, "\nConsole: %s/console\n", base)
		return
	}
	fmt.Fprintf(out, "\nConsole: %s%s\n", base, path)
	fmt.Fprintf(out, "         (signs in once, within two minutes; a new link: IDP_DATA_DIR=%s %s console)\n", f.path,
		program())
}
