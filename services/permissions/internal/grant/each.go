package grant

import (
	"context"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
)

// Each calls fn with every record of every tenant: kind by kind, and within a kind tenant by tenant. It calls done
// after each kind. A record that cannot be decoded has no Value. Each stops at the first error.
func Each(ctx context.Context, s *docstore.Store, fn func(tenant string, c Change) error, done func()) error {
	for _, each := range []func() error{
		func() error { return eachOf(ctx, s, resources, resourceKind, fn, done) },
		func() error { return eachOf(ctx, s, sets, setKind, fn, done) },
		func() error { return eachOf(ctx, s, members, memberKind, fn, done) },
		func() error { return eachOf(ctx, s, units, unitKind, fn, done) },
		func() error { return eachOf(ctx, s, groupMembers, groupMemberKind, fn, done) },
		func() error { return eachOf(ctx, s, rules, ruleKind, fn, done) },
	} {
		if err := each(); err != nil {
			return err
		}
	}
	return nil
}

func eachOf[T any](
	ctx context.Context, s *docstore.Store, c *docstore.Collection[T], kind outbox.Kind, fn func(string, Change) error,
	done func(),
) error {
	defer done()
	return c.EachTenant(ctx, s, func(ctx context.Context) error {
		return c.Each(ctx, s, docstore.Filter{}, func(doc docstore.Doc[T]) error {
			change := Change{Entity: kind.Entity, ID: doc.ID, Sequence: docstore.FirstSequence(doc.Revision())}
			if value, err := doc.Value(); err == nil {
				change.Value = value
			}
			return fn(request.Tenant(ctx), change)
		})
	})
}
