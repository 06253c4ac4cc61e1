package sqlitestore

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Postings list the documents of a value that many documents have: a word, a value of a facet, or a span (spans.go). A
// row of their table is (tenant, value, first, more): first is the row id of one document, and more has the ascending
// row ids of others, each as a uvarint of the difference to the one before. Half a kilobyte names some hundred
// documents, so that a search reads and combines sets of a hundred thousand in milliseconds.
//
// A new posting is a row of its own, which costs no more than any index entry. From time to time the short rows near a
// new one are merged. So the rows of a value may overlap, but no two name the same document.

const (
	maxMore   = 512 // length of a row's more, in bytes
	mergeEach = 32  // one in so many new postings leads to a merge
	minMerged = 8   // rows that are worth merging
	maxMerged = 512 // at most so many rows are merged together: more than usually lie between two merges
)

// mayMerge selects one in mergeEach row ids by a multiplicative hash, because the lowest bits of the ids of one value
// may all be the same.
func mayMerge(rid int64) bool { return uint64(rid)*0x9E3779B97F4A7C15>>32%mergeEach == 0 }

// pack makes rows from ascending row ids.
func pack(rids []int64, row func(first int64, more []byte)) {
	for len(rids) > 0 {
		first, last := rids[0], rids[0]
		more := []byte{}
		rids = rids[1:]
		for len(rids) > 0 && len(more)+binary.MaxVarintLen64 <= maxMore {
			more = binary.AppendUvarint(more, uint64(rids[0]-last))
			last, rids = rids[0], rids[1:]
		}
		row(first, more)
	}
}

// unpack calls each with the ids of a row. It stops at damaged bytes; Check finds those.
func unpack(first int64, more []byte, each func(rid int64)) {
	each(first)
	for len(more) > 0 {
		gap, size := uint64(more[0]), 1
		if gap >= 0x80 {
			if gap, size = binary.Uvarint(more); size <= 0 {
				return
			}
		}
		first += int64(gap)
		more = more[size:]
		each(first)
	}
}

// late are postings that a transaction has not written yet. Written together and sorted they cost less than one by one:
// documents of one value share a row, and neighbours in the B-tree are written together.
type late struct {
	lists map[lateList][]lateEntry
	size  int
}

type lateList struct {
	column *column
	tenant string
}

type lateEntry struct {
	value docstore.Value
	rid   int64
}

const (
	maxLate     = 50_000 // postings that wait; they take a few megabytes
	maxLateRows = 32     // rows in one statement
)

func (l *late) add(c *column, tenant string, rid int64, values ...docstore.Value) {
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
			if c := key.column.compare(a.value, b.value); c != 0 {
				return c
			}
			return cmp.Compare(a.rid, b.rid)
		})
		if err := key.write(conn, entries); err != nil {
			return err
		}
	}
	*l = late{}
	return nil
}

// write writes sorted postings, and merges rows near some of them.
func (l lateList) write(conn Conn, entries []lateEntry) error {
	rows := postingRows{conn: conn, lateList: l}
	var merges []lateEntry
	var rids []int64
	for len(entries) > 0 {
		value := entries[0].value
		rids = rids[:0]
		merge := -1
		for len(entries) > 0 && entries[0].value == value {
			if mayMerge(entries[0].rid) {
				merge = len(rids)
			}
			rids = append(rids, entries[0].rid)
			entries = entries[1:]
		}
		if err := rows.add(value, rids); err != nil {
			return err
		}
		if merge >= 0 {
			merges = append(merges, lateEntry{value, rids[merge]})
		}
	}
	if err := rows.flush(); err != nil {
		return err
	}
	for _, m := range merges {
		if err := l.merge(conn, m); err != nil {
			return err
		}
	}
	return nil
}

// postingRows collects rows to be written by one statement.
type postingRows struct {
	lateList
	conn Conn
	args []any
}

func (r *postingRows) add(value docstore.Value, rids []int64) (err error) {
	pack(rids, func(first int64, more []byte) {
		if len(r.args) == 0 {
			r.args = append(make([]any, 0, 1+3*maxLateRows), r.tenant)
		}
		r.args = append(r.args, r.column.arg(value), first, more)
		if len(r.args) == 1+3*maxLateRows {
			err = cmp.Or(err, r.flush())
		}
	})
	return err
}

