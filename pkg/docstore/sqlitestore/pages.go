package sqlitestore

import (
	"context"
	"encoding/binary"

	"github.com/idplatform/idplatform/pkg/cache"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// pages caches the pages that lists start with, with their documents. As in results, the number of changes that a
// snapshot shows is part of the cache key, so a page is never out of date. A page that is cached costs one statement,
// which reads that number, instead of one row for each document.
type pages struct {
	cache   *cache.Cache[resultKey, page]
	largest int // bytes of a page that is cached
}

// page is the rows of a query and, if it was asked for, the total.
type page struct {
	rows  []docstore.Row
	total docstore.Total
}

// fewRows is a number of rows that are read as fast as the number of changes.
const fewRows = 4

func newPages(bytes int64) *pages {
	return &pages{
		cache:   cache.NewWeighed(int(bytes), func(q resultKey, p page) int { return len(q.text) + p.size() }),
		largest: int(bytes / 8),
	}
}

// size is the estimated size in memory.
func (p page) size() int {
	const row, rest = 150, 200 // estimated sizes of a row without its document, and of an entry without rows
	size := rest + row*len(p.rows)
	for i := range p.rows {
		size += len(p.rows[i].Data)
	}
	return size
}

// cached reports whether the result of a query is worth its place in the cache: whether it is likely to be asked for
// again and costs more than reading the number of changes.
func (a *plannedQuery) cached() bool { return !a.Bare && a.After == nil && a.Limit > fewRows }

// page returns a page of the last committed state: the cached one, or the result of find. exactTo is part of the cache
// key, because it decides the total; −1 stands for a page without a total.
func (e *Engine) page(ctx context.Context, a *plannedQuery, exactTo int64,
	find func(*queries) (page, error)) (found page, err error) {
	text := string(binary.AppendVarint([]byte(a.text()), exactTo))
	err = e.read(ctx, func(conn Conn) error {
		q := &queries{engine: e, conn: conn, results: e.results}
		changes, err := q.changes(ctx, a.table, a.tenant)
		if err != nil {
			return err
		}
		scope, known := scope{a.table.def.Name, a.tenant}, false
		if found, known = e.pages.cache.Get(resultKey{scope, changes, text}); known {
			return nil
		}
		return inSnapshot(ctx, conn, func() error {
			if changes, err = q.changes(ctx, a.table, a.tenant); err != nil {
				return err
			}
			if found, err = find(q); err == nil && found.size() <= e.pages.largest {
				e.pages.cache.Set(resultKey{scope, changes, text}, found)
			}
			return err
		})
	})
	return found, err
}
