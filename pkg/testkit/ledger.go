package testkit

import (
	"context"
	"strings"
	"sync"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
)

// LedgerID is the X-Request-Id of the requests whose steps a Ledger records.
const LedgerID = "ledger"

// Ledger is an engine that records the steps of requests with the id LedgerID: their reads, and the beginnings and
// writes of their transactions. It does not record the service's other work. A test shows with it that two requests
// take the same steps, so that their duration does not tell a client which case it met.
type Ledger struct {
	docstore.Engine
	mu   sync.Mutex
	list []string
}

func (l *Ledger) note(ctx context.Context, step string) {
	if request.From(ctx).ID != LedgerID {
		return
	}
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

// Get implements docstore.Engine.
func (l *Ledger) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) ([]docstore.Row, error) {
	l.note(ctx, "read")
	return l.Engine.Get(ctx, def, tenant, ids)
}

// Find implements docstore.Engine.
func (l *Ledger) Find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) ([]docstore.Row, error) {
	l.note(ctx, "read")
	return l.Engine.Find(ctx, def, tenant, q)
}

// Write implements docstore.Engine.
func (l *Ledger) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	l.mu.Lock()
	before := len(l.list)
	l.mu.Unlock()
	return l.Engine.Write(ctx, func(tx docstore.EngineTx) error {
		l.mu.Lock()
		if request.From(ctx).ID == LedgerID {
			l.list = l.list[:before] // drops the steps of an attempt that is repeated
		}
		l.mu.Unlock()
		l.note(ctx, "begin")
		return fn(&ledgerTx{tx, l})
	})
}

type ledgerTx struct {
	docstore.EngineTx
	ledger *Ledger
}

func (x *ledgerTx) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) ([]docstore.Row, error) {
	x.ledger.note(ctx, "read")
	return x.EngineTx.Get(ctx, def, tenant, ids)
}

func (x *ledgerTx) Find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) ([]docstore.Row,
	error) {
	x.ledger.note(ctx, "read")
	return x.EngineTx.Find(ctx, def, tenant, q)
}

func (x *ledgerTx) Insert(ctx context.Context, def *docstore.Def, e *docstore.Entry) error {
	x.ledger.note(ctx, "write")
	return x.EngineTx.Insert(ctx, def, e)
}

func (x *ledgerTx) Replace(ctx context.Context, def *docstore.Def, e *docstore.Entry, expect docstore.Stamp) error {
	x.ledger.note(ctx, "write")
	return x.EngineTx.Replace(ctx, def, e, expect)
}

func (x *ledgerTx) Append(ctx context.Context, m docstore.Message) error {
	x.ledger.note(ctx, "write")
	return x.EngineTx.Append(ctx, m)
}
