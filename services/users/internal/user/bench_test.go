package user

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/request"
)

// crowd is a filled store of users who were created over two years; the clock is at the end of them.
type crowd struct {
	*Users
	ctx  context.Context
	now  atomic.Int64
	size int
}

// Now returns the crowd's time.
func (c *crowd) Now() clock.Time { return clock.FromMillis(c.now.Load()) }

const (
	crowdBegan = int64(1_700_000_000_000)
	crowdEnded = crowdBegan + 2*365*24*3600*1000
)

// crowdSize is IDP_BENCH_USERS, or 100,000.
func crowdSize(b *testing.B) int {
	b.Helper()
	text := os.Getenv("IDP_BENCH_USERS")
	if text == "" {
		return 100_000
	}
	n, err := strconv.Atoi(text)
	require.NoError(b, err)
	return n
}

// gather opens a store of so many users. It fills a new one unless IDP_BENCH_DIR has it.
func gather(b *testing.B, size int) *crowd {
	b.Helper()
	dir := os.Getenv("IDP_BENCH_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	c := &crowd{size: size, ctx: request.With(context.Background(), request.Info{Tenant: "acme", Actor: "bench"})}
	c.now.Store(crowdBegan)
	path := filepath.Join(dir, fmt.Sprintf("users-%d.db", size))
	engine, err := sqlitestore.Open(c.ctx, sqlitestore.Options{Path: path, Log: slog.Default()})
	require.NoError(b, err)
	store, err := docstore.Open(c.ctx, engine, c, users.Def())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, store.Close()) })
	c.Users = &Users{Deps: Deps{Store: store}}
	began := time.Now()
	there, err := users.Count(c.ctx, store, docstore.Filter{})
	require.NoError(b, err)
	for n := int(there); n < size; n += 1000 {
		c.now.Store(crowdBegan + (crowdEnded-crowdBegan)/int64(size)*int64(n))
		c.add(b, n, 1000, 150)
	}
	if int(there) < size {
		fmt.Fprintf(os.Stderr, "%d users took %s\n", size, time.Since(began))
	}
	c.now.Store(crowdEnded)
	return c
}

