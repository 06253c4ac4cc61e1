package grant

import (
	"context"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
)

// Each calls fn with every record of every tenant as it is stored, those of one kind and tenant after the other, and
// done after each kind. It stops at fn's first error.
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
			record, err := doc.JSON()
			if err != nil {
				return err
			}
			return fn(request.Tenant(ctx), Change{
				Entity: kind.Entity, ID: doc.ID, Sequence: docstore.FirstSequence(doc.Revision()), Record: record,
			})
		})
	})
}
