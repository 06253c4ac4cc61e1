package docstore

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/processor"
)

// yieldAfter is how long a transaction of the platform's own work keeps its processor.
const yieldAfter = 100 * time.Microsecond

// background is a transaction of the platform's own work. It gives way to requests.
type background struct {
	EngineTx
	since time.Time // the last yield, or the begin
}

func inBackground(engine EngineTx) *background { return &background{engine, time.Now()} }

func (b *background) yield() {
	if time.Since(b.since) > yieldAfter {
		processor.Yield()
		b.since = time.Now()
	}
}

func (b *background) Insert(ctx context.Context, def *Def, e *Entry) error {
	b.yield()
	return b.EngineTx.Insert(ctx, def, e)
}

func (b *background) Replace(ctx context.Context, def *Def, e *Entry, expect Stamp) error {
	b.yield()
	return b.EngineTx.Replace(ctx, def, e, expect)
}

func (b *background) Delete(ctx context.Context, def *Def, tenant, id string, expect Stamp) error {
	b.yield()
	return b.EngineTx.Delete(ctx, def, tenant, id, expect)
}

func (b *background) Append(ctx context.Context, m Message) error {
	b.yield()
	return b.EngineTx.Append(ctx, m)
}
