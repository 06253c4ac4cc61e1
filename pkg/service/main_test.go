package service

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/config"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

func TestMain(m *testing.M) {
	if os.Getenv("IDP_TEST_CHILD") == "reseal" {
		os.Exit(resealChild())
	}
	leaks.Main(m)
}

// note is the record of the small service that these tests run.
type note struct {
	docstore.Meta
	Text string `json:"text"`
}

// Note is the wire form of note.
type Note struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

var notes = docstore.Define(docstore.Schema[note]{Name: "notes", Noun: "note"})

// tiny makes the service. Its one operation writes a note and an event, and may wait in between.
func tiny(wait func(context.Context), tasks ...Task) Spec {
	type input struct {
		Body struct {
			Text string `json:"text"`
		}
	}
	return Spec{Name: "tiny", Collections: []*docstore.Def{notes.Def()}, New: func(_ context.Context, d Deps) (App,
		error) {
		s := d.Server("Tiny")
		rest.Handle(s, rest.Op{ID: "create-note", Method: http.MethodPost, Path: "/v1/notes", Scope: auth.UsersWrite,
			Summary: "Create a note"},
			func(ctx context.Context, in *input) (rest.Record[Note], error) {
				wait(ctx)
				id, err := d.Store.NewID(ctx)
				if err != nil {
					return rest.Record[Note]{}, err
				}
				doc, err := docstore.Write(ctx, d.Store, func(tx *docstore.Tx) (docstore.Doc[note], error) {
					doc, err := notes.Insert(ctx, tx, &note{Meta: docstore.Meta{ID: id}, Text: in.Body.Text})
					if err != nil {
						return doc, err
					}
					return doc, outbox.Tell(ctx, tx, outbox.Kind{Entity: "note", Source: "/notes"}, "created", &doc,
						nil)
				})
				return rest.RecordOf[Note](doc, err)
			})
		return App{Handler: s, Tasks: tasks}, nil
	}}
}

type settings struct {
	Config `mapstructure:",squash"`
}

// process is a run of the small service by main.
type process struct {
	t     *testing.T
	url   string
	admin string
	stop  context.CancelFunc
	ended chan error
	log   *lines
	token string
}

// lines is a log that tests can wait for.
type lines struct {
	mu      sync.Mutex
	text    bytes.Buffer
	serving chan map[string]any
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var line map[string]any
	if json.Unmarshal(p, &line) == nil && line["msg"] == "serving" {
		l.serving <- line
	}
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// surroundings are what a process needs; they stay over its restarts.
type surroundings struct {
	nats   string
	signer *auth.Signer
	dir    string
	env    []string
}

func newSurroundings(t *testing.T) *surroundings {
	t.Helper()
	s := &surroundings{dir: t.TempDir(), nats: startNATS(t)}
	key, err := auth.GenerateKey()
	require.NoError(t, err)
	s.signer, err = auth.NewSigner("test", auth.NewKeys(key), clock.System)
	require.NoError(t, err)
	jwks := filepath.Join(s.dir, "jwks.json")
	require.NoError(t, os.WriteFile(jwks, s.signer.PublicJWKS(), 0o600))
	s.env = []string{
		"IDP_LISTEN=127.0.0.1:0", "IDP_ADMIN_LISTEN=127.0.0.1:0", "IDP_DATA_DIR=" + s.dir, "IDP_NATS_URL=" + s.nats,
		"IDP_DRAIN_DELAY=500ms",
		"IDP_DRAIN_TIMEOUT=10s", "IDP_AUTH_ISSUER=test", "IDP_AUTH_JWKS=" + jwks, "IDP_ENCRYPTION_KEYS=" +
			secret.NewKey().Reveal(),
	}
	return s
}

// startNATS runs a server with JetStream as in production.
func startNATS(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(),
		NoSigs: true, NoLog: true})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(wait.Long))
	return s.ClientURL()
}

func (s *surroundings) start(t *testing.T, spec Spec) *process {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p := &process{t: t, stop: stop, ended: make(chan error, 1), log: &lines{serving: make(chan map[string]any, 1)}}
	c := settings{DefaultConfig("tiny", 8081)}
	go func() { p.ended <- start(ctx, "tiny", nil, s.env, &c, &c.Config, func() Spec { return spec }, p.log) }()
	t.Cleanup(stop)
	select {
	case line := <-p.log.serving:
		p.url, p.admin = "http://"+line["listen"].(string), "http://"+line["admin"].(string)
	case err := <-p.ended:
		require.NoError(t, err, p.log)
		t.Fatal("it ended")
	}
	var err error
	p.token, err = s.signer.Mint(auth.Claims{Subject: "tester", ClientID: "tester", Tenant: "acme",
		Scopes: auth.AllScopes, TTL: time.Hour})
	require.NoError(t, err)
	return p
}

