// Command load loads a platform with a mix of requests and says what it answers, how fast, and what that costs.
//
//	load -program bin/idp-standalone -duration 1m -svg bin/load
//	load -address http://127.0.0.1:8080 -admin http://127.0.0.1:9090 -token "$TOKEN" -rate 500
//
// It makes tenants of its own with users, a team, resources and grants. Then it sends reads, permission checks and
// writes by the given shares, from many connections: as fast as the platform answers or, with -rate, at that rate, in
// which case a request that has to wait for a connection counts from when it was due. It prints a line
// every two seconds and a table at the end, and with -svg draws latencies and memory over time.
//
// It only sends to loopback addresses, at most -requests requests, and not longer than an hour.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/idplatform/idplatform/tools/internal/launch"
)

// settings are the flags.
type settings struct {
	program, address, admin, token, svg string
	duration, every                     time.Duration
	rate, clients, tenants, users       int
	reads, checks, writes               int
	requests                            int64
}

const longest = time.Hour

func main() {
	var s settings
	flag.StringVar(&s.program, "program", "bin/idp-standalone", "the platform's program; it gets an empty folder")
	flag.StringVar(&s.address, "address", "", "a running platform instead, such as http://127.0.0.1:8080")
	flag.StringVar(&s.admin, "admin", "", "its metrics, such as http://127.0.0.1:9090")
	flag.StringVar(&s.token, "token", "", "a token of it with platform:admin, good for the whole run")
	flag.StringVar(&s.svg, "svg", "", "a folder for latency.svg and memory.svg")
	flag.DurationVar(&s.duration, "duration", 30*time.Second, "how long the load lasts, at most an hour")
	flag.DurationVar(&s.every, "every", 2*time.Second, "how often it says how it goes")
	flag.IntVar(&s.rate, "rate", 0, "requests a second; 0: as fast as the platform answers")
	flag.IntVar(&s.clients, "clients", 16, "connections")
	flag.IntVar(&s.tenants, "tenants", 3, "tenants")
	flag.IntVar(&s.users, "users", 1000, "users of each tenant at the start")
	flag.IntVar(&s.reads, "reads", 80, "the share of reads")
	flag.IntVar(&s.checks, "checks", 15, "the share of permission checks")
	flag.IntVar(&s.writes, "writes", 5, "the share of writes")
	flag.Int64Var(&s.requests, "requests", 10_000_000, "the most requests")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func (s *settings) check() error {
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("there is no argument %q", flag.Arg(0))
	case s.duration <= 0 || s.duration > longest:
		return fmt.Errorf("-duration must be up to %v", longest)
	case s.clients < 1 || s.clients > 1024 || s.tenants < 1 || s.tenants > 100 || s.users < 10 || s.users > 100_000:
		return errors.New("1…1024 clients, 1…100 tenants, 10…100000 users")
	case s.reads < 0 || s.checks < 0 || s.writes < 0 || s.reads+s.checks+s.writes == 0 || s.rate < 0 || s.every <= 0:
		return errors.New("shares and rate must not be negative")
	}
	for _, address := range []string{s.address, s.admin} {
		if address == "" {
			continue
		}
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" || !loopback(u.Hostname()) {
			return fmt.Errorf("%q must be http:// and a loopback address", address)
		}
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func run(ctx context.Context, s settings) error {
	if err := s.check(); err != nil {
		return err
	}
	if s.address == "" {
		stop, err := s.start(ctx)
		if err != nil {
			return err
		}
		defer stop()
	}
	l := newLoad(s)
	if err := l.prepare(ctx); err != nil {
		return err
	}
	fmt.Printf("%d tenants of %d users at %s: reads %d, checks %d, writes %d by %d connections for %v\n\n",
		s.tenants, s.users, s.address, s.reads, s.checks, s.writes, s.clients, s.duration)
	l.run(ctx)
	l.table(os.Stdout)
	if s.svg != "" {
		if err := l.draw(s.svg); err != nil {
			return err
		}
	}
	if failed := l.failed(); failed > 0 {
		return fmt.Errorf("%d requests failed, the first: %s", failed, l.firstError)
	}
	return nil
}

// start starts the program, and fills in where it is.
func (s *settings) start(ctx context.Context) (stop func(), err error) {
	program, err := filepath.Abs(s.program)
	if err != nil {
		return nil, err
	}
	admin, err := freeAddress()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "idp-load-*")
	if err != nil {
		return nil, err
	}
	// The program must live until the end of the load, which an interrupt ends in order.
	p, err := launch.Start(context.WithoutCancel(ctx), program, dir, "IDP_ADMIN_LISTEN="+admin, "IDP_NATS_LISTEN=off")
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	stop = func() {
		p.Stop()
		_ = os.RemoveAll(dir)
	}
	s.address, s.admin = p.Address, "http://"+admin
	if s.token, err = p.Token(ctx, "load-0", "platform:admin"); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// freeAddress is one that nobody listens on now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
