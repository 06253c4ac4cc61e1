package users_test

import (
	"context"
	"strings"
	"sync"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// ledger is an engine that records reads, and the beginnings and writes of transactions, except those of the service's
// relay and tasks.
type ledger struct {
	docstore.Engine
	mu   sync.Mutex
	list []string
}

func (l *ledger) note(step string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, step)
}

func (l *ledger) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = nil
}

func (l *ledger) steps() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.list, " ")
}

func (l *ledger) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) ([]docstore.Row, error) {
	l.note("read")
	return l.Engine.Get(ctx, def, tenant, ids)
}

func (l *ledger) Find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) ([]docstore.Row, error) {
	l.note("read")
	return l.Engine.Find(ctx, def, tenant, q)
}

func (l *ledger) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	l.mu.Lock()
	before := len(l.list)
	l.mu.Unlock()
	return l.Engine.Write(ctx, func(tx docstore.EngineTx) error {
		l.mu.Lock()
		l.list = l.list[:before] // of an attempt that had to be repeated
		l.mu.Unlock()
		l.note("begin")
		return fn(&ledgerTx{tx, l})
	})
}

type ledgerTx struct {
	docstore.EngineTx
	ledger *ledger
}

func (x *ledgerTx) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) ([]docstore.Row, error) {
	x.ledger.note("read")
	return x.EngineTx.Get(ctx, def, tenant, ids)
}

func (x *ledgerTx) Find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) ([]docstore.Row,
	error) {
	x.ledger.note("read")
	return x.EngineTx.Find(ctx, def, tenant, q)
}

func (x *ledgerTx) Insert(ctx context.Context, def *docstore.Def, e *docstore.Entry) error {
	x.ledger.note("write")
	return x.EngineTx.Insert(ctx, def, e)
}

func (x *ledgerTx) Replace(ctx context.Context, def *docstore.Def, e *docstore.Entry, expect docstore.Stamp) error {
	x.ledger.note("write")
	return x.EngineTx.Replace(ctx, def, e, expect)
}

func (x *ledgerTx) Append(ctx context.Context, m docstore.Message) error {
	x.ledger.note("write")
	return x.EngineTx.Append(ctx, m)
}
