// Command hostile sends hostile requests to every operation of the OpenAPI document of a platform that it starts for
// this: wrong types, missing and unknown members, broken JSON, huge and deep values, texts that other programs would
// run, the ids of another tenant's records, and headers and paths that should not be.
//
//	hostile -program bin/idp-standalone -requests 100000
//
// It fails if an answer is 5xx or does not come, shows another tenant's record or a secret, repeats a refused value, or
// if the other tenant's records have changed at the end. The seed, which it prints, makes the same requests again, as
// far as the answers of the platform are the same.
//
// Nothing leaves the machine: the platform listens on 127.0.0.1, may not call private addresses, and gets no address of
// another host.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/idplatform/idplatform/tools/internal/launch"
)

func main() {
	program := flag.String("program", "bin/idp-standalone", "the platform's program")
	requests := flag.Int("requests", 100_000, "how many requests are sent")
	clients := flag.Int("clients", 8, "how many are under way at once")
	limit := flag.Duration("limit", 10*time.Minute, "when it gives up")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "chooses the requests") //nolint:gosec // any number
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	ctx, end := context.WithTimeout(ctx, *limit)
	defer end()
	found, err := run(ctx, *program, *requests, *clients, *seed)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
	if found > 0 {
		os.Exit(1)
	}
}

// attackers are the tenant that attacks and the one that is attacked.
const attackers, victims = "attackers", "victims"

// scopes are all but platform:admin, which may act for other tenants.
var scopes = []string{
	"users:read", "users:write", "users:secrets", "applications:read", "applications:write", "applications:secrets",
	"permissions:read", "permissions:write", "permissions:check", "organization:read", "organization:write",
	"identity-sources:read", "identity-sources:write", "events:read", "events:write", "kv:read", "kv:write",
	"jobs:read", "jobs:write", "functions:read", "functions:write",
}

// run attacks a new platform and returns how many faults it found.
func run(ctx context.Context, program string, requests, clients int, seed uint64) (int, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "idp-hostile-*")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	p, err := launch.Start(ctx, program, dir, "IDP_LOG_LEVEL=error", "IDP_NATS_LISTEN=off")
	if err != nil {
		return 0, err
	}
	defer p.Stop()
	attacker, err := p.Token(ctx, attackers, scopes...)
	if err != nil {
		return 0, err
	}
	victim, err := p.Token(ctx, victims, scopes...)
	if err != nil {
		return 0, err
	}
	a := newAttack(p.Address, attacker, seed)
	if err := a.load(ctx); err != nil {
		return 0, err
	}
	if err := a.plant(ctx, victim); err != nil {
		return 0, err
	}
	fmt.Printf("%d operations, %d records of another tenant, seed %d\n", len(a.operations), len(a.planted), seed)
	a.fire(ctx, requests, clients)
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("after %d requests: %w", a.sent.Load(), err)
	}
	if err := a.compare(ctx, victim); err != nil {
		return 0, err
	}
	return a.report(), nil
}
