//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/idplatform/idplatform/gateway"
	"github.com/idplatform/idplatform/pkg/health"
)

// services in the order of their ports, which begin after the gateway's. A new service comes last.
var services = []string{
	gateway.Users, gateway.Applications, gateway.Organization, gateway.IdentitySources, gateway.Permissions,
	gateway.Events, gateway.Automation, gateway.SignIn, gateway.Provisioning,
}

// Ports, from the gateway's on.
const (
	consoleOffset   = 10
	natsOffset      = 11
	adminOffset     = 1000
	highestBasePort = 1<<16 - 1 - adminOffset - natsOffset
)

// administrator is the client id of the first administrator.
const administrator = "administrator"

// platform is all running processes.
type platform struct {
	folder *folder
	url    string       // of the gateway
	groups [][]*process // in the order of their start
}

// start starts all processes and waits until they are ready. It fails if one ends before that.
func start(ctx context.Context, s settings, out io.Writer) (_ *platform, err error) {
	if s.BasePort == 0 {
		s.BasePort = freeBasePort()
	} else if err := checkPorts(s.BasePort); err != nil {
		return nil, err
	}
	f, err := openFolder(s.DataDir)
	if err != nil {
		return nil, err
	}
	p := &platform{folder: f, url: "http://" + local(s.BasePort)}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	nats, err := p.nats(s)
	if err != nil {
		return nil, err
	}
	starting, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	ended := func(one *process, err error) {
		if starting.Err() == nil {
			fail(fmt.Errorf("%s ended (%v) before it was ready:\n%s", one.name, err, one.lastLines()))
			return
		}
		fmt.Fprintf(out, "%s ended (%v); it is started again\n", one.name, err)
	}
	// Any order works, because processes wait for each other. In this order none has to wait long.
	for _, group := range [][]*process{{nats}, p.services(s), {p.console(s), p.gateway(s)}} {
		p.groups = append(p.groups, group)
		for _, one := range group {
			one.keepRunning(ended)
		}
		for _, one := range group {
			if err := one.awaitReady(starting); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// stop stops the gateway, then the services, then NATS, so that each can finish its running work.
func (p *platform) stop() {
	for _, group := range slices.Backward(p.groups) {
		for _, one := range group {
			one.stop()
		}
		for _, one := range group {
			<-one.done
		}
	}
	_ = p.folder.close()
}

// nats is a NATS server with deploy/nats/nats.conf, which takes folder and passwords from the environment.
func (p *platform) nats(s settings) (*process, error) {
	password, err := p.folder.read(natsPassword)
	if err != nil {
		return nil, err
	}
	readers, err := p.folder.read(readersPassword)
	if err != nil {
		return nil, err
	}
	address := local(s.BasePort + natsOffset)
	forReaders := url.URL{Scheme: "nats", Host: address, User: url.UserPassword("events", readers)}
	if err := p.folder.write(readersURL, forReaders.String()); err != nil {
		return nil, err
	}
	one := p.process(s, "nats", s.BasePort+natsOffset, "nats-server")
	one.args = []string{
		"--config", s.NATSConfig, "--addr", "127.0.0.1", "--port", strconv.Itoa(s.BasePort + natsOffset),
		"--http_port", strconv.Itoa(s.BasePort + natsOffset + adminOffset),
	}
	// Quoted, because NATS reads them as values of its configuration, where some passwords would be numbers.
	one.env = append(one.env, "NATS_STORE_DIR="+strconv.Quote(p.folder.join("nats")),
		"NATS_PASSWORD="+strconv.Quote(password), "NATS_EVENTS_PASSWORD="+strconv.Quote(readers))
	one.ready = func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	return one, nil
}

func (p *platform) services(s settings) []*process {
	var all []*process
	for i, name := range services {
		one := p.process(s, name, s.BasePort+1+i, "idp-"+name)
		one.env = append(one.env, "IDP_PUBLIC_URL="+p.url, "IDP_DATA_DIR="+p.folder.path,
			"IDP_ENCRYPTION_KEYS_FILE="+p.folder.join(encryptionKeys),
			"IDP_GATEWAY_SECRET_FILE="+p.folder.join(gatewaySecret),
			"IDP_NATS_URL=nats://"+local(s.BasePort+natsOffset), "IDP_NATS_USER=services",
			"IDP_NATS_PASSWORD_FILE="+p.folder.join(natsPassword),
			"IDP_AUTH_JWKS="+s.serviceURL(gateway.Applications)+"/v1/oauth2/jwks")
		if name == gateway.SignIn {
			one.env = append(one.env, "IDP_SIGN_IN_SMTP_URL=log:") // only this machine can reach them
		}
		if !s.Mongo.URI.IsZero() {
			one.env = append(one.env, "IDP_MONGO_URI="+s.Mongo.URI.Reveal())
		}
		if name == gateway.Applications {
			one.env = append(one.env, "IDP_BOOTSTRAP_CLIENT_ID="+administrator,
				"IDP_BOOTSTRAP_CLIENT_SECRET_FILE="+p.folder.join(administratorSecret))
		}
		all = append(all, one)
	}
	return all
}

func (p *platform) gateway(s settings) *process {
	one := p.process(s, "gateway", s.BasePort, "idp-gateway")
	upstreams := []string{"console=http://" + local(s.BasePort+consoleOffset)}
	for _, name := range services {
		upstreams = append(upstreams, name+"="+s.serviceURL(name))
	}
	one.env = append(one.env, "IDP_UPSTREAMS="+strings.Join(upstreams, ","),
		"IDP_GATEWAY_SECRET_FILE="+p.folder.join(gatewaySecret))
	return one
}

// console is the web console, which calls the gateway.
func (p *platform) console(s settings) *process {
	one := p.process(s, gateway.Console, s.BasePort+consoleOffset, "idp-console")
	one.env = slices.DeleteFunc(one.env, func(v string) bool { return strings.HasPrefix(v, "IDP_DRAIN_DELAY=") })
	one.env = append(one.env, "IDP_GATEWAY="+p.url, "IDP_GATEWAY_SECRET_FILE="+p.folder.join(gatewaySecret),
		"IDP_CONSOLE_KEYS_FILE="+p.folder.join(consoleKeys))
	return one
}

// link returns a link that signs in to the console once; "" if there is none.
func (p *platform) link(ctx context.Context) string {
	password, err := p.folder.read(administratorSecret)
	if err != nil {
		return ""
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/console/~/links", nil)
	if err != nil {
		return ""
	}
	r.SetBasicAuth(administrator, url.QueryEscape(password))
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var answer struct {
		Path string `json:"path"`
	}
	if json.NewDecoder(response.Body).Decode(&answer) != nil || answer.Path == "" {
		return ""
	}
	return p.url + answer.Path
}

// process returns a process with the settings that all programs of the platform have, and their check of readiness.
func (p *platform) process(s settings, name string, port int, program string) *process {
	one := &process{
		name: name, address: local(port),
		path: filepath.Join(s.Programs, program), log: p.folder.join("logs/" + name + ".log"),
	}
	one.env = append(foreign(os.Environ()), "IDP_LISTEN="+one.address, "IDP_ADMIN_LISTEN="+local(port+adminOffset),
		"IDP_DRAIN_DELAY=0s") // the gateway stops first
	one.env = append(one.env, s.env[name]...)
	one.ready = func(ctx context.Context) error { return health.Probe(ctx, one.address, false) }
	return one
}

func (s settings) serviceURL(name string) string {
	return "http://" + local(s.BasePort+1+slices.Index(services, name))
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// foreign returns the variables without the platform's own, because its programs refuse IDP_ variables that they do not
// know.
func foreign(environ []string) []string {
	var kept []string
	for _, v := range environ {
		if !strings.HasPrefix(v, "IDP_") {
			kept = append(kept, v)
		}
	}
	return kept
}

// basePorts are bases whose ports differ, in random order, below the range from which Linux takes ports of connections.
var basePorts = func() (bases []int) {
	for block := 20_000; block < 32_000; block += 2 * adminOffset {
		for base := block; base < block+adminOffset; base += 2 * natsOffset {
			bases = append(bases, base)
		}
	}
	rand.Shuffle(len(bases), func(i, j int) { bases[i], bases[j] = bases[j], bases[i] })
	return bases
}()

var lastBasePort atomic.Int64

// freeBasePort returns a base whose ports are all free. Platforms of one program that start at the same time have no
// port in common.
func freeBasePort() int {
	for {
		if base := basePorts[int(lastBasePort.Add(1))%len(basePorts)]; checkPorts(base) == nil {
			return base
		}
	}
}

// checkPorts returns an error that names every port that is in use.
func checkPorts(base int) error {
	ports := []int{base, base + adminOffset, base + natsOffset, base + natsOffset + adminOffset,
		base + consoleOffset, base + consoleOffset + adminOffset}
	for i := range services {
		ports = append(ports, base+1+i, base+1+i+adminOffset)
	}
	var faults []error
	for _, port := range ports {
		// Not by listening: a process that is started meanwhile would hold the port until it runs its program.
		if conn, err := net.Dial("tcp", local(port)); err == nil {
			conn.Close()
			faults = append(faults, fmt.Errorf("port %d is in use: choose other ports with IDP_BASE_PORT", port))
		}
	}
	return errors.Join(faults...)
}
