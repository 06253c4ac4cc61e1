package events_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/events"
)

func exporting(target string) events.Config {
	c := events.DefaultConfig()
	c.Audit.Export = target
	return c
}

// exported waits until a file has lines about n different events of things, and returns them.
func exported(t *testing.T, file string, n int) map[string]object {
	t.Helper()
	found := map[string]object{}
	wait.Until(t, func() bool {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			var one object
			if json.Unmarshal([]byte(line), &one) == nil && one["unmapped"].(object)["entity"] == "component" {
				found[one["metadata"].(object)["uid"].(string)] = one
			}
		}
		return len(found) >= n
	}, "%d", len(found))
	require.Len(t, found, n)
	return found
}

func TestAuditExport(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.ocsf")
	s := startWith(t, exporting("file://"+file))
	tell(t, s, "acme", "7", 1, "created")
	tell(t, s, "globex", "8", 1, "created")
	for _, one := range exported(t, file, 2) {
		require.EqualValues(t, 3004, one["class_uid"])
		require.EqualValues(t, 300401, one["type_uid"])
		require.Equal(t, "ann", one["actor"].(object)["user"].(object)["uid"])
		require.Equal(t, "request-1", one["metadata"].(object)["correlation_uid"])
		require.Contains(t, []any{"acme", "globex"}, one["metadata"].(object)["tenant_uid"])
	}
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	require.NoError(t, os.Rename(file, file+".1")) // as logrotate does
	tell(t, s, "acme", "7", 2, "updated")
	exported(t, file, 1)
	exported(t, file+".1", 2)
}

// A target that fails gets everything once it works again.
func TestAuditExportWaitsForItsTarget(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "later")
	s := startWith(t, exporting("file://"+folder+"/audit.ocsf"))
	for n := range 3 {
		tell(t, s, "acme", "7", int64(n+1), "updated")
	}
	awaitEntries(t, in(s, "acme"), "entity=component", 3) // the audit log itself does not wait
	wait.Until(t, func() bool { return gauge(t, s, "idp_audit_export_behind_events") >= 3 }, "the metric")
	require.NoError(t, os.Mkdir(folder, 0o700))
	exported(t, folder+"/audit.ocsf", 3)
}

// The place survives: another replica goes on where one that has lost its store was.
func TestAuditExportOfReplicas(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.ocsf")
	spec := events.Spec(exporting("file://" + file))
	s := startWith(t, exporting("file://"+file))
	var broken atomic.Bool
	other := s.Replica(spec, testkit.Options{
		Engine: func(e docstore.Engine) docstore.Engine { return fragile{Engine: e, broken: &broken} },
	})
	t.Cleanup(func() { broken.Store(false) })
	other.Ready()
	s.Replica(spec).Ready()
	for n := range 200 {
		if n == 100 {
			broken.Store(true)
		}
		tell(t, s, "acme", "7", int64(n+1), "updated")
	}
	exported(t, file, 200)
}

func TestAuditExportSettings(t *testing.T) {
	t.Parallel()
	deps := start(t).Deps
	for _, text := range []string{
		"file://audit", "/var/log/audit", "udp://siem:514", "tcp://siem", "tcp://a:b@siem:1", "tls://siem:1/x", "%",
	} {
		_, err := events.Spec(exporting(text)).New(t.Context(), deps)
		require.ErrorContains(t, err, "audit.export must be", text)
		require.NotContains(t, err.Error(), "siem:")
	}
}
