package audit

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
)

// BenchmarkPages compares pages of a large log with those of a hundred thousand entries, for each combination of
// filters and in both directions, while both logs are written. Both files are in memory: otherwise the p99 is that of
// reads from the disk. IDP_BENCH_ENTRIES is the size of the large one; with IDP_BENCH_DIR the files stay there for the
// next run, until this benchmark has made a file a fifth larger.
func BenchmarkPages(b *testing.B) {
	size := 200_000
	if text := os.Getenv("IDP_BENCH_ENTRIES"); text != "" {
		var err error
		size, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	// As in the whole program, garbage is collected rarely. With the little memory that is in use here, one page in
	// fifty would be read during a collection.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(192 << 20))
	logs := [2]*filled{fill(b, 100_000), fill(b, size)}
	r := rand.New(rand.NewPCG(1, 2))
	for mask := range 1 << 6 {
		b.Run(combination(mask), func(b *testing.B) {
			var took [2][2][]time.Duration // with a total or without, of each log
			for b.Loop() {
				for i, log := range logs {
					for n, count := range []bool{false, true} {
						took[n][i] = append(took[n][i], log.page(b, r, mask, count))
					}
				}
			}
			for n, unit := range []string{"", "-with-total"} {
				of := func(i, hundredths int) float64 { return percentile(took[n][i], hundredths) }
				b.ReportMetric(of(1, 50), "p50-µs"+unit)
				b.ReportMetric(of(1, 99), "p99-µs"+unit)
				b.ReportMetric(of(1, 50)/of(0, 50), "p50-of-100k"+unit)
				b.ReportMetric(of(1, 99)/of(0, 99), "p99-of-100k"+unit)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// percentile is the median of those of five rounds, in µs: a pause of the machine is in the p99 of one of them.
func percentile(took []time.Duration, hundredths int) float64 {
	var rounds []float64
	for round := range slices.Chunk(took, (len(took)+4)/5) {
		round = slices.Sorted(slices.Values(round))
		rounds = append(rounds, float64(round[len(round)*hundredths/100].Microseconds()))
	}
	slices.Sort(rounds)
	return rounds[len(rounds)/2]
}

var filterNames = []string{"actor", "entity", "record", "action", "outcome", "time"}

func combination(mask int) string {
	name := ""
	for i, filter := range filterNames {
		if mask&(1<<i) != 0 {
			name += "+" + filter
		}
	}
	return cmp.Or(strings.TrimPrefix(name, "+"), "none")
}

// page writes an entry, so that no page is cached, and measures a page of 20 for a combination of filters with the
// values of one of the entries. One page in ten is about a denied attempt, if it is not about a record: denied attempts
// have none. So the p99 is about the costlier of the two kinds of entries, not by chance about the one or the other.
func (l *filled) page(b *testing.B, r *rand.Rand, mask int, count bool) time.Duration {
	b.Helper()
	ctx := request.System(b.Context(), "acme")
	l.add(b, 1)
	n := r.IntN(l.size)
	switch {
	case r.IntN(10) == 0 && mask&(1<<slices.Index(filterNames, "record")) == 0:
		n -= n % deniedEach
	case n%deniedEach == 0:
		n++
	}
	f := filterLike(sample(n), mask)
	paging := docstore.Paging{Num: 1, Size: 20, Sort: []string{"time", "time[desc]"}[r.IntN(2)],
		Count: docstore.Flag(strconv.FormatBool(count))}
	began := time.Now()
	page, err := l.List(ctx, f, paging)
	took := time.Since(began)
	require.NoError(b, err)
	require.NotEmpty(b, page.Docs)
	return took
}

// filterLike is a combination of filters with the values of an entry.
func filterLike(of *Entry, mask int) (f Filter) {
	for i, set := range []func(){
		func() { f.Actor = of.Actor }, func() { f.Entity = of.Entity }, func() { f.Record = of.Record },
		func() { f.Action = of.Action }, func() { f.Outcome = of.Outcome },
		func() { f.From, f.To = of.Time.Add(-24*time.Hour), of.Time.Add(24*time.Hour) },
	} {
		if mask&(1<<i) != 0 {
			set()
		}
	}
	return f
}

// filled is a log of the first samples.
type filled struct {
	Log
	size int
}

// fill opens a log of so many entries.
func fill(b *testing.B, size int) *filled {
	b.Helper()
	dir := cmp.Or(os.Getenv("IDP_BENCH_DIR"), b.TempDir())
	path := filepath.Join(dir, fmt.Sprintf("audit-%d.db", size))
	l := openFile(b, path)
	if l.size > size*6/5 {
		require.NoError(b, l.Store.Close())
		for _, suffix := range []string{"", "-wal", "-shm"} {
			require.NoError(b, os.RemoveAll(path+suffix))
		}
		l = openFile(b, path)
	}
	b.Cleanup(func() { require.NoError(b, l.Store.Close()) })
	for l.size < size {
		l.add(b, min(5000, size-l.size))
	}
	file, err := os.Open(path)
	require.NoError(b, err)
	defer func() { _ = file.Close() }()
	_, err = io.Copy(io.Discard, file)
	require.NoError(b, err)
	return l
}

// openFile opens or creates a log.
func openFile(b *testing.B, path string) *filled {
	b.Helper()
	engine, err := sqlitestore.Open(b.Context(), sqlitestore.Options{Path: path, Log: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	store, err := docstore.Open(b.Context(), engine, clock.System, Collections()...)
	require.NoError(b, err)
	ctx := request.System(context.Background(), "acme")
	there, err := entries.Count(ctx, store, docstore.Filter{})
	require.NoError(b, err)
	return &filled{Log{Store: store}, int(there)}
}

// add writes entries.
func (l *filled) add(b *testing.B, more int) {
	b.Helper()
	ctx := request.System(context.Background(), "acme")
	var list []*Entry
	for n := range more {
		list = append(list, sample(l.size+n))
	}
	require.NoError(b, docstore.Do(ctx, l.Store, func(tx *docstore.Tx) error { return insert(ctx, tx, list) }))
	l.size += more
}

// deniedEach is how many entries there are for each denied attempt: few enough that pages about the attempts of
// an actor are full in both logs.
const deniedEach = 25

// sample is the n-th entry of a log with 100 actors, 5,000 a day and 20 of each record.
func sample(n int) *Entry {
	at := clock.FromMillis(1_700_000_000_000 + int64(n)*17_280)
	r := rand.New(rand.NewPCG(uint64(n), 7)) //nolint:gosec // it grows
	e := &Entry{
		Meta: docstore.Meta{ID: strconv.Itoa(stream.FirstID + n), TimeCreated: at}, Time: at,
		Actor: fmt.Sprint("actor-", r.IntN(100)), Entity: fmt.Sprint("entity-", r.IntN(12)),
		Record: strconv.Itoa(1<<20 + n/200*10 + r.IntN(10)),
		Action: []string{"created", "updated", "updated", "updated", "deleted", "moved"}[r.IntN(6)], Outcome: Done,
		Count: 1, EventID: fmt.Sprintf("%012d-7c4d-9e5f-0123456789ab", n),
		Changes: []Change{{"email", null, []byte(`"li.wei@acme.test"`)}, {"display_name", null, []byte(`"李伟"`)}},
	}
	if n%deniedEach == 0 {
		e.Entity, e.Action, e.Outcome, e.Record = "access", fmt.Sprint("operation-", r.IntN(50)), Denied, ""
	}
	return e
}

// BenchmarkEntry makes the entry of a user's creation, and its JSON form.
func BenchmarkEntry(b *testing.B) {
	event, err := stream.Decode("idp.events.acme.user.created", []byte(created))
	require.NoError(b, err)
	event.Place = 7
	b.ReportAllocs()
	for b.Loop() {
		entryOf(&event).AppendJSON(make([]byte, 0, 2048))
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
