package sqlitestore_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/request"
)

// person is like the platform's largest record: 10 search words, 3 login keys, 5 orders.
type person struct {
	docstore.Meta
	Username string   `json:"username"`
	Email    string   `json:"email"`
	Mobile   string   `json:"mobile"`
	Name     string   `json:"name"`
	Status   string   `json:"status"`
	Title    string   `json:"title"`
	Address  string   `json:"address"`
	Words    []string `json:"words"`
}

var persons = docstore.Define(docstore.Schema[person]{
	Name: "persons", Noun: "person", Revision: 1,
	Indexes: []docstore.Index[person]{
		docstore.ByList("words", func(p *person) []string { return p.Words }),
		docstore.Unique(docstore.ByList("logins", func(p *person) []string {
			return []string{"u:" + p.Username, "e:" + p.Email, "m:" + p.Mobile}
		}), "username", "email", "mobile"),
		docstore.ByText("name", func(p *person) string { return p.Name }),
		docstore.ByText("username", func(p *person) string { return p.Username }),
		docstore.ByText("status", func(p *person) string { return p.Status }),
		docstore.ByNumber("created", func(p *person) docstore.Value { return docstore.Moment(p.TimeCreated) }),
		docstore.ByNumber("modified", func(p *person) docstore.Value { return docstore.Moment(p.TimeModified) }),
	},
})

var people = persons.Def()

// newPerson makes words like those of names: a few that all share, some that many share, and rare ones.
func newPerson(id string, n int) *person {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	p := &person{
		Meta:     docstore.Meta{ID: id},
		Username: fmt.Sprintf("user%07d", n), Email: fmt.Sprintf("user%07d@example.com", n),
		Mobile:  fmt.Sprintf("+86%011d", n),
		Name:    fmt.Sprintf("Name %05d Family %03d", r.IntN(50_000), r.IntN(500)),
		Status:  []string{"1", "1", "1", "0"}[n%4],
		Title:   "Senior engineer",
		Address: "1 Example Street, Example Town, 12345 Example Country, behind the third door on the left",
	}
	p.Words = []string{"example", "user", fmt.Sprintf("user%07d", n), fmt.Sprintf("%011d", n)}
	for range 3 {
		p.Words = append(p.Words, fmt.Sprintf("given%04d", r.IntN(5000)))
	}
	for range 3 {
		p.Words = append(p.Words, fmt.Sprintf("family%02d", min(r.IntN(100), r.IntN(100))))
	}
	return p
}

func openBench(tb testing.TB, path string) *docstore.Store {
	tb.Helper()
	s, _ := openEngine(tb, path)
	return s
}

func openEngine(tb testing.TB, path string) (*docstore.Store, *sqlitestore.Engine) {
	tb.Helper()
	e, err := sqlitestore.Open(tb.Context(), sqlitestore.Options{Path: path, Log: slog.New(slog.DiscardHandler)})
	require.NoError(tb, err)
	s, err := docstore.Open(tb.Context(), e, clock.System, people)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s, e
}

func benchContext(tb testing.TB) context.Context {
	return request.With(tb.Context(), request.Info{Tenant: "1048577"})
}

func insertPeople(ctx context.Context, s *docstore.Store, from, n int) error {
	ids, err := s.NewIDs(ctx, n)
	if err != nil {
		return err
	}
	_, err = docstore.Write(ctx, s, func(tx *docstore.Tx) (int, error) {
		for i, id := range ids {
			d, err := persons.Insert(ctx, tx, newPerson(id, from+i))
			if err != nil {
				return 0, err
			}
			body, err := d.JSON()
			if err != nil {
				return 0, err
			}
			if err := tx.Append(ctx, docstore.Message{ID: id, Subject: "idp.events.1048577.user.created", Record: id,
				Payload: body}); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	return err
}

const benchPeople = 100_000

// benchFile is made once, for all benchmarks of reads.
var benchFile = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sqlitestore-bench")
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "people.db"), nil
})

func filled(b *testing.B) (*docstore.Store, *sqlitestore.Engine, context.Context) {
	b.Helper()
	path, err := benchFile()
	require.NoError(b, err)
	s, e := openEngine(b, path)
	ctx := benchContext(b)
	n, err := persons.Count(ctx, s, docstore.Filter{})
	require.NoError(b, err)
	for ; n < benchPeople; n += 500 {
		require.NoError(b, insertPeople(ctx, s, int(n), 500))
	}
	return s, e, ctx
}

func perSecond(b *testing.B, each int) {
	b.ReportMetric(float64(b.N*each)/b.Elapsed().Seconds(), "ops/s")
}

func BenchmarkGet(b *testing.B) {
	s, _, ctx := filled(b)
	for i := 0; b.Loop(); i++ {
		_, err := persons.Find(ctx, s, fmt.Sprint(1<<20+1+i*7919%benchPeople))
		require.NoError(b, err)
	}
	perSecond(b, 1)
}

