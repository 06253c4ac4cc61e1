package sqlitestore

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// A document's row holds its list values a second time, in one blob: for each list index, in the order of slots, the
// number of values, then the sorted values, each with its length before it (all numbers are uvarints). So the entries
// to remove are known exactly, even if the index function has changed, and each list's table needs no index by
// document. A filter can also be tested on a row without reading the lists' tables.

func encodeLists(lists [][]string) []byte {
	var b []byte
	for _, list := range lists {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, s := range list {
			b = binary.AppendUvarint(b, uint64(len(s)))
			b = append(b, s...)
		}
	}
	return b
}

// values calls each with the values of one list until each returns false, and reports whether it did. The bytes belong
// to the blob. It stops at damaged bytes; Check finds those.
func values(blob []byte, slot int, each func([]byte) bool) (stopped bool) {
	next := func() int {
		n, size := binary.Uvarint(blob)
		if size <= 0 || n > uint64(len(blob)) {
			blob = nil
			return 0
		}
		blob = blob[size:]
		return min(int(n), len(blob))
	}
	for ; ; slot-- {
		for n := next(); n > 0 && len(blob) > 0; n-- {
			size := next()
			if slot == 0 && !each(blob[:size]) {
				return true
			}
			blob = blob[size:]
		}
		if slot == 0 {
			return false
		}
	}
}

func decodeList(blob []byte, slot int) []string {
	var list []string
	values(blob, slot, func(b []byte) bool {
		list = append(list, string(b))
		return true
	})
	return list
}

const maxRows = 16 // rows of a list's table in one statement

// addValues inserts the entries of a unique list index. The values are sorted, so that neighbours in the B-tree are
// written together.
func (t *table) addValues(conn Conn, def *docstore.Def, c *column, tenant string, rid int64, list []string) error {
	for part := range slices.Chunk(list, maxRows) {
		args := make([]any, 1, 1+2*maxRows)
		args[0] = tenant
		for _, s := range part {
			args = append(args, rid, s)
		}
		_, err := conn.Exec(context.Background(), c.insertValues(len(part)), args...)
		if isConstraint(err) {
			return t.takenValue(conn, def, c, tenant, rid, part, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// insertValues is a statement whose first argument is the tenant; n pairs of row id and value follow. It uses OR FAIL,
// as does every statement of this package that can violate uniqueness: rows that the statement wrote before it failed
// stay, and are undone with the caller's savepoint. SQLite's default (OR ABORT) keeps a journal for each statement
// inside the savepoint's and walks all of it after every statement, which took two thirds of the time of a transaction
// with 500 documents.
func (c *column) insertValues(n int) string {
	var b strings.Builder
	b.WriteString("INSERT OR FAIL INTO " + c.index + " (tenant, rid, value) VALUES ")
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(?1, ?%d, ?%d)", 2+2*i, 3+2*i)
	}
	return b.String()
}

// takenValue returns the value that another document has.
func (t *table) takenValue(conn Conn, def *docstore.Def, c *column, tenant string, rid int64, list []string,
	cause error) error {
	for _, s := range list {
		holder, err := number(context.Background(), conn, "SELECT rid FROM "+c.index+
			" WHERE tenant = ?1 AND value = ?2", tenant, s)
		if err != nil {
			return err
		}
		if holder != 0 && holder != rid {
			return &docstore.DuplicateError{Collection: def.Name, Index: indexName(def, true, c.slot), Value: s}
		}
	}
	return cause
}

func (c *column) removeValues(conn Conn, tenant string, rid int64, list []string) error {
	for _, s := range list {
		if _, err := conn.Exec(context.Background(), c.deleteValue, tenant, s, rid); err != nil {
			return err
		}
	}
	return nil
}

func indexName(def *docstore.Def, many bool, slot int) string {
	for _, ix := range def.Indexes {
		if ix.Many == many && ix.Slot == slot {
			return ix.Name
		}
	}
	return ""
}

// difference returns the values that are only in one sorted list and those that are only in the other.
func difference[T any](was, is []T, compare func(a, b T) int) (removed, added []T) {
	for len(was) > 0 && len(is) > 0 {
		switch c := compare(was[0], is[0]); {
		case c < 0:
			removed, was = append(removed, was[0]), was[1:]
		case c > 0:
			added, is = append(added, is[0]), is[1:]
		default:
			was, is = was[1:], is[1:]
		}
	}
	return append(removed, was...), append(added, is...)
}