func (p *process) end() {
	p.t.Helper()
	p.stop()
	select {
	case err := <-p.ended:
		require.NoError(p.t, err, p.log)
	case <-time.After(wait.Long):
		p.t.Fatal("it does not end")
	}
}

// ask sends one request on a connection of its own.
func (p *process) ask(method, url, body string) (status int, answer string, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// probe asks the process whether it is ready, as idp-tiny health does.
func (p *process) probe(s *surroundings) error {
	c := settings{DefaultConfig("tiny", 8081)}
	env := append(slices.Clone(s.env), "IDP_LISTEN="+strings.TrimPrefix(p.url, "http://"))
	return start(p.t.Context(), "tiny", []string{"health"}, env, &c, &c.Config, nil, io.Discard)
}

func (p *process) see(status int, contains, method, path, body string) {
	p.t.Helper()
	got, answer, err := p.ask(method, p.url+path, body)
	require.NoError(p.t, err)
	require.Equal(p.t, status, got, answer)
	require.Contains(p.t, answer, contains)
}

func TestAProcessServesAndDrains(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	ticked := make(chan struct{}, 1)
	s := newSurroundings(t)
	p := s.start(t, tiny(func(context.Context) {
		entered <- struct{}{}
		<-leave
	}, Task{Name: "tick", Every: time.Millisecond, Do: func(context.Context) (int, error) {
		select {
		case ticked <- struct{}{}:
		default:
		}
		return 0, nil
	}}))
	p.see(http.StatusOK, `"ok"`, http.MethodGet, "/healthz", "")
	p.see(http.StatusOK, `"ready"`, http.MethodGet, "/readyz", "")
	p.see(http.StatusOK, "create-note", http.MethodGet, "/openapi.json", "")
	p.see(http.StatusNotFound, "not_found", http.MethodGet, "/metrics", "")
	malformed, err := http.NewRequest(http.MethodGet, p.url+"/healthz", nil)
	require.NoError(t, err)
	malformed.Header.Set("Expect", "miracles")
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(malformed)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, "application/problem+json", answer.Header.Get("Content-Type"), "what net/http itself refuses")
	require.NoError(t, p.probe(s))
	status, metrics, err := p.ask(http.MethodGet, p.admin+"/metrics", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, metrics, "idp_outbox")
	<-ticked

	type result struct {
		status int
		body   string
		err    error
	}
	answered := make(chan result, 1)
	go func() {
		status, body, err := p.ask(http.MethodPost, p.url+"/v1/notes", `{"text":"in flight"}`)
		answered <- result{status, body, err}
	}()
	<-entered
	p.stop()
	wait.Until(t, func() bool {
		status, body, err := p.ask(http.MethodGet, p.url+"/readyz", "")
		return err == nil && status == http.StatusServiceUnavailable && strings.Contains(body, "stopping")
	}, "it reports that it stops while it still accepts requests")
	p.see(http.StatusOK, `"ok"`, http.MethodGet, "/healthz", "")
	require.Error(t, p.probe(s))
	wait.Until(t, func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, "then it accepts no more")
	select {
	case r := <-answered:
		t.Fatalf("the request was cut off: %+v", r)
	case err := <-p.ended:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	close(leave)
	r := <-answered
	require.NoError(t, r.err)
	require.Equal(t, http.StatusOK, r.status, r.body)
	p.end()
	_, ending, stops := strings.Cut(p.log.String(), "stopping")
	require.True(t, stops)
	require.NotContains(t, ending, `"level":"ERROR"`) // before, on a busy machine, a task may have failed and gone on

	// The events of the last request are with NATS before the process ends.
	conn, err := nats.Connect(s.nats)
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "IDP_EVENTS")
	require.NoError(t, err)
	message, err := stream.GetLastMsgForSubject(t.Context(), "idp.events.acme.note.created")
	require.NoError(t, err)
	require.Contains(t, string(message.Data), "in flight")
}

func TestAProcessStartsAgainOnItsData(t *testing.T) {
	t.Parallel()
	s := newSurroundings(t)
	s.env = append(s.env, "IDP_DRAIN_DELAY=1ms")
	spec := tiny(func(context.Context) {})
	ids := map[string]bool{}
	for range 2 {
		p := s.start(t, spec)
		status, body, err := p.ask(http.MethodPost, p.url+"/v1/notes", `{"text":"x"}`)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status, body)
		var made Note
		require.NoError(t, json.Unmarshal([]byte(body), &made))
		ids[made.ID] = true
		p.end()
	}
	require.Len(t, ids, 2, "ids are not used twice")
}

