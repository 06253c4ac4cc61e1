package testkit

import (
	"context"
	"strings"
	"sync"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// Ledger is an engine that records reads, and the beginnings and writes of transactions, except those of the service's
// relay and tasks. It shows that two requests take the same steps, so that their times do not tell them apart.
type Ledger struct {
	docstore.Engine
	mu   sync.Mutex
	list []string
}

func (l *Ledger) note(step string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, step)
}

// Over makes the ledger record the steps of an engine: for Options.Engine.
func (l *Ledger) Over(e docstore.Engine) docstore.Engine {
	l.Engine = e
	return l
}

// Start forgets what is recorded.
func (l *Ledger) Start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = nil
}

// Steps returns what was recorded since Start: "read begin write".
func (l *Ledger) Steps() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.list, " ")
}

func (l *Ledger) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) ([]docstore.Row, error) {
	l.note("read")
	return l.Engine.Get(ctx, def, tenant, ids)
}

func (l *Ledger) Find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) ([]docstore.Row, error) {
	l.note("read")
	return l.Engine.Find(ctx, def, tenant, q)
}

func (l *Ledger) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
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
	ledger *Ledger
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
