package events_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
	"github.com/idplatform/idplatform/services/events"
)

// counting counts the transactions of an engine.
type counting struct {
	docstore.Engine
	writes *atomic.Int64
}

func (c counting) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	c.writes.Add(1)
	return c.Engine.Write(ctx, fn)
}

// BenchmarkIdle measures what subscriptions cost for which nothing happens, while another tenant changes something each
// second. IDP_BENCH_SUBSCRIPTIONS is their number, b.N the seconds: use -benchtime 60x.
func BenchmarkIdle(b *testing.B) {
	const ofTenant = 200
	many := ofTenant
	if text := os.Getenv("IDP_BENCH_SUBSCRIPTIONS"); text != "" {
		var err error
		many, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	var writes atomic.Int64
	s := startWith(b, events.DefaultConfig(), testkit.Options{
		Engine: func(e docstore.Engine) docstore.Engine { return counting{e, &writes} },
	})
	for n := range many {
		in(s, fmt.Sprint("tenant", n/ofTenant)).Post(subscriptionsPath,
			hook(fmt.Sprint("s", n), "https://hr.acme.test/events", onlyThings)).OK(nil)
	}
	wait.Until(b, func() bool { return share(b, s) == float64(many) })
	second := time.NewTicker(time.Second)
	defer second.Stop()
	b.ResetTimer()
	processor, before := testkit.ProcessorTime(b), writes.Load()
	for n := range b.N {
		tell(b, s, "other", "1", int64(n+1), "updated")
		<-second.C
	}
	seconds := float64(b.N)
	b.ReportMetric((testkit.ProcessorTime(b)-processor).Seconds()*1000/seconds, "processor-ms/s")
	b.ReportMetric(float64(writes.Load()-before)/seconds, "transactions/s")
}