// NATS may start later: events wait in the store.
func TestAProcessStartsWithoutNATS(t *testing.T) {
	t.Parallel()
	s := newSurroundings(t)
	s.env = append(s.env, "IDP_NATS_URL=nats://127.0.0.1:1", "IDP_DRAIN_DELAY=1ms", "IDP_DRAIN_TIMEOUT=100ms")
	p := s.start(t, tiny(func(context.Context) {}))
	p.see(http.StatusOK, `"ready"`, http.MethodGet, "/readyz", "")
	p.see(http.StatusOK, `"x"`, http.MethodPost, "/v1/notes", `{"text":"x"}`)
	p.stop()
	require.ErrorContains(t, <-p.ended, "the outbox is not empty")
}

// MongoDB may start later: until then the process runs and is not ready.
func TestAProcessWaitsForMongoDB(t *testing.T) {
	t.Parallel()
	s := newSurroundings(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listen := free.Addr().String()
	require.NoError(t, free.Close())
	s.env = append(s.env, "IDP_LISTEN="+listen, "IDP_MONGO_URI=mongodb://root:hunter2@127.0.0.1:1/?directConnection=true")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p := &process{t: t, url: "http://" + listen, stop: stop, ended: make(chan error, 1), log: &lines{}}
	c := settings{DefaultConfig("tiny", 8081)}
	go func() {
		p.ended <- start(ctx, "tiny", nil, s.env, &c, &c.Config, func() Spec { return tiny(nil) }, p.log)
	}()
	wait.Until(t, func() bool {
		status, _, err := p.ask(http.MethodGet, p.url+"/healthz", "")
		return err == nil && status == http.StatusOK
	})
	p.see(http.StatusServiceUnavailable, "starting", http.MethodGet, "/readyz", "")
	p.see(http.StatusServiceUnavailable, "unavailable", http.MethodPost, "/v1/notes", `{"text":"x"}`)
	require.Error(t, p.probe(s))
	wait.Until(t, func() bool {
		return strings.Contains(p.log.String(), "the service waits for it")
	})
	require.NotContains(t, p.log.String(), "hunter2")
	p.end()
}

func TestAProcessThatCannotStartLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := newSurroundings(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	failing := tiny(func(context.Context) {})
	failing.New = func(context.Context, Deps) (App, error) { return App{}, errors.New("no") }
	for name, c := range map[string]struct {
		env  string
		spec Spec
		want string
	}{
		"listen":  {"IDP_LISTEN=" + taken.Addr().String(), tiny(nil), "address already in use"},
		"admin":   {"IDP_ADMIN_LISTEN=" + taken.Addr().String(), tiny(nil), "admin listener"},
		"service": {"IDP_DRAIN_DELAY=1ms", failing, "tiny: no"},
		"data":    {"IDP_DATA_DIR=" + filepath.Join(s.dir, "jwks.json"), tiny(nil), "jwks.json"},
		"keys":    {"IDP_AUTH_JWKS=" + filepath.Join(s.dir, "none.json"), tiny(nil), "none.json"},
	} {
		settings := settings{DefaultConfig("tiny", 8081)}
		err := start(t.Context(), "tiny", nil, append(s.env, c.env), &settings, &settings.Config, func() Spec {
			return c.spec
		}, io.Discard)
		require.ErrorContains(t, err, c.want, name)
	}
	p := s.start(t, tiny(func(context.Context) {})) // which shows that the store was closed each time
	p.see(http.StatusOK, `"x"`, http.MethodPost, "/v1/notes", `{"text":"x"}`)
	p.end()
}

func TestAllFaultsOfTheConfigurationAreNamed(t *testing.T) {
	t.Parallel()
	c := settings{DefaultConfig("tiny", 8081)}
	err := start(t.Context(), "tiny", []string{"--nats-replicas=many"}, []string{
		"IDP_LOG_LEVEL=loud", "IDP_DRAIN_TIMEOUT=-1s", "IDP_NO_SUCH_THING=1", "IDP_ENCRYPTION_KEYS=a:hunter2",
		"IDP_AUTH_OIDC=issuer=x;jwks=y;scopes=root,issuer=z",
	}, &c, &c.Config, nil, io.Discard)
	fault, ok := errors.AsType[*config.Error](err)
	require.True(t, ok, err)
	for _, name := range []string{"LOG_LEVEL", "drain_timeout", "NO_SUCH_THING", "encryption_keys",
		"there is no scope root", "issuer, jwks and scopes are needed", "nats"} {
		require.Contains(t, fault.Error(), name)
	}
	require.NotContains(t, fault.Error(), "hunter2")

	err = start(t.Context(), "tiny", nil, nil, &c, &c.Config, nil, io.Discard)
	require.ErrorContains(t, err, "encryption_keys is needed")
	require.ErrorContains(t, err, "without a token issuer every request is refused")
	require.ErrorIs(t, start(t.Context(), "tiny", []string{"--help"}, nil, &c, &c.Config, nil, io.Discard),
		config.ErrHelp)
	require.Contains(t, config.Usage("idp-tiny", &c), "drain")
}

func TestParseIssuer(t *testing.T) {
	t.Parallel()
	issuer, err := parseIssuer(
		"issuer=https://id.test; jwks=https://id.test/keys?a=b ;tenant=acme;audience=idp;scopes=users:read  "+
			"users:write", http.DefaultClient)
	require.NoError(t, err)
	require.Equal(t, "https://id.test", issuer.Name)
	require.Equal(t, "acme", issuer.Tenant)
	require.Equal(t, "idp", issuer.Audience)
	require.Equal(t, auth.NewScopes(auth.UsersRead, auth.UsersWrite), issuer.Scopes)
	require.Equal(t, auth.KeyURL{URL: "https://id.test/keys?a=b", Client: http.DefaultClient}, issuer.Keys)
	require.Equal(t, []string{"RS256", "ES256", "EdDSA"}, issuer.Algorithms)

	issuer, err = parseIssuer("issuer=x;jwks=/etc/keys.json;scopes=users:read;tenant_claim=org;scope_claim=roles", nil)
	require.NoError(t, err)
	require.Equal(t, auth.KeyFile("/etc/keys.json"), issuer.Keys)
	require.Equal(t, "org", issuer.TenantClaim)
	require.Equal(t, "roles", issuer.ScopeClaim)

	for text, want := range map[string]string{
		"": `no setting ""`, "issuer=x": "are needed", "issuer=x;jwks=y;scopes=": "are needed",
		"issuer=x;jwks=y;scopes=users:read root":  "no scope root",
		"issuer=x;jwks=y;scopes=users:read;key=z": `no setting "key"`,
		"Issuer=x;jwks=y;scopes=users:read":       `no setting "Issuer"`,
		"issuer;jwks=y;scopes=users:read":         "are needed",
	} {
		_, err := parseIssuer(text, nil)
		require.ErrorContains(t, err, want, text)
	}
}

// FuzzParseIssuer: an accepted issuer has a name, keys and scopes of the platform.
func FuzzParseIssuer(f *testing.F) {
	f.Add("issuer=https://id.test;jwks=https://id.test/keys;tenant=acme;audience=idp;scopes=users:read")
	f.Add("issuer=x;jwks=y;scopes=users:read root")
	f.Add(";=;")
	f.Fuzz(func(t *testing.T, text string) {
		issuer, err := parseIssuer(text, nil)
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "auth.oidc: "))
			return
		}
		require.NotEmpty(t, issuer.Name)
		require.NotNil(t, issuer.Keys)
		require.NotEmpty(t, issuer.Scopes.List())
	})
}

