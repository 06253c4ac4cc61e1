package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

const monitoring = "../monitoring"

func TestDashboardsGolden(t *testing.T) {
	t.Parallel()
	for name, d := range dashboards {
		text := &bytes.Buffer{}
		to := json.NewEncoder(text)
		to.SetEscapeHTML(false)
		to.SetIndent("", " ")
		require.NoError(t, to.Encode(d.json(name)))
		basic.Golden(t, filepath.Join(monitoring, "dashboards", name+".json"), text.Bytes())
	}
	files, err := filepath.Glob(filepath.Join(monitoring, "dashboards", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, len(dashboards))
}

// alert is a rule in alerts.yml.
type alert struct {
	Alert, Expr string
	Labels      map[string]string
	Annotations map[string]string
}

func readAlerts(t *testing.T) []alert {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, "alerts.yml"))
	require.NoError(t, err)
	var file struct{ Groups []struct{ Rules []alert } }
	require.NoError(t, yaml.Unmarshal(text, &file))
	require.Len(t, file.Groups, 1)
	return file.Groups[0].Rules
}

// Every metric that a dashboard or an alert asks for is one of the platform's; every alert has a test, and a runbook
// whose operations exist.
func TestQueriesAskForWhatThereIs(t *testing.T) {
	t.Parallel()
	known := map[string]metric{"up": {}}
	for _, r := range registered(t) {
		maps.Copy(known, r.metrics)
	}
	name := regexp.MustCompile(`\b(?:(?:idp|go|process)_\w+|up)\b`)
	suffix := regexp.MustCompile(`_(?:bucket|sum|count)$`)
	check := func(where, query string) {
		found := name.FindAllString(query, -1)
		assert.NotEmpty(t, found, where)
		for _, n := range found {
			_, plain := known[n]
			histogram := known[suffix.ReplaceAllString(n, "")].kind == "histogram"
			assert.True(t, plain || histogram && suffix.MatchString(n), "%s: there is no metric %s", where, n)
		}
	}
	for file, d := range dashboards {
		for _, p := range d.panels {
			for _, g := range p.lines {
				check(file+": "+p.title, g.query)
			}
		}
	}
	tests, err := os.ReadFile(filepath.Join(monitoring, "alerts_test.yml"))
	require.NoError(t, err)
	operations, err := os.ReadFile("../../cli/internal/operations/operations.json")
	require.NoError(t, err)
	path := regexp.MustCompile(`(?:GET|POST) (/v1/[\w/{}-]+)`)
	for _, a := range readAlerts(t) {
		check(a.Alert, a.Expr)
		assert.Contains(t, []string{"page", "ticket"}, a.Labels["severity"], a.Alert)
		assert.NotEmpty(t, a.Annotations["summary"], a.Alert)
		assert.NotEmpty(t, a.Annotations["runbook"], a.Alert)
		assert.Contains(t, string(tests), "name: "+a.Alert+"\n")
		for _, m := range path.FindAllStringSubmatch(a.Annotations["runbook"], -1) {
			assert.Contains(t, string(operations), `"path":"`+m[1]+`"`, a.Alert)
		}
	}
}

// TestAlerts plays the alerts' tests, and has the dashboards' queries parsed, with promtool.
func TestAlerts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("promtool (Debian: prometheus) is not installed")
	}
	run := func(args ...string) {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = monitoring
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "promtool %s: %s", args, out)
	}
	run("check", "config", "prometheus.yml")
	run("test", "rules", "alerts_test.yml")
	type rule struct{ Record, Expr string }
	var rules []rule
	chosen := strings.NewReplacer("$__rate_interval", "1m", "$service", "users")
	for _, file := range slices.Sorted(maps.Keys(dashboards)) {
		for _, p := range dashboards[file].panels {
			for _, g := range p.lines {
				rules = append(rules, rule{fmt.Sprintf("q:%d", len(rules)), chosen.Replace(g.query)})
			}
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "queries", "rules": rules}}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "queries.yml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	run("check", "rules", file)
}
