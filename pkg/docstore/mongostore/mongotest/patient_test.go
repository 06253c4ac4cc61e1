package mongotest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/mongostore"
)

// patient is an engine whose callers try again after apperr.Unavailable, as the platform's do: nothing has changed
// then.
type patient struct {
	docstore.Engine
	t   *testing.T
	uri string
}

func openPatiently(t *testing.T, uri string) *patient {
	t.Helper()
	o := mongostore.Options{URI: uri, Database: "test", Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	engine, err := patiently(t, t.Context(), func() (*mongostore.Engine, error) {
		return mongostore.Open(t.Context(), o)
	})
	require.NoError(t, err)
	return &patient{engine, t, uri}
}

// attempts is more than the faults of a schedule.
const attempts = 20

func patiently[R any](t *testing.T, ctx context.Context, do func() (R, error)) (R, error) {
	for n := 1; ; n++ {
		result, err := do()
		if apperr.KindOf(err) != apperr.Unavailable || ctx.Err() != nil || n == attempts {
			return result, err
		}
		t.Log("again, after:", err)
	}
}

func (p *patient) try(ctx context.Context, do func() error) error {
	_, err := patiently(p.t, ctx, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func (p *patient) Prepare(ctx context.Context, defs []*docstore.Def) error {
	return p.try(ctx, func() error { return p.Engine.Prepare(ctx, defs) })
}

func (p *patient) Write(ctx context.Context, fn func(docstore.EngineTx) error) error {
	return p.try(ctx, func() error { return p.Engine.Write(ctx, fn) })
}

func (p *patient) Reserve(ctx context.Context, sequence string, n int64) (int64, error) {
	return patiently(p.t, ctx, func() (int64, error) { return p.Engine.Reserve(ctx, sequence, n) })
}

func (p *patient) NextDue(ctx context.Context, def *docstore.Def) (int64, error) {
	return patiently(p.t, ctx, func() (int64, error) { return p.Engine.NextDue(ctx, def) })
}

func (p *patient) NextTenant(ctx context.Context, def *docstore.Def, after string) (string, error) {
	return patiently(p.t, ctx, func() (string, error) { return p.Engine.NextTenant(ctx, def, after) })
}

func (p *patient) Due(ctx context.Context, def *docstore.Def, before int64, limit int) ([]docstore.Ref, error) {
	return patiently(p.t, ctx, func() ([]docstore.Ref, error) { return p.Engine.Due(ctx, def, before, limit) })
}

func (p *patient) Pending(ctx context.Context, after int64, limit int) ([]docstore.Message, error) {
	return patiently(p.t, ctx, func() ([]docstore.Message, error) { return p.Engine.Pending(ctx, after, limit) })
}

func (p *patient) Published(ctx context.Context, seqs []int64) error {
	return p.try(ctx, func() error { return p.Engine.Published(ctx, seqs) })
}

func (p *patient) Backlog(ctx context.Context) (int64, error) {
	return patiently(p.t, ctx, func() (int64, error) { return p.Engine.Backlog(ctx) })
}

func (p *patient) Check(ctx context.Context) error {
	return p.try(ctx, func() error { return p.Engine.Check(ctx) })
}

func (p *patient) Ping(ctx context.Context) error {
	return p.try(ctx, func() error { return p.Engine.Ping(ctx) })
}

func (p *patient) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) ([]docstore.Row, error) {
	return patiently(p.t, ctx, func() ([]docstore.Row, error) { return p.Engine.Get(ctx, def, tenant, ids) })
}

func (p *patient) Find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) ([]docstore.Row, error) {
	return patiently(p.t, ctx, func() ([]docstore.Row, error) { return p.Engine.Find(ctx, def, tenant, q) })
}

func (p *patient) Page(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find,
	exactTo int64) ([]docstore.Row, docstore.Total, error) {
	var total docstore.Total
	rows, err := patiently(p.t, ctx, func() (rows []docstore.Row, err error) {
		rows, total, err = p.Engine.Page(ctx, def, tenant, q, exactTo)
		return rows, err
	})
	return rows, total, err
}

func (p *patient) Count(ctx context.Context, def *docstore.Def, tenant string, f docstore.Filter,
	exactTo int64) (docstore.Total, error) {
	return patiently(p.t, ctx, func() (docstore.Total, error) { return p.Engine.Count(ctx, def, tenant, f, exactTo) })
}