func TestHealth(t *testing.T) {
	t.Parallel()
	var broken error
	var warnings []string
	h := &healthHandler{}
	see := func(path string, status int, text string) {
		t.Helper()
		w := newRecorder()
		h.ServeHTTP(w, newRequest(path))
		require.Equal(t, status, w.Code)
		require.Contains(t, w.Body.String(), text)
	}
	see("/healthz", 200, "ok")
	see("/readyz", 503, "starting")
	see("/other", 503, "unavailable")
	h.open(http.NotFoundHandler(), func(ctx context.Context) error {
		deadline, bounded := ctx.Deadline()
		require.True(t, bounded && time.Until(deadline) <= readyTimeout, "a store that hangs must not hang the probe")
		return broken
	}, func() []string { return warnings })
	see("/healthz", 200, "ok")
	see("/readyz", 200, `{"status":"ready"}`)
	warnings = []string{"without a record"}
	see("/readyz", 200, `{"status":"ready","warnings":["without a record"]}`)
	see("/other", 404, "")
	broken = errors.New("dial mongodb://root:hunter2@db")
	see("/readyz", 503, `{"status":"the store does not answer"}`)
	see("/healthz", 200, "ok")
	broken = fmt.Errorf("tiny: %w: NATS has accepted none for 1m0s", outbox.ErrStuck)
	see("/readyz", 503, `{"status":"events are not published"}`)
	broken = fmt.Errorf("tiny: %w: the end of the stream is not known", errLoading)
	see("/readyz", 503, `{"status":"the service is still loading its state"}`)
	broken = nil
	h.draining.Store(true)
	see("/readyz", 503, "stopping")
	see("/healthz", 200, "ok")
}

func keyring(t *testing.T, entries ...string) *secret.Keyring {
	t.Helper()
	ring, err := secret.ParseKeyring(secret.New(strings.Join(entries, ",")))
	require.NoError(t, err)
	return ring
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func newKey(id string) string {
	text := secret.NewKey().Reveal()
	_, body, _ := strings.Cut(text, ":")
	if _, err := base64.StdEncoding.DecodeString(body); err != nil {
		panic(err)
	}
	return id + ":" + body
}
