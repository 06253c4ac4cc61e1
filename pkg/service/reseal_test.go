package service

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
)

// vault is a record with a secret.
type vault struct {
	docstore.Meta
	Secret secret.Text `json:"secret"`
}

var vaults = docstore.Define(docstore.Schema[vault]{
	Name: "vaults", Noun: "vault",
	Sealed: func(v *vault) []docstore.Sealed {
		return []docstore.Sealed{docstore.Seal("secret", &v.Secret, docstore.NotSent)}
	},
})

// vaultSpec is the tiny service with secrets in its store.
func vaultSpec() Spec {
	spec := tiny(func(context.Context) {})
	spec.Collections = append(spec.Collections, vaults.Def())
	return spec
}

// openVaults opens the store of a folder as a start with these keys does.
func openVaults(t *testing.T, dir string, entries ...string) Deps {
	t.Helper()
	engine, err := sqlitestore.Open(t.Context(), sqlitestore.Options{Path: dir + "/tiny.db", Log: quiet()})
	require.NoError(t, err)
	d := Deps{Keys: keyring(t, entries...), Log: quiet(), Metrics: prometheus.NewRegistry()}
	d.Store, err = vaultSpec().Open(t.Context(), engine, clock.System, d.Keys)
	require.NoError(t, err)
	return d
}

func vaultID(i int) string { return fmt.Sprintf("%06d", i) }

