// Package grant is the domain of permissions: resources and resource sets, which can be granted; authorization units,
// which they are granted to; and the rules that grant or deny.
package grant

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
)

// The values of on/off members.
const (
	On  = "1"
	Off = "0"
)

// Change is a record that a transaction has written or deleted, or, with Known, found to be as it was asked to be.
type Change struct {
	Known    bool
	Value    any // the record, such as *Rule; nil if only Record is known
	Entity   string
	ID       string
	Deleted  bool
	Sequence int64           // of its last event
	Record   json.RawMessage // its JSON; nil if only Value is known
}

// Deps are what Grants needs.
type Deps struct {
	Store *docstore.Store
	// Writing is called before a transaction begins, and done once OnChange has returned or nothing was committed.
	Writing func() (done func())
	// BeforeCommit is called with the changes of a transaction before its commit, perhaps several times.
	BeforeCommit func(ctx context.Context, changes []Change)
	// OnChange is called with the changes of a transaction after its commit, and before the caller is answered.
	OnChange func(ctx context.Context, changes []Change)
	// Conditions returns how many different conditions the tenant's rules have, or would have with these texts.
	Conditions func(ctx context.Context, texts ...string) int
	// Scopes returns the scopes of the platform's API that a unit's rules give. The error is apperr.Unavailable as long
	// as the index is being built.
	Scopes func(ctx context.Context, unitID string) (auth.Scopes, error)
}

// Grants are the use cases.
type Grants struct{ Deps }

// New makes the use cases.
func New(d Deps) *Grants { return &Grants{d} }

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return []*docstore.Def{resources.Def(), sets.Def(), members.Def(), units.Def(), groupMembers.Def(), rules.Def()}
}

// The kinds of records, as events name them.
var (
	resourceKind    = outbox.Kind{Entity: "resource", Source: "/resources"}
	setKind         = outbox.Kind{Entity: "resource_set", Source: "/resource-sets"}
	memberKind      = outbox.Kind{Entity: "resource_set_member", Source: "/resource-sets/members"}
	unitKind        = outbox.Kind{Entity: "auth_unit", Source: "/auth-units"}
	groupMemberKind = outbox.Kind{Entity: "auth_unit_member", Source: "/auth-units/members"}
	ruleKind        = outbox.Kind{Entity: "auth_rule", Source: "/auth-rules"}
)

// batch is a transaction with the changes that it has made.
type batch struct {
	*docstore.Tx
	changes []Change
}

// write runs fn in a transaction. When it returns, the index of this replica knows the changes.
func write[R any](ctx context.Context, s *Grants, fn func(*batch) (R, error)) (R, error) {
	defer s.Writing()()
	var last *batch
	dry := docstore.IsDryRun(ctx)
	result, err := docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (R, error) {
		last = &batch{Tx: tx}
		result, err := fn(last)
		if err == nil && !dry {
			s.BeforeCommit(ctx, last.changes)
		}
		return result, err
	})
	if err == nil && !dry {
		s.OnChange(ctx, last.changes)
	}
	return result, err
}

// found notes a record that was asked for and exists already. Counts raise the revision of a record without an event:
// its version is what replicas know at least.
func (b *batch) found(kind outbox.Kind, m *docstore.Meta) {
	b.changes = append(b.changes, Change{Known: true, Entity: kind.Entity, ID: m.ID,
		Sequence: docstore.FirstSequence(m.Version)})
}

// missing notes records that were to be deleted and do not exist.
func (b *batch) missing(kind outbox.Kind, ids []string) {
	for _, id := range ids {
		b.changes = append(b.changes, Change{Known: true, Entity: kind.Entity, ID: id, Deleted: true})
	}
}

// missing are the ids of records that were not found.
func missing[T any](ids []string, found []*T, id func(*T) string) []string {
	there := map[string]bool{}
	for _, v := range found {
		there[id(v)] = true
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return there[id] })
}

// tell notes that a record was written or deleted, and adds its event.
func tell[T any](ctx context.Context, b *batch, kind outbox.Kind, action string, doc *docstore.Doc[T]) error {
	record, err := doc.JSON()
	if err != nil {
		return err
	}
	b.changes = append(b.changes, Change{
		Entity: kind.Entity, ID: doc.ID, Deleted: action == deleted, Sequence: docstore.FirstSequence(doc.Revision()),
		Record: record,
	})
	return outbox.Tell(ctx, b.Tx, kind, action, doc, nil)
}

// The actions of events.
const (
	created = "created"
	updated = "updated"
	deleted = "deleted"
)

// insert adds a record, with its event.
func insert[T any](ctx context.Context, b *batch, c *docstore.Collection[T], kind outbox.Kind, v *T) (docstore.Doc[T],
	error) {
	doc, err := c.Insert(ctx, b.Tx, v)
	if err != nil {
		return doc, err
	}
	return doc, tell(ctx, b, kind, created, &doc)
}

// insertMany is insert for several records; at is where in the request each stands.
func insertMany[T any](
	ctx context.Context, b *batch, c *docstore.Collection[T], kind outbox.Kind, at func(i int) string, all []*T,
) ([]docstore.Doc[T], error) {
	docs, err := c.InsertMany(ctx, b.Tx, at, all...)
	if err != nil {
		return nil, err
	}
	for i := range docs {
		if err := tell(ctx, b, kind, created, &docs[i]); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// replace stores a loaded record again, with its event. It does nothing if the record has not changed.
func replace[T any](ctx context.Context, b *batch, c *docstore.Collection[T], kind outbox.Kind, v *T) (docstore.Doc[T],
	error) {
	doc, err := c.Replace(ctx, b.Tx, v)
	if err == nil && !doc.Changed() {
		b.changes = append(b.changes, Change{Known: true, Entity: kind.Entity, ID: doc.ID,
			Sequence: docstore.FirstSequence(doc.Version)})
	}
	if err != nil || !doc.Changed() {
		return doc, err
	}
	return doc, tell(ctx, b, kind, updated, &doc)
}

// remove deletes a loaded record, with its event.
func remove[T any](ctx context.Context, b *batch, c *docstore.Collection[T], kind outbox.Kind, v *T) error {
	doc, err := c.Delete(ctx, b.Tx, v)
	if err != nil {
		return err
	}
	return tell(ctx, b, kind, deleted, &doc)
}

// Limits of members, in characters.
const (
	maxCode        = 256
	maxName        = 256
	maxDescription = 2000
	maxURI         = 1024
	maxID          = 64
	maxActions     = 200
)

var (
	validCode   = regexp.MustCompile(`^[A-Za-z0-9._\-:/]{1,256}$`)
	validAction = regexp.MustCompile(`^[A-Za-z0-9._\-:/]{1,64}$`)
)

const codeForm = "must have 1…256 letters, digits or . _ - : /"

// checkID checks an id from another service or a client.
func checkID(faults *apperr.Faults, at, id string) {
	faults.Check(id != "" && utf8.RuneCountInString(id) <= maxID, at, "must have 1…%d characters", maxID)
}

// checkActions checks a list of action codes, which may be "*".
func checkActions(faults *apperr.Faults, at string, codes []string) {
	faults.Check(len(codes) <= maxActions, at, "must have at most %d actions", maxActions)
	for i, code := range codes {
		faults.Check(code == all || validAction.MatchString(code), apperr.Item(at, i),
			"must be * or 1…64 letters, digits or . _ - : /")
	}
}

// all means every action in a list of actions; it is also the id of the identity everyone.
const all = "*"
