package sqlitestore_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// named is like the records that people search by a keyword: jobs, resources, authorization units.
type named struct {
	docstore.Meta
	Name string `json:"name"`
	Code string `json:"code"`
}

var nameds = docstore.Define(docstore.Schema[named]{
	Name: "nameds", Noun: "named", Sortable: []string{"time_created"},
	Indexes: slices.Concat([]docstore.Index[named]{
		docstore.ByNumber("time_created", func(n *named) docstore.Value { return docstore.Moment(n.TimeCreated) }),
	}, textindex.KeywordIndexes(func(n *named) []string { return []string{n.Name, n.Code} })),
})

// BenchmarkKeyword reads the first page of what a keyword finds among 10,000 records, with the total.
func BenchmarkKeyword(b *testing.B) {
	const records = 10_000
	engine, err := sqlitestore.Open(b.Context(), sqlitestore.Options{
		Path: filepath.Join(b.TempDir(), "named.db"), Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(b, err)
	s, err := docstore.Open(b.Context(), engine, clock.System, nameds.Def())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	ctx := benchContext(b)
	ids, err := s.NewIDs(ctx, records)
	require.NoError(b, err)
	for batch := range slices.Chunk(ids, 500) {
		_, err := docstore.Write(ctx, s, func(tx *docstore.Tx) (int, error) {
			for _, id := range batch {
				_, err := nameds.Insert(ctx, tx, &named{
					Meta: docstore.Meta{ID: id}, Name: "平台研发 Nightly report " + id, Code: "nightly-report-" + id,
				})
				if err != nil {
					return 0, err
				}
			}
			return len(batch), nil
		})
		require.NoError(b, err)
	}
	for keyword, found := range map[string]int64{
		"a": 0, "r": records, "研发": records, "nightly-report-": records, ids[7]: 1, "no such record": 0,
	} {
		b.Run(fmt.Sprintf("%q finds %d", keyword, found), func(b *testing.B) {
			for b.Loop() {
				page, err := nameds.List(ctx, s, textindex.HavingPart(keyword),
					docstore.Paging{Num: 1, Size: 20})
				require.NoError(b, err)
				require.Equal(b, found, page.Total)
			}
		})
	}
}
