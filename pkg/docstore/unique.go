package docstore

import (
	"context"
	"errors"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Unique makes an index refuse a second document with the same value in a tenant. members are the request members that
// its values come from, as clients know them: Write returns apperr.AlreadyExists with the location of every member
// whose value is taken. For a list, the first value comes from the first member, and so on; all further values come
// from the last member.
func Unique[T any](ix Index[T], member string, more ...string) Index[T] {
	ix.def.Unique = true
	ix.members = append([]string{member}, more...)
	return ix
}

// claim is a document's value in a unique index, and the member that it comes from.
type claim struct {
	index, member string
	value         Value
}

// claims lists the claims of a document. Absent values claim nothing.
func (c *collection) claims(v any) []claim {
	var all []claim
	for i := range c.indexes {
		ix := &c.indexes[i]
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

// refusal turns the error of a write that a unique index has refused into the error for the client.
type refusal func(ctx context.Context, s *Store, refused *DuplicateError) error

// refusal returns the refusal of documents that are written together. at returns where in the request each stands. It
// names all members whose values are taken, not only the one that the engine met first.
func (c *collection) refusal(at func(i int) string, docs ...any) refusal {
	return func(ctx context.Context, s *Store, refused *DuplicateError) error {
		if refused.Index == "" { // clients do not choose ids
			return refused
		}
		claims := make([][]claim, len(docs))
		for i, v := range docs {
			claims[i] = c.claims(v)
		}
		holders, err := c.holders(ctx, s, slices.Concat(claims...))
		if err != nil { // then only the value that the engine named is reported
			holders = map[holding]string{}
		}
		var taken []string
		for i, v := range docs {
			for _, cl := range claims[i] {
				value := holding{cl.index, cl.value}
				if holder, held := holders[value]; held && holder != metaOf(v).ID {
					taken = append(taken, apperr.Below(at(i), cl.member))
				} else {
					holders[value] = metaOf(v).ID // so no later document of the list can have it
				}
			}
		}
		if len(taken) == 0 { // the document that had the value has been deleted since
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

// holders returns the id of the document that has each value.
func (c *collection) holders(ctx context.Context, s *Store, claims []claim) (map[holding]string, error) {
	wanted := map[string][]Value{}
	for _, cl := range claims {
		wanted[cl.index] = append(wanted[cl.index], cl.value)
	}
	holders := map[holding]string{}
	const atOnce = 200
	for index, values := range wanted {
		for part := range slices.Chunk(values, atOnce) {
			err := c.each(ctx, s, In(index, part...), func(d anyDoc) error {
				v, err := d.decoded()
				if err != nil {
					return err
				}
				for _, cl := range c.claims(v) {
					holders[holding{cl.index, cl.value}] = d.ID
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

// named is the location of the value that the engine named.
func (c *collection) named(refused *DuplicateError, at func(int) string, docs []any) string {
	i := max(0, slices.IndexFunc(docs, func(v any) bool { return metaOf(v).ID == refused.Entry.ID }))
	member := ""
	for _, cl := range c.claims(docs[i]) {
		if cl.index == refused.Index && (member == "" || cl.value.Text == refused.Value) {
			member = cl.member
		}
	}
	return apperr.Below(at(i), member)
}

// refused turns the error of a refused write into the error for the client. It returns other errors unchanged.
func (s *Store) refused(ctx context.Context, err error) error {
	if refused, ok := errors.AsType[*DuplicateError](err); ok && refused.Entry != nil {
		return refused.Entry.refusal(ctx, s, refused)
	}
	return err
}

// withEntry adds the refused entry to a *DuplicateError, unless the engine has done so itself.
func withEntry(err error, e *Entry) error {
	if refused, ok := errors.AsType[*DuplicateError](err); ok && refused.Entry == nil {
		refused.Entry = e
	}
	return err
}