// add adds users from the n-th on, and changes some of the existing ones.
func (c *crowd) add(b *testing.B, n, more, changed int) {
	ids, err := c.Store.NewIDs(c.ctx, more)
	require.NoError(b, err)
	r := rand.New(rand.NewPCG(7, uint64(n)))
	_, err = docstore.Write(c.ctx, c.Store, func(tx *docstore.Tx) (int, error) {
		for i, id := range ids {
			if _, err := users.Collection.Insert(c.ctx, tx, someone(r, id, n+i, tx.Now, c.size)); err != nil {
				return 0, err
			}
		}
		for range changed {
			u, err := users.Load(c.ctx, tx, strconv.Itoa(1<<20+1+r.IntN(n+more)))
			if err != nil {
				return 0, err
			}
			if _, err := users.Collection.Touch(c.ctx, tx, u); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	require.NoError(b, err)
}

var (
	givenNames = strings.Fields("Li Wei Fang Min Jing Lei Yang Anna Ben Carla David Elena Farid " +
		"Gita Hugo Ines Jamal Kira Liam Mona Nils Olga Pavel Quinn Rosa Sven Tara Umar Vera Wanda Xenia Yusuf Zoe")
	familyNames = strings.Fields(
		"Wang Li Zhang Liu Chen Yang Huang Zhao Wu Zhou Abbott Becker Castro Dubois Eriksen Fischer " +
			"Garcia Hansen Ivanov Jensen Kowalski Lopez Martin Novak Okafor Petrov Quist Rossi Schmidt Tanaka Ueda " +
			"Vogel Xu Ziegler")
)

// someone makes a user: most of those who were created early have resigned, one in sixteen is disabled, one in two
// hundred locked.
func someone(r *rand.Rand, id string, n int, now clock.Time, size int) *User {
	given, family := givenNames[r.IntN(len(givenNames))], familyNames[r.IntN(len(familyNames))]
	u := &User{Meta: docstore.Meta{ID: id, TimeCreated: now.Add(time.Duration(r.IntN(1000)) * time.Millisecond)}}
	u.Username = strings.ToLower(given+"."+family) + strconv.Itoa(n)
	u.DisplayName = given + " " + family
	u.Email = u.Username + "@acme.test"
	u.Mobile = fmt.Sprintf("+86138%08d", n)
	u.EmployeeNumber = fmt.Sprintf("A-%d", n)
	u.Status, u.RealNameStatus = Active, RealNameNone
	switch {
	case r.IntN(size) > n && r.IntN(5) == 0:
		u.Status, u.TimeResigned = Resigned, now
	case r.IntN(16) == 0:
		u.Status = Disabled
	case r.IntN(1000) == 0:
		u.TimeResigned = clock.FromMillis(crowdEnded + 1 + r.Int64N(1e10))
	}
	switch r.IntN(400) {
	case 0:
		u.lock("", clock.Time{})
	case 1:
		u.lock("", clock.FromMillis(crowdEnded+1+r.Int64N(1e9)))
	}
	return u
}

// between is a range of the two years, given in thousandths.
func between(r *rand.Rand, thousandths int64) Filter {
	length := (crowdEnded - crowdBegan) / 1000 * thousandths
	from := crowdBegan + r.Int64N(crowdEnded-crowdBegan-length)
	return Filter{ModifiedFrom: clock.FromMillis(from), ModifiedTo: clock.FromMillis(from + length)}
}

func words(r *rand.Rand, n int) string {
	return strings.Join([]string{givenNames[r.IntN(len(givenNames))], familyNames[r.IntN(len(familyNames))],
		"acme"}[:n], " ")
}

// choices are filters of a list, each alone.
var choices = []struct {
	name string
	set  func(*rand.Rand, *Filter)
}{
	{"status=1", func(_ *rand.Rand, f *Filter) { f.Status = Active }},
	{"status=0", func(_ *rand.Rand, f *Filter) { f.Status = Disabled }},
	{"status=resigned", func(_ *rand.Rand, f *Filter) { f.Status = Resigned }},
	{"locked", func(_ *rand.Rand, f *Filter) { f.Locked = new(true) }},
	{"unlocked", func(_ *rand.Rand, f *Filter) { f.Locked = new(false) }},
	{"ids", func(r *rand.Rand, f *Filter) {
		for range 200 {
			f.IDs = append(f.IDs, strconv.Itoa(1<<20+1+r.IntN(100_000)))
		}
	}},
	{"keyword rare", func(r *rand.Rand, f *Filter) { f.Keyword = words(r, 1)[:2] + "." + strconv.Itoa(r.IntN(100)) }},
	{"keyword common", func(r *rand.Rand, f *Filter) { f.Keyword = words(r, 1)[:2] }},
	{"keyword one letter", func(r *rand.Rand, f *Filter) { f.Keyword = words(r, 1)[:1] }},
	{"words of all", func(r *rand.Rand, f *Filter) { f.Keyword, f.FullText = "acme", true }},
	{"words of some", func(r *rand.Rand, f *Filter) { f.Keyword, f.FullText = words(r, 1), true }},
	{"words, two", func(r *rand.Rand, f *Filter) { f.Keyword, f.FullText = words(r, 2), true }},
	{"words, three", func(r *rand.Rand, f *Filter) { f.Keyword, f.FullText = words(r, 3), true }},
	{"modified within a day", func(r *rand.Rand, f *Filter) {
		t := between(r, 1)
		f.ModifiedFrom, f.ModifiedTo = t.ModifiedFrom, t.ModifiedTo
	}},
	{"modified within a month", func(r *rand.Rand, f *Filter) {
		t := between(r, 40)
		f.ModifiedFrom, f.ModifiedTo = t.ModifiedFrom, t.ModifiedTo
	}},
	{"modified within a year", func(r *rand.Rand, f *Filter) {
		t := between(r, 500)
		f.ModifiedFrom, f.ModifiedTo = t.ModifiedFrom, t.ModifiedTo
	}},
}

// combined are pairs and triples of choices, by name.
var combined = [][]string{
	{}, {"status=0", "locked"}, {"status=1", "unlocked"}, {"status=1", "locked"}, {"status=resigned", "unlocked"},
	{"status=1", "modified within a month"}, {"status=0", "modified within a year"}, {"locked",
		"modified within a year"}, {"unlocked", "modified within a day"},
	{"status=1", "keyword common"}, {"status=0", "keyword one letter"}, {"status=0",
		"words of all"}, {"status=resigned", "words of some"}, {"locked", "words of some"},
	{"keyword common", "modified within a month"}, {"words of all", "modified within a year"}, {"words of some",
		"modified within a month"},
	{"status=1", "ids"}, {"status=1", "unlocked", "keyword common", "modified within a year"}, {"status=0",
		"unlocked", "words of some", "modified within a year"},
}

// BenchmarkList reads pages with their totals. Before each page a user is added, so that no result is cached.
// IDP_BENCH_USERS is the number of users; with IDP_BENCH_DIR the file is kept there for the next run.
func BenchmarkList(b *testing.B) {
	// The heap of this program is so small that garbage would be collected every 30 ms. That of a service is not.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	c := gather(b, crowdSize(b))
	made := map[string]func(*rand.Rand, *Filter){}
	all := slices.Clone(combined)
	for _, one := range choices {
		made[one.name] = one.set
		all = append(all, []string{one.name})
	}
	there, err := users.Count(c.ctx, c.Store, docstore.Filter{})
	require.NoError(b, err)
	next := int(there)
	for _, names := range all {
		b.Run(strings.Join(names, " + "), func(b *testing.B) {
			r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
			worst, worstOrder := time.Duration(0), ""
			var took []time.Duration
			for _, field := range sortable {
				for _, desc := range []bool{false, true} {
					var of []time.Duration
					for range samples {
						next++
						c.add(b, next, 1, 0)
						var f Filter
						for _, name := range names {
							made[name](r, &f)
						}
						p := docstore.Paging{Num: 1, Size: 20, Sort: field}
						if desc {
							p.Sort += "[desc]"
						}
						before := time.Now()
						_, err := c.List(c.ctx, f, p)
						of = append(of, time.Since(before))
						require.NoError(b, err)
					}
					slices.Sort(of)
					if len(of) > 2 && of[len(of)*9/10] > worst {
						worst, worstOrder = of[len(of)*9/10], fmt.Sprint(field, " ", desc)
					}
					took = append(took, of...)
				}
			}
			slices.Sort(took)
			b.ReportMetric(milliseconds(took[len(took)/2]), "p50-ms")
			b.ReportMetric(milliseconds(took[len(took)*99/100]), "p99-ms")
			b.ReportMetric(milliseconds(worst), "worst-order-ms")
			b.ReportMetric(0, "ns/op")
			b.Log(worstOrder)
		})
	}
}

const samples = 50

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkListDeep reads pages by number far into the list, without a filter and with one.
func BenchmarkListDeep(b *testing.B) {
	c := gather(b, crowdSize(b))
	for _, field := range []string{byTimeCreated, byUsername} {
		for _, f := range []Filter{{}, {Status: Active}} {
			for _, share := range []int{100, 10, 2} {
				b.Run(fmt.Sprintf("by %s, status %q, after one in %d", field, f.Status, share), func(b *testing.B) {
					for b.Loop() {
						_, err := c.List(c.ctx, f, docstore.Paging{Num: c.size/share/20 + 1, Size: 20, Sort: field})
						require.NoError(b, err)
					}
				})
			}
		}
	}
}