func fillVaults(t *testing.T, d Deps, n int) {
	t.Helper()
	ctx := request.System(t.Context(), "acme")
	require.NoError(t, docstore.Do(ctx, d.Store, func(tx *docstore.Tx) error {
		for i := range n {
			_, err := vaults.Insert(ctx, tx, &vault{Meta: docstore.Meta{ID: vaultID(i)},
				Secret: secret.NewText("secret " + vaultID(i))})
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

func requireVaults(t *testing.T, d Deps, n int) {
	t.Helper()
	ctx := request.System(t.Context(), "acme")
	for i := range n {
		value, err := vaults.Reveal(ctx, d.Store, vaultID(i), "secret")
		require.NoError(t, err)
		require.Equal(t, "secret "+vaultID(i), value.Reveal())
	}
}

func TestSecretsAreSealedAnewInTheBackground(t *testing.T) {
	t.Parallel()
	dir, a, b := t.TempDir(), newKey("a"), newKey("b")
	d := openVaults(t, dir, a)
	fillVaults(t, d, 700)
	dataKey, err := d.DataKey(t.Context(), "hashes")
	require.NoError(t, err)
	require.NoError(t, d.Store.Close())

	log := &lines{}
	d = openVaults(t, dir, b, a)
	d.Log = slog.New(slog.NewTextHandler(log, nil))
	task := d.resealTask()
	for n := 1; n > 0; {
		n, err = task.Do(t.Context())
		require.NoError(t, err)
	}
	require.Contains(t, log.String(), "records=500 left=200")
	require.Contains(t, log.String(), "records=200 left=0")
	require.NotContains(t, log.String(), "secret 0")
	left, err := testutil.GatherAndCount(d.Metrics.(prometheus.Gatherer), "idp_secrets_under_older_keys")
	require.NoError(t, err)
	require.Equal(t, 1, left)
	require.NoError(t, d.Store.Close())

	d = openVaults(t, dir, b)
	requireVaults(t, d, 700)
	again, err := d.DataKey(t.Context(), "hashes")
	require.NoError(t, err)
	require.Equal(t, dataKey, again)
	require.NoError(t, d.Store.Close())
}

// A key that was removed too early is reported, and does not affect the other secrets.
func TestResealTellsOfSecretsItCannotOpen(t *testing.T) {
	t.Parallel()
	dir, a, b, c := t.TempDir(), newKey("a"), newKey("b"), newKey("c")
	d := openVaults(t, dir, a)
	fillVaults(t, d, 2)
	require.NoError(t, d.Store.Close())
	d = openVaults(t, dir, b)
	ctx := request.System(t.Context(), "acme")
	require.NoError(t, docstore.Do(ctx, d.Store, func(tx *docstore.Tx) error {
		_, err := vaults.Insert(ctx, tx, &vault{Meta: docstore.Meta{ID: "later"}, Secret: secret.NewText("s")})
		return err
	}))
	require.NoError(t, d.Store.Close())
	d = openVaults(t, dir, c, b)
	require.ErrorContains(t, d.Reseal(t.Context()),
		"secrets of 2 record(s) are not sealed under the first encryption key")
	require.NoError(t, d.Store.Close())
	d = openVaults(t, dir, c, a)
	value, err := vaults.Reveal(ctx, d.Store, "later", "secret")
	require.NoError(t, err)
	require.Equal(t, "s", value.Reveal())
	require.NoError(t, d.Reseal(t.Context()))
	require.NoError(t, d.Store.Close())
}

// rotateEnv is the environment of a process that checks a folder.
func rotateEnv(dir string, entries ...string) []string {
	return []string{
		"IDP_LISTEN=127.0.0.1:0", "IDP_DATA_DIR=" + dir, "IDP_AUTH_JWKS=http://127.0.0.1:1/jwks",
		"IDP_ENCRYPTION_KEYS=" + strings.Join(entries, ","),
	}
}

// resealChild is what this test program does as the child process that the test below kills.
func resealChild() int {
	c := settings{DefaultConfig("tiny", 8081)}
	err := start(context.Background(), "tiny", []string{"check", "--rotate-keys"}, os.Environ(), &c, &c.Config,
		vaultSpec, os.Stdout)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func TestARotationThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	const records = 3000
	dir, a, b := t.TempDir(), newKey("a"), newKey("b")
	d := openVaults(t, dir, a)
	fillVaults(t, d, records)
	require.NoError(t, d.Store.Close())
	rotate := func(each func(line string, kill func())) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), append(rotateEnv(dir, b, a), "IDP_TEST_CHILD=reseal")...)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		for all := bufio.NewScanner(out); all.Scan(); {
			each(all.Text(), func() { _ = cmd.Process.Kill() })
		}
		_ = cmd.Wait()
	}
	rotate(func(line string, kill func()) {
		if strings.Contains(line, "sealed again") {
			kill()
		}
	})

	d = openVaults(t, dir, b, a)
	left, err := docstore.UnderOlderKeys(t.Context(), d.Store, records)
	require.NoError(t, err)
	require.NotEmpty(t, left, "it was killed before the end")
	require.LessOrEqual(t, len(left), records-500, "it had begun")
	requireVaults(t, d, records)
	require.NoError(t, d.Store.Close())

	var log strings.Builder
	rotate(func(line string, _ func()) { log.WriteString(line + "\n") })
	require.Contains(t, log.String(), "everything is sealed under the first encryption key")
	require.LessOrEqual(t, strings.Count(log.String(), `"records":500`), len(left)/500, "it goes on where it was")
	d = openVaults(t, dir, b)
	requireVaults(t, d, records)
	require.NoError(t, d.Store.Close())
}

// Answers stored for an Idempotency-Key are sealed again, too. A file can be used by one process at a time only.
func TestKeptAnswersOutliveARotation(t *testing.T) {
	t.Parallel()
	s, a, b := newSurroundings(t), newKey("a"), newKey("b")
	s.env = append(s.env, "IDP_DRAIN_DELAY=1ms")
	run := func(do func(*process), entries ...string) {
		s.env = append(s.env, "IDP_ENCRYPTION_KEYS="+strings.Join(entries, ","))
		p := s.start(t, vaultSpec())
		do(p)
		p.end()
	}
	check := func(env ...string) error {
		c := settings{DefaultConfig("tiny", 8081)}
		return start(t.Context(), "tiny", []string{"check", "--rotate-keys"}, append(s.env, env...), &c, &c.Config,
			vaultSpec, &lines{})
	}
	post := func(p *process, replayed string) {
		r, err := http.NewRequest(http.MethodPost, p.url+"/v1/notes", strings.NewReader(`{"text":"once"}`))
		require.NoError(t, err)
		for name, value := range map[string]string{"Authorization": "Bearer " + p.token,
			"Content-Type": "application/json", "Idempotency-Key": "k"} {
			r.Header.Set(name, value)
		}
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
		require.Equal(t, replayed, answer.Header.Get("Idempotent-Replayed"))
	}
	run(func(p *process) {
		post(p, "")
		require.ErrorContains(t, check("IDP_LISTEN="+strings.TrimPrefix(p.url, "http://")), "stop the service first")
	}, a)
	s.env = append(s.env, "IDP_ENCRYPTION_KEYS="+b+","+a)
	require.NoError(t, check())
	run(func(p *process) { post(p, "true") }, b)
}
