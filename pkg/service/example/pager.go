package example

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// Pager is a pager record. It has the same JSON form in the API, in events and in the store.
type Pager struct {
	docstore.Meta
	Profile
	Number string `json:"number" readOnly:"true" doc:"What pages are sent to; unique over all tenants" example:"4mrhvkqtwz5c2d7ba3gxyun6ep"`
}

// Profile holds the members that clients set.
type Profile struct {
	Name    string      `json:"name" required:"true" doc:"What it is called" example:"On call"`
	OwnerID string      `json:"owner_id" doc:"Who carries it"`
	PIN     secret.Text `json:"pin" required:"true" doc:"At least 4 characters; shown as ******, which keeps the old one" example:"4711"`
	TimeEnd clock.Time  `json:"time_end" nullable:"true" doc:"When the pager is deleted; null means never"`
}

var pagers = outbox.Define("pager", "/pagers", docstore.Schema[Pager]{
	Name: "pagers", Noun: "pager",
	Indexes: []docstore.Index[Pager]{
		docstore.Unique(docstore.ByText("name", func(p *Pager) string { return textindex.Key(p.Name) }), "name"),
		docstore.Global(docstore.ByText("number", func(p *Pager) string { return p.Number }), "number"),
		docstore.ByText("owner_id", func(p *Pager) string { return p.OwnerID }),
		docstore.ByNumber("time_created", func(p *Pager) docstore.Value { return docstore.Moment(p.TimeCreated) }),
	},
	Sortable: []string{"time_created", "name"},

	Sealed: func(p *Pager) []docstore.Sealed {
		return []docstore.Sealed{docstore.Seal("pin", &p.PIN, docstore.NotSent)}
	},
	Due: func(p *Pager) clock.Time { return p.TimeEnd },
})

// Pagers are the use cases.
type Pagers struct {
	store *docstore.Store
	bus   *bus.Bus
}

type pagerDoc = docstore.Doc[Pager]

// create adds a pager. The error is apperr.InvalidParameters or AlreadyExists, or Unavailable if the question about its
// owner has no answer.
func (s *Pagers) create(ctx context.Context, p Profile) (pagerDoc, error) {
	if err := s.check(ctx, p); err != nil {
		return pagerDoc{}, err
	}
	id, err := s.store.NewID(ctx)
	if err != nil {
		return pagerDoc{}, err
	}
	number := strings.ToLower(rand.Text())
	return docstore.Write(ctx, s.store, func(tx *docstore.Tx) (pagerDoc, error) {
		return pagers.Insert(ctx, tx, &Pager{Meta: docstore.Meta{ID: id}, Profile: p, Number: number})
	})
}

// check finds all faults of a pager. It must not be called inside a Write, where questions fail.
func (s *Pagers) check(ctx context.Context, p Profile) error {
	var faults apperr.Faults
	faults.Name("name", p.Name, 64)
	pin, fresh := p.PIN.Given()
	faults.Check(p.PIN.IsSet() && (!fresh || len(pin) >= 4), "pin", "must have at least 4 characters")
	if p.OwnerID != "" {
		exists, err := PersonExists.Ask(ctx, s.bus, Owner{ID: p.OwnerID})
		if err != nil {
			return err
		}
		faults.Check(exists, "owner_id", "is not a person's id")
	}
	return faults.Err()
}

// get returns a pager. The error is apperr.NotFound.
func (s *Pagers) get(ctx context.Context, id string) (pagerDoc, error) {
	return pagers.Find(ctx, s.store, id)
}

// update applies edit, which is called twice: on a copy that is checked with questions to other services, and inside
// the transaction. The error is apperr.NotFound, VersionMismatch, or one of create's.
func (s *Pagers) update(ctx context.Context, id string, edit func(*Profile) error) (pagerDoc, error) {
	doc, err := pagers.Find(ctx, s.store, id)
	if err != nil {
		return doc, err
	}
	proposal, err := doc.Value()
	if err != nil {
		return doc, err
	}
	if err := edit(&proposal.Profile); err != nil {
		return doc, err
	}
	if err := s.check(ctx, proposal.Profile); err != nil {
		return doc, err
	}
	return pagers.Edit(ctx, s.store, id, func(_ *docstore.Tx, p *Pager) error { return edit(&p.Profile) })
}

// delete deletes a pager. The error is apperr.NotFound or VersionMismatch.
func (s *Pagers) delete(ctx context.Context, id string) (docstore.Deleted, error) {
	return pagers.Remove(ctx, s.store, id, nil)
}

// end is delete for a pager whose time is over.
func (s *Pagers) end(ctx context.Context, id string) error {
	_, err := s.delete(ctx, id)
	return err
}

// page sends a text to the pager with a number, of any tenant. The error is apperr.Unauthenticated for an unknown
// number and for a wrong PIN alike, so that nobody can find out which numbers exist.
func (s *Pagers) page(ctx context.Context, number, pin, text string) error {
	wrong := apperr.New(apperr.Unauthenticated, "the number or the PIN is wrong")
	doc, err := pagers.FindGlobal(ctx, s.store, "number", number)
	if apperr.IsNotFound(err) {
		return wrong
	}
	if err != nil {
		return err
	}
	found, err := doc.Value()
	if err != nil {
		return err
	}
	ctx = request.System(ctx, found.TenantID)
	want, err := pagers.Reveal(ctx, s.store, found.ID, "pin")
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(want.Reveal()), []byte(pin)) == 0 {
		return wrong
	}
	return docstore.Do(ctx, s.store, func(tx *docstore.Tx) error {
		p, err := pagers.Load(ctx, tx, found.ID)
		if err != nil {
			return err
		}
		// the record stays as it is; the new revision orders its events
		_, err = pagers.As("paged").With("text", text).Revise(ctx, tx, p)
		return err
	})
}

// of answers PagersOf.
func (s *Pagers) of(ctx context.Context, owner Owner) (int64, error) {
	return pagers.Count(ctx, s.store, docstore.Eq("owner_id", docstore.Text(owner.ID)))
}
