package sqlitestore

import (
	"context"
	"fmt"
	"math"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Pending lists messages by Seq, which is the order of their transactions, because there is only one writer.
func (e *Engine) Pending(ctx context.Context, after int64, limit int) ([]docstore.Message, error) {
	var list []docstore.Message
	err := e.read(ctx, func(conn Conn) error {
		const sql = "SELECT seq, id, subject, record, payload FROM outbox WHERE seq > ?1 ORDER BY seq LIMIT 0 + ?2"
		return conn.Query(ctx, sql, []any{after, int64(limit)}, func(c Columns) error {
			list = append(list, docstore.Message{
				Seq: c.Int(0), ID: string(c.Bytes(1)), Subject: string(c.Bytes(2)), Record: string(c.Bytes(3)),
				Payload: append([]byte(nil), c.Bytes(4)...),
			})
			return nil
		})
	})
	return list, err
}

// Published removes messages, in one transaction.
func (e *Engine) Published(ctx context.Context, seqs []int64) error {
	return e.writer.do(ctx, func(conn Conn) error {
		for _, seq := range seqs {
			if _, err := conn.Exec(context.Background(), "DELETE FROM outbox WHERE seq = ?1", seq); err != nil {
				return err
			}
		}
		return nil
	})
}

// Backlog returns the number of pending messages.
func (e *Engine) Backlog(ctx context.Context) (n int64, err error) {
	err = e.read(ctx, func(conn Conn) error {
		n, err = number(ctx, conn, "SELECT count(*) FROM outbox")
		return err
	})
	return n, err
}

// Due lists documents of all tenants whose Entry.Due is at most before, earliest first.
func (e *Engine) Due(ctx context.Context, def *docstore.Def, before int64, limit int) ([]docstore.Ref, error) {
	t, err := e.table(def)
	if err != nil {
		return nil, err
	}
	var list []docstore.Ref
	err = e.read(ctx, func(conn Conn) error {
		sql := fmt.Sprintf("SELECT tenant, id FROM %s INDEXED BY %s WHERE due <> 0 AND due <= ?1 "+
			"ORDER BY due, tenant, id LIMIT 0 + ?2", t.name, t.dueIndex())
		return conn.Query(ctx, sql, []any{before, int64(limit)}, func(c Columns) error {
			list = append(list, docstore.Ref{Tenant: string(c.Bytes(0)), ID: string(c.Bytes(1))})
			return nil
		})
	})
	return list, err
}

// NextDue returns the earliest Entry.Due of all tenants' documents; 0 if none has one.
func (e *Engine) NextDue(ctx context.Context, def *docstore.Def) (next int64, err error) {
	t, err := e.table(def)
	if err != nil {
		return 0, err
	}
	err = e.read(ctx, func(conn Conn) error {
		next, err = number(ctx, conn, fmt.Sprintf("SELECT due FROM %s INDEXED BY %s WHERE due <> 0 AND due <= ?1 "+
			"ORDER BY due LIMIT 1", t.name, t.dueIndex()), int64(math.MaxInt64))
		return err
	})
	return next, err
}

// NextTenant returns the tenant that follows after among the tenants with documents, in the order of their bytes.
func (e *Engine) NextTenant(ctx context.Context, def *docstore.Def, after string) (next string, err error) {
	t, err := e.table(def)
	if err != nil {
		return "", err
	}
	err = e.read(ctx, func(conn Conn) error {
		sql := fmt.Sprintf("SELECT tenant FROM %s INDEXED BY %s WHERE tenant > ?1 ORDER BY tenant LIMIT 1", t.name,
			t.id.index)
		return conn.Query(ctx, sql, []any{after}, func(c Columns) error {
			next = string(c.Bytes(0))
			return nil
		})
	})
	return next, err
}

// Reserve hands out n numbers that no other call gets: first … first+n-1. The first number ever is 1.
func (e *Engine) Reserve(ctx context.Context, sequence string, n int64) (first int64, err error) {
	err = e.writer.do(ctx, func(conn Conn) error {
		const sql = "INSERT INTO sequences (name, next) VALUES (?1, 1 + ?2) " +
			"ON CONFLICT DO UPDATE SET next = next + ?2 RETURNING next - ?2"
		first, err = number(context.Background(), conn, sql, sequence, n)
		return err
	})
	return first, err
}
