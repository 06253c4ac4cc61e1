package docstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
)

// sealedValues are the encrypted values of one record's sealed members. They are a document of their own, so that the
// record's JSON form, which answers and events contain, never has them.
type sealedValues struct {
	Meta
	Values   map[string]string `json:"values"`    // by member
	KeySince clock.Time        `json:"key_since"` // the Since of the key that sealed all values
}

var sealed = Define(Schema[sealedValues]{
	Name: "sealed_values", Noun: "secret", NoIfMatch: true,
	// Nothing happens at this time. It lists values by the age of their keys, over all tenants: see UnderOlderKeys.
	Due: func(v *sealedValues) clock.Time { return v.KeySince },
})

var errNoKeys = errors.New("docstore: sealed members need SealWith")

func sealedID(collection, id string) string { return collection + "." + id }

// boundTo is the associated data of a value. It binds the value to one member of one record: it cannot be opened as
// another's.
func boundTo(tenant, collection, id, member string) []byte {
	return []byte(tenant + "\x00" + collection + "\x00" + id + "\x00" + member)
}

// seal stores the values that were given to v's sealed members, and removes those of members that are empty. A mask
// without a stored value becomes empty. It reports whether a stored value changed. former returns the document as it
// was. The error is apperr.InvalidParameters for a mask that would keep a value whose Route changes.
func (c *collection) seal(
	ctx context.Context, tx *Tx, v any, former func() (any, error),
) (changed bool, _ error) {
	if c.sealed == nil {
		return false, nil
	}
	m := metaOf(v)
	id := sealedID(c.def.Name, m.ID)
	found, err := sealed.LoadMany(ctx, tx, []string{id})
	if err != nil {
		return false, err
	}
	old := &sealedValues{Meta: Meta{ID: id, TenantID: m.TenantID}}
	if len(found) > 0 {
		old = found[0]
	}
	values := map[string]string{}
	var kept []Sealed
	for _, member := range c.sealed(v) {
		given, fresh := member.text.Given()
		boundTo := boundTo(m.TenantID, c.def.Name, m.ID, member.name)
		switch stored := old.Values[member.name]; {
		case fresh && tx.st.keys == nil:
			return false, errNoKeys
		case fresh && !tx.st.opensAs(stored, given, boundTo):
			values[member.name] = tx.st.keys.Seal([]byte(given), boundTo)
		case member.text.IsSet() && stored != "":
			values[member.name] = stored
			if !fresh && len(member.route) > 0 {
				kept = append(kept, member)
			}
		default:
			*member.text = secret.Text{}
		}
	}
	if err := c.checkRoutes(kept, former); err != nil {
		return false, err
	}
	if maps.Equal(values, old.Values) {
		return false, nil
	}
	old.Values = values
	if tx.st.keys != nil { // a value under a key that is not configured stays as it is, and UnderOlderKeys lists it
		if err := old.sealUnder(tx.st); err != nil && !errors.Is(err, secret.ErrOpen) {
			return false, err
		}
	}
	switch {
	case len(found) == 0:
		_, err = sealed.Insert(ctx, tx, old)
	case len(values) == 0:
		_, err = sealed.Delete(ctx, tx, old)
	default:
		_, err = sealed.Replace(ctx, tx, old)
	}
	return true, err
}

// opensAs reports whether a stored value is the given one, so that sending the same secret again changes nothing.
func (s *Store) opensAs(stored, given string, boundTo []byte) bool {
	if stored == "" {
		return false
	}
	plain, err := s.keys.Open(stored, boundTo)
	return err == nil && string(plain) == given
}

func (c *collection) unseal(ctx context.Context, tx *Tx, id string) error {
	if c.sealed == nil {
		return nil
	}
	tenant := request.Tenant(ctx)
	rows, err := tx.engine.Peek().Get(ctx, sealed.untyped.def, tenant, []string{sealedID(c.def.Name, id)})
	for _, row := range rows {
		// Who seals a value meanwhile writes the record, too, and one of the two transactions runs again.
		if err := tx.engine.Delete(ctx, sealed.untyped.def, tenant, row.ID, row.Stamp); err != nil {
			return c.translate(err)
		}
	}
	return c.translate(err)
}

// readSealedAhead is ReadAhead for the sealed values of several records.
func (c *collection) readSealedAhead(ctx context.Context, tx *Tx, tenant string, ids []string) error {
	if c.sealed == nil || len(ids) < 2 {
		return nil
	}
	sealedIDs := make([]string, len(ids))
	for i, id := range ids {
		sealedIDs[i] = sealedID(c.def.Name, id)
	}
	return tx.engine.ReadAhead(ctx, sealed.untyped.def, tenant, sealedIDs)
}

// reveal returns the values of some sealed members that the record has; without members, of all.
func (c *collection) reveal(ctx context.Context, r Reader, id string, members ...string) (map[string]secret.String,
	error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	doc, err := sealed.Find(ctx, r, sealedID(c.def.Name, id))
	if apperr.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	stored, err := doc.Value()
	if err != nil {
		return nil, err
	}
	keys := r.store().keys
	values := map[string]secret.String{}
	for member, value := range stored.Values {
		if len(members) > 0 && !slices.Contains(members, member) {
			continue
		}
		if keys == nil {
			return nil, errNoKeys
		}
		plain, err := keys.Open(value, boundTo(tenant, c.def.Name, id, member))
		if err != nil {
			return nil, fmt.Errorf("docstore: the %s of a %s is sealed under a key that is not configured: %w",
				member, c.noun, err)
		}
		values[member] = secret.New(string(plain))
	}
	return values, nil
}