func BenchmarkGetParallel(b *testing.B) {
	s, _, ctx := filled(b)
	var i atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, err := persons.Find(ctx, s, fmt.Sprint(1<<20+1+i.Add(7919)%benchPeople))
			require.NoError(b, err)
		}
	})
	perSecond(b, 1)
}

func BenchmarkPages(b *testing.B) {
	s, _, ctx := filled(b)
	text := docstore.Text
	byName, newest := []docstore.Order{{Index: "name"}}, []docstore.Order{{Index: "created", Desc: true}}
	word := func(w string) docstore.Filter { return docstore.Prefix("words", w) }
	deep := docstore.Query{Sort: byName, Limit: 50, Offset: benchPeople * 9 / 10}
	page, err := persons.Page(ctx, s, deep)
	require.NoError(b, err)
	for _, c := range []struct {
		name string
		q    docstore.Query
	}{
		{"first", docstore.Query{Sort: byName, Limit: 50}},
		{"first with total", docstore.Query{Sort: byName, Limit: 50, Count: true}},
		{"deep by token", docstore.Query{Sort: byName, Limit: 50, After: page.Next}},
		{"deep by number", docstore.Query{Sort: byName, Limit: 50, Offset: deep.Offset}},
		{"by login", docstore.Query{Filter: docstore.Eq("logins", text("u:user0054321")), Limit: 1}},
		{"by prefix of the order", docstore.Query{Filter: docstore.Prefix("name", "Name 031"), Sort: byName,
			Limit: 50}},
		{"by status, broad", docstore.Query{Filter: docstore.Eq("status", text("1")), Sort: newest, Limit: 50}},
		{"search selective", docstore.Query{Filter: word("given012"), Sort: newest, Limit: 50}},
		{"search one person", docstore.Query{Filter: word("user0054321"), Sort: newest, Limit: 50}},
		{"search 2 words selective", docstore.Query{Filter: docstore.And(word("family07"), word("given0123")),
			Sort: newest, Limit: 50}},
		{"search 2 words selective with total", docstore.Query{Filter: docstore.And(word("family07"),
			word("given0123")), Sort: newest, Limit: 50, Count: true}},
		{"search 2 words broad", docstore.Query{Filter: docstore.And(word("example"), word("user")), Sort: newest,
			Limit: 50}},
		{"search 2 words broad with total", docstore.Query{Filter: docstore.And(word("example"), word("user")),
			Sort: newest, Limit: 50, Count: true}},
		{"search a word of all with total", docstore.Query{Filter: word("example"), Sort: newest, Limit: 50,
			Count: true}},
		{"search a prefix of all with total", docstore.Query{Filter: docstore.Or(docstore.Prefix("logins", "u:user"),
			docstore.Prefix("name", "name")), Sort: newest, Limit: 50, Count: true}},
		{"search a word and a status with total", docstore.Query{Filter: docstore.And(word("family0"),
			docstore.Eq("status", text("1"))), Sort: newest, Limit: 50, Count: true}},
		{"search 2 words middling", docstore.Query{Filter: docstore.And(word("family0"), word("family1")), Sort: newest,
			Limit: 50}},
		{"search 2 words broad, no match", docstore.Query{Filter: docstore.And(word("family00"), word("given1"),
			docstore.Eq("status", text("none"))), Sort: newest, Limit: 50}},
		{"search 2 words, few matches of many", docstore.Query{Filter: docstore.And(word("family8"), word("family9")),
			Sort: newest, Limit: 50}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := persons.Page(ctx, s, c.q)
				require.NoError(b, err)
			}
			perSecond(b, 1)
		})
	}
}

func BenchmarkInsert(b *testing.B) {
	for _, writers := range []int{1, 32} {
		b.Run(fmt.Sprintf("%d writers", writers), func(b *testing.B) {
			s, ctx := openBench(b, filepath.Join(b.TempDir(), "w.db")), benchContext(b)
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range writers {
				wg.Go(func() {
					for {
						n := int(next.Add(1))
						if n > b.N {
							return
						}
						if err := insertPeople(ctx, s, n, 1); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			perSecond(b, 1)
		})
	}
	b.Run("bulk of 500", func(b *testing.B) {
		s, ctx := openBench(b, filepath.Join(b.TempDir(), "w.db")), benchContext(b)
		b.ResetTimer()
		for i := range b.N {
			require.NoError(b, insertPeople(ctx, s, i*500, 500))
		}
		perSecond(b, 500)
	})
}

func BenchmarkReplace(b *testing.B) {
	s, ctx := openBench(b, filepath.Join(b.TempDir(), "w.db")), benchContext(b)
	require.NoError(b, insertPeople(ctx, s, 0, 500))
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range 32 {
		wg.Go(func() {
			for {
				n := int(next.Add(1))
				if n > b.N {
					return
				}
				_, err := docstore.Write(ctx, s, func(tx *docstore.Tx) (int, error) {
					p, err := persons.Load(ctx, tx, fmt.Sprint(1<<20+1+n%500))
					if err != nil {
						return 0, err
					}
					p.Title = fmt.Sprint("title ", n)
					_, err = persons.Replace(ctx, tx, p)
					return 0, err
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	perSecond(b, 1)
}
