package permissions_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// rulesAtStart is how many rules BenchmarkStart has: IDP_BENCH_RULES, or 20,000.
func rulesAtStart() int {
	if n, err := strconv.Atoi(os.Getenv("IDP_BENCH_RULES")); err == nil {
		return n
	}
	return 20_000
}

// BenchmarkStart measures the time from the start of a replica to its first answer. The store is in the folder
// IDP_BENCH_DIR, where a later run finds it again, or in a temporary folder.
func BenchmarkStart(b *testing.B) {
	dir := os.Getenv("IDP_BENCH_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	file := filepath.Join(dir, fmt.Sprintf("permissions-%d.db", rulesAtStart()))
	_, err := os.Stat(file)
	s := testkit.Start(b, spec, testkit.Options{File: file})
	answer(b, s, func() company { return acme })
	awaitAnswers(b, s)
	if os.IsNotExist(err) {
		fill(b, s)
	}
	var took, spent time.Duration
	for b.Loop() {
		began, before := time.Now(), testkit.ProcessorTime(b)
		again := s.Replica(spec)
		awaitAnswers(b, again)
		took, spent = took+time.Since(began), spent+testkit.ProcessorTime(b)-before
		require.True(b, allowed(b, in(again, "acme"), "20"))
	}
	b.ReportMetric(took.Seconds()/float64(b.N), "s")
	b.ReportMetric(spent.Seconds()/float64(b.N), "cpu-s")
	b.ReportMetric(0, "ns/op")
}

// awaitAnswers is ready with the time to load many rules.
func awaitAnswers(b *testing.B, s *testkit.Service) {
	b.Helper()
	c := in(s, "acme")
	wait.Until(b, func() bool { return c.Post("/v1/auth-check", reading("20")).Status == 200 })
}

// fill grants a hundred resources to so many users that there are as many rules as asked for.
func fill(b *testing.B, s *testkit.Service) {
	c := in(s, "acme")
	addResource(b, c, "ledger")
	give(b, c, "node/11", data("ledger", "read"))
	var rules []object
	for i := range 100 {
		addResource(b, c, fmt.Sprint("record/", i))
		rules = append(rules, object{"application_id": "9", "type": "data", "code": fmt.Sprint("record/", i),
			"actions": []string{"read"}})
	}
	for made := 0; made < rulesAtStart(); made += 1000 {
		var identities []object
		for i := range 10 {
			id := strconv.Itoa(1_000_000 + made + i)
			identities = append(identities, object{"identity_type": "user", "identity_id": id})
		}
		c.Post("/v1/batch/auth-unit-rules", object{"identities": identities, "rules": rules}).OK(nil)
	}
}
