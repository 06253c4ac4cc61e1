package sqlitestore

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// late are entries of list indexes that a transaction has not written yet. Sorted and many at a time they cost
// less than as their documents come: neighbours in the tree are written together.
type late struct {
	lists map[lateList][]lateEntry
	size  int
}

type lateList struct {
	column *column
	tenant string
}

type lateEntry struct {
	value string
	rid   int64
}

const (
	maxLate     = 50_000 // entries, some megabytes
	maxLateRows = 64     // in one statement
)

func (l *late) add(c *column, tenant string, rid int64, values []string) {
	if len(values) == 0 {
		return
	}
	if l.lists == nil {
		l.lists = map[lateList][]lateEntry{}
	}
	key := lateList{c, tenant}
	for _, value := range values {
		l.lists[key] = append(l.lists[key], lateEntry{value, rid})
	}
	l.size += len(values)
}

func (l *late) flushIfMany(conn Conn) error {
	if l.size < maxLate {
		return nil
	}
	return l.flush(conn)
}

func (l *late) flush(conn Conn) error {
	if l.size == 0 {
		return nil
	}
	for key, entries := range l.lists {
		slices.SortFunc(entries, func(a, b lateEntry) int {
			return cmp.Or(strings.Compare(a.value, b.value), cmp.Compare(a.rid, b.rid))
		})
		for part := range slices.Chunk(entries, maxLateRows) {
			args := make([]any, 1, 1+2*maxLateRows)
			args[0] = key.tenant
			for _, e := range part {
				args = append(args, e.rid, e.value)
			}
			if _, err := conn.Exec(context.Background(), key.column.insertValues(len(part)), args...); err != nil {
				return err
			}
		}
	}
	*l = late{}
	return nil
}