func (r *postingRows) flush() error {
	if len(r.args) == 0 {
		return nil
	}
	// The tenant is the first argument and is the same in each row. A bare ? is the next argument after it.
	_, err := r.conn.Exec(context.Background(), "INSERT OR FAIL INTO "+r.column.postings+
		" (tenant, value, first, more) VALUES (?1, ?, ?, ?)"+strings.Repeat(", (?1, ?, ?, ?)", len(r.args)/3-1),
		r.args...)
	r.args = r.args[:0]
	return err
}

// merge replaces the short rows of a value near a row id by full ones.
func (l lateList) merge(conn Conn, at lateEntry) error {
	c, value := l.column, l.column.arg(at.value)
	var rids []int64
	rows, from, to := 0, at.rid, at.rid
	for _, way := range []string{"<= ?3 ORDER BY first DESC", "> ?3 ORDER BY first"} {
		err := conn.Query(context.Background(), "SELECT first, more FROM "+c.postings+
			" WHERE tenant = ?1 AND value = ?2 AND first "+way+" LIMIT 0 + ?4",
			[]any{l.tenant, value, at.rid, int64(maxMerged / 2)}, func(row Columns) error {
				first, more := row.Int(0), row.Bytes(1)
				if len(more) > maxMore/2 {
					return errEnough
				}
				rows, from, to = rows+1, min(from, first), max(to, first)
				unpack(first, more, func(rid int64) { rids = append(rids, rid) })
				return nil
			})
		if err := ignore(err, errEnough); err != nil {
			return err
		}
	}
	if rows < minMerged {
		return nil
	}
	if _, err := conn.Exec(context.Background(), "DELETE FROM "+c.postings+
		" WHERE tenant = ?1 AND value = ?2 AND first BETWEEN ?3 AND ?4", l.tenant, value, from, to); err != nil {
		return err
	}
	slices.Sort(rids)
	merged := postingRows{conn: conn, lateList: l}
	return cmp.Or(merged.add(at.value, rids), merged.flush())
}

// ignore returns nil if err is expected, and otherwise err.
func ignore(err, expected error) error {
	if err == expected { //nolint:errorlint // Query returns the error of its function unchanged
		return nil
	}
	return err
}

// removePosting removes a document from the row that names it.
func (c *column) removePosting(conn Conn, tenant string, value docstore.Value, rid int64) error {
	first, rest, err := c.findPosting(conn, tenant, value, rid)
	if err != nil || rest == nil {
		return err
	}
	rest = slices.DeleteFunc(rest, func(r int64) bool { return r == rid })
	where := " WHERE tenant = ?1 AND value = ?2 AND first = ?3"
	if len(rest) > 0 && rest[0] == first {
		pack(rest, func(_ int64, more []byte) {
			_, err = conn.Exec(context.Background(), "UPDATE "+c.postings+" SET more = ?4"+where, tenant, c.arg(value),
				first, more)
		})
		return err
	}
	_, err = conn.Exec(context.Background(), "DELETE FROM "+c.postings+where, tenant, c.arg(value), first)
	if err != nil {
		return err
	}
	row := postingRows{conn: conn, lateList: lateList{c, tenant}}
	return cmp.Or(row.add(value, rest), row.flush())
}

// findPosting finds the row that names a document, and all ids in that row. It returns nil if no row does.
func (c *column) findPosting(conn Conn, tenant string, value docstore.Value,
	rid int64) (first int64, rids []int64, err error) {
	err = conn.Query(context.Background(), "SELECT first, more FROM "+c.postings+
		" WHERE tenant = ?1 AND value = ?2 AND first <= ?3 ORDER BY first DESC", []any{tenant, c.arg(value), rid},
		func(row Columns) error {
			first, rids = row.Int(0), rids[:0]
			unpack(first, row.Bytes(1), func(r int64) { rids = append(rids, r) })
			if slices.Contains(rids, rid) {
				return errEnough
			}
			return nil
		})
	if err == nil {
		rids = nil // they are of a row that does not name the document
	}
	return first, rids, ignore(err, errEnough)
}
