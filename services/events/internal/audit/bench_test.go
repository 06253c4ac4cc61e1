package audit

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/services/events/internal/feed"
)

// BenchmarkPages is the time of a page for each filter, at a size of the log and at ten times that. IDP_BENCH_ENTRIES
// is the smaller size.
func BenchmarkPages(b *testing.B) {
	small := 20_000
	if text := os.Getenv("IDP_BENCH_ENTRIES"); text != "" {
		var err error
		small, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	for _, size := range []int{small, 10 * small} {
		store := testkit.Store(b, clock.System, Collections()...)
		began := time.Now()
		fill(b, store, size)
		b.Logf("%d entries a second are written", int(float64(size)/time.Since(began).Seconds()))
		log := &Log{Store: store}
		ctx := request.System(context.Background(), "acme")
		for name, filter := range map[string]Filter{
			"all": {}, "actor": {Actor: "actor-7"}, "record": {Record: "1048777"}, "action": {Action: "updated"},
			"entity and action": {Entity: "user", Action: "created"}, "denied": {Outcome: Denied},
			"actor and action": {Actor: "actor-7", Action: "created"},
			"time":             {From: clock.FromMillis(int64(size) * 500), To: clock.FromMillis(int64(size) * 600)},
			"actor and time":   {Actor: "actor-7", From: clock.FromMillis(int64(size) * 500)},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					began := time.Now()
					_, err := log.List(ctx, filter, docstore.Paging{Num: 1, Size: 20, Sort: "time[desc]", Count: true})
					require.NoError(b, err)
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			})
		}
		require.NoError(b, store.Close())
	}
}

// fill writes entries with 100 actors, a record for every 20 entries, and a hundredth of denied attempts.
func fill(b *testing.B, store *docstore.Store, size int) {
	b.Helper()
	ctx := request.System(context.Background(), "acme")
	for from := 0; from < size; from += batch {
		require.NoError(b, docstore.Do(ctx, store, func(tx *docstore.Tx) error {
			var list []*Entry
			for n := from; n < from+batch; n++ {
				e := &Entry{
					Meta: docstore.Meta{ID: strconv.Itoa(firstID + n)}, Time: clock.FromMillis(int64(n) * 1000),
					Actor: fmt.Sprintf("actor-%d", n%100), Entity: "user", Record: strconv.Itoa(1048576 + n/20),
					Action: []string{"created", "updated", "updated", "deleted"}[n%4], Outcome: Done, Count: 1,
					Changes: []Change{}, EventID: fmt.Sprintf("event-%d", n),
				}
				if n%100 == 0 {
					e.Outcome = Denied
				}
				list = append(list, e)
			}
			return insert(ctx, tx, list)
		}))
	}
}

// BenchmarkEntry makes the entry of a user's creation, and its JSON form.
func BenchmarkEntry(b *testing.B) {
	event, err := feed.NewEvent(7, "idp.events.acme.user.created", []byte(created))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		entryOf(event).AppendJSON(make([]byte, 0, 2048))
	}
}

const created = `{"specversion":"1.0","id":"019c1f3e-8a2b-7c4d-9e5f-0123456789ab","source":"/users",` +
	`"type":"idp.user.created","subject":"1048577","time":"2026-01-31T09:30:00.000Z",` +
	`"datacontenttype":"application/json","tenantid":"acme","actor":"administrator",` +
	`"requestid":"4mrhvkqtwz5c2d7ba3gxyun6ep","sequence":"10","data":{"record":{"id":"1048577","tenant_id":"acme",` +
	`"version":1,"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z",` +
	`"username":"li.wei","display_name":"李伟","email":"li.wei@acme.test","mobile":"","employee_number":"A-17",` +
	`"gender":"","avatar_url":"","status":"1","locked":false,"locked_until":null,"email_verified":false,` +
	`"mobile_verified":false,"mfa_enabled":"0","password_set":false,"time_last_login":null,"hire_date":null,` +
	`"resign_time":null,"id_number_masked":"","sys_ext_props":{},"free_ext_props":{}}}}`
