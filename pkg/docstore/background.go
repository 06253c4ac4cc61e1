package docstore

import (
	"context"

	"github.com/idplatform/idplatform/pkg/processor"
)

// background is a transaction of the platform's own work. It gives way to requests before each write.
type background struct{ EngineTx }

func (b background) Insert(ctx context.Context, def *Def, e *Entry) error {
	processor.Yield()
	return b.EngineTx.Insert(ctx, def, e)
}

func (b background) Replace(ctx context.Context, def *Def, e *Entry, expect Stamp) error {
	processor.Yield()
	return b.EngineTx.Replace(ctx, def, e, expect)
}

func (b background) Delete(ctx context.Context, def *Def, tenant, id string, expect Stamp) error {
	processor.Yield()
	return b.EngineTx.Delete(ctx, def, tenant, id, expect)
}

func (b background) Append(ctx context.Context, m Message) error {
	processor.Yield()
	return b.EngineTx.Append(ctx, m)
}
