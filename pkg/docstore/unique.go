package docstore

import (
	"context"
	"errors"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Unique makes an index refuse a second document with the same value in a tenant. The members are those that its values
// come from, as clients know them: Write then returns apperr.AlreadyExists with the location of every member whose
// value is taken. Of a list, the first value comes from the first member, and so on; all further ones from the last.
func Unique[T any](ix Index[T], member string, more ...string) Index[T] {
	ix.def.Unique = true
	ix.members = append([]string{member}, more...)
	return ix
}

// claim is a value that a document has in a unique index, and the member that it comes from.
type claim struct {
	index, member string
	value         Value
}

// claims are all of a document; an absent value is none.
func (c *Collection[T]) claims(v *T) []claim {
	var all []claim
	for i := range c.schema.Indexes {
		ix := &c.schema.Indexes[i]
		switch {
		case !ix.def.Unique:
		case ix.def.Many:
			for n, text := range ix.list(v) {
				if text != "" {
					all = append(all, claim{ix.def.Name, ix.members[min(n, len(ix.members)-1)], Text(text)})
				}
			}
		default:
			absent := Text("")
			if ix.def.Number {
				absent = NoNumber
			}
			if value := ix.key(v); value != absent {
				all = append(all, claim{ix.def.Name, ix.members[0], value})
			}
		}
	}
	return all
}

// refusal makes, of a write that a unique index has refused, the error that clients are answered with.
type refusal func(ctx context.Context, s *Store, refused *DuplicateError) error

// refusal is that of documents that are written together; at says where in the request each stands.
func (c *Collection[T]) refusal(at func(i int) string, docs ...*T) refusal {
	return func(ctx context.Context, s *Store, refused *DuplicateError) error {
		if refused.Index == "" { // an id is no member of a client's
			return refused
		}
		claims := make([][]claim, len(docs))
		for i, v := range docs {
			claims[i] = c.claims(v)
		}
		holders, err := c.holders(ctx, s, slices.Concat(claims...))
		if err != nil { // the one that the engine has named is still known
			holders = map[holding]string{}
		}
		var taken []string
		for i, v := range docs {
			for _, its := range claims[i] {
				value := holding{its.index, its.value}
				if holder, held := holders[value]; held && holder != metaOf(v).ID {
					taken = append(taken, apperr.Below(at(i), its.member))
				} else {
					holders[value] = metaOf(v).ID // the next of these documents can't have it
				}
			}
		}
		if len(taken) == 0 { // whoever had it is gone again
			taken = []string{c.named(refused, at, docs)}
		}
		return apperr.Taken(taken...).Because(refused)
	}
}

// holding is a value in a unique index.
type holding struct {
	index string
	value Value
}

// holders finds who has the values.
func (c *Collection[T]) holders(ctx context.Context, s *Store, claims []claim) (map[holding]string, error) {
	wanted := map[string][]Value{}
	for _, its := range claims {
		wanted[its.index] = append(wanted[its.index], its.value)
	}
	holders := map[holding]string{}
	const atOnce = 200
	for index, values := range wanted {
		for part := range slices.Chunk(values, atOnce) {
			err := c.Each(ctx, s, In(index, part...), func(d Doc[T]) error {
				v, err := d.Value()
				if err != nil {
					return err
				}
				for _, its := range c.claims(v) {
					holders[holding{its.index, its.value}] = d.ID
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return holders, nil
}

// named is the location of the value that the engine has named.
func (c *Collection[T]) named(refused *DuplicateError, at func(int) string, docs []*T) string {
	i := max(0, slices.IndexFunc(docs, func(v *T) bool { return metaOf(v).ID == refused.Entry.ID }))
	member := ""
	for _, its := range c.claims(docs[i]) {
		if its.index == refused.Index && (member == "" || its.value.Text == refused.Value) {
			member = its.member
		}
	}
	return apperr.Below(at(i), member)
}

// refused gives clients words for a write that a unique index has refused. Other errors pass.
func (s *Store) refused(ctx context.Context, err error) error {
	if refused, ok := errors.AsType[*DuplicateError](err); ok && refused.Entry != nil {
		return refused.Entry.refusal(ctx, s, refused)
	}
	return err
}

// owned notes whose write an engine has refused, unless it did so itself.
func owned(err error, e *Entry) error {
	if refused, ok := errors.AsType[*DuplicateError](err); ok && refused.Entry == nil {
		refused.Entry = e
	}
	return err
}
