package browsertest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// The platform's administrator in these tests.
const (
	clientID     = "browser-test"
	clientSecret = "only-for-the-browser-tests-of-the-console"
)

// All tests share one platform and one Chromium; their tenants keep them apart.
var (
	shared     = sync.OnceValues(func() (*platform, error) { return startPlatform() })
	sharedTabs = sync.OnceValues(startChromium)
	ends       []func()
	endsMu     sync.Mutex
)

func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(ends) - 1; i >= 0; i-- {
		ends[i]()
	}
	if err := writeSheet(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// atEnd does something after the last test.
func atEnd(f func()) {
	endsMu.Lock()
	defer endsMu.Unlock()
	ends = append(ends, f)
}

// platform is the running program.
type platform struct {
	url      string
	token    string // of the administrator
	link     func() (string, error)
	document *document
}

func thePlatform(t testing.TB) *platform {
	t.Helper()
	p, err := shared()
	require.NoError(t, err)
	return p
}

// startPlatform runs the program with settings on an empty folder: IDP_TEST_PROGRAM, which `make console-test` builds,
// or a new build with the console's files.
func startPlatform(settings ...string) (*platform, error) {
	folder, err := os.MkdirTemp("", "console-test-")
	if err != nil {
		return nil, err
	}
	atEnd(func() { _ = os.RemoveAll(folder) })
	program := os.Getenv("IDP_TEST_PROGRAM")
	if program == "" {
		program = filepath.Join(folder, "idp-standalone")
		if err := build(program); err != nil {
			return nil, err
		}
	}
	env := append(os.Environ(), "IDP_DATA_DIR="+filepath.Join(folder, "data"), "IDP_LISTEN=127.0.0.1:0",
		"IDP_ADMIN_LISTEN=off", "IDP_NATS_LISTEN=off", "IDP_CONSOLE_BANNER=Browser test",
		"IDP_OUTBOUND_ALLOW_PRIVATE=true", // webhooks go to servers of the tests
		"IDP_BOOTSTRAP_CLIENT_ID="+clientID, "IDP_BOOTSTRAP_CLIENT_SECRET="+clientSecret)
	env = append(env, settings...)
	address, err := serve(program, env, filepath.Join(folder, "log"))
	if err != nil {
		return nil, err
	}
	p := &platform{url: address}
	p.link = func() (string, error) {
		command := exec.Command(program, "console")
		command.Env = env
		out, err := command.Output()
		return strings.TrimSpace(string(out)), err
	}
	if p.document, err = readDocument(address + "/openapi.json"); err != nil {
		return nil, err
	}
	return p, p.signIn()
}

// serve starts the program, and returns the URL that it prints.
func serve(program string, env []string, logFile string) (address string, err error) {
	run := exec.Command(program, "serve")
	run.Env = env
	log, err := os.Create(logFile)
	if err != nil {
		return "", err
	}
	defer log.Close()
	run.Stderr = log
	stdout, err := run.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := run.Start(); err != nil {
		return "", err
	}
	atEnd(func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		_ = run.Wait()
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if _, rest, ok := strings.Cut(lines.Text(), "http://"); ok {
			host, _, _ := strings.Cut(rest, "/")
			go func() { _, _ = io.Copy(io.Discard, stdout) }()
			return "http://" + host, nil
		}
	}
	text, _ := os.ReadFile(logFile)
	return "", fmt.Errorf("the platform did not start: %s", text)
}

func build(program string) error {
	for _, step := range []struct{ dir, args string }{
		{"../web/bundle", "run . -out ../../dist"}, {"../../deploy/standalone", "build -o " + program + " ."},
	} {
		command := exec.Command("go", strings.Fields(step.args)...)
		command.Dir = step.dir
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, out)
		}
	}
	return nil
}

func (p *platform) signIn() error {
	r, err := http.NewRequest(http.MethodPost, p.url+"/v1/oauth2/token",
		strings.NewReader(url.Values{"grant_type": {"client_credentials"}, "scope": {"platform:admin"}}.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(clientID, clientSecret)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var given struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&given); err != nil || given.Token == "" {
		return fmt.Errorf("no token: %s, %w", answer.Status, err)
	}
	p.token = given.Token
	return nil
}

// call sends a request to the API in a tenant, as somebody else than the person at the console.
func (p *platform) call(t testing.TB, tenant, method, path string, body any) map[string]any {
	t.Helper()
	text, ok := body.(string) // lines of JSON
	kind := "application/x-ndjson"
	if !ok && body != nil {
		encoded, err := json.Marshal(body)
		require.NoError(t, err)
		text, kind = string(encoded), "application/json"
	}
	r, err := http.NewRequestWithContext(t.Context(), method, p.url+path, bytes.NewReader([]byte(text)))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("X-Tenant-Id", tenant)
	if body != nil {
		r.Header.Set("Content-Type", kind)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	out, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, "%s %s: %s", method, path, out)
	var decoded map[string]any
	if json.Unmarshal(out, &decoded) != nil {
		decoded = map[string]any{"text": string(out)} // a list, or lines
	}
	return decoded
}

// startChromium starts the browser that all tabs belong to.
func startChromium() (context.Context, error) {
	path := os.Getenv("IDP_TEST_BROWSER")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); path == "" && err == nil {
			path = found
		}
	}
	if path == "" {
		return nil, errNoChromium
	}
	folder, err := os.MkdirTemp("", "console-test-chromium-")
	if err != nil {
		return nil, err
	}
	atEnd(func() { _ = os.RemoveAll(folder) })
	options := []chromedp.ExecAllocatorOption{
		chromedp.Headless, chromedp.NoFirstRun, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.ExecPath(path),
		chromedp.UserDataDir(folder), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("force-prefers-reduced-motion", true), // a dialog that fades in has less contrast
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		// Tabs that are not in front are drawn, and their timers run, as if they were.
		chromedp.Flag("disable-background-timer-throttling", true),
		chromedp.Flag("disable-renderer-backgrounding", true),
		chromedp.Flag("disable-backgrounding-occluded-windows", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("lang", "en-GB"), chromedp.Flag("enable-precise-memory-info", true),
		chromedp.WSURLReadTimeout(time.Minute),
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	atEnd(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	atEnd(cancel)
	return ctx, chromedp.Do(ctx, chromedp.Navigate("about:blank"))
}
