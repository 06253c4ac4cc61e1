package subscription

import (
	"bytes"
	"context"
	"slices"
	"strconv"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/pkg/webhook"
)

// The budget of a tenant.
const (
	MaxSubscriptions = 200
	// MaxFilterCost bounds the sum of the costs of a tenant's filters, in the units of condition.MaxCost: all of them
	// are evaluated for each event.
	MaxFilterCost = 1_000_000
)

// Subscriptions are the use cases.
type Subscriptions struct {
	store  *docstore.Store
	stream *stream.Log
	rows   Rows
}

// Rows are the deliveries of subscriptions.
type Rows interface {
	// Clear removes a subscription's deliveries that wait.
	Clear(ctx context.Context, tx *docstore.Tx, subscription string) error
	// Forget removes all deliveries of a deleted subscription.
	Forget(ctx context.Context, tx *docstore.Tx, subscription string) error
}

// New makes the use cases.
func New(store *docstore.Store, f *stream.Log, rows Rows) *Subscriptions {
	return &Subscriptions{store, f, rows}
}

// Create adds a subscription. It gets the events that are emitted from now on. Only this answer has the secret. The
// error is apperr.InvalidParameters, AlreadyExists, InvalidState (the tenant's budget) or Unavailable.
func (s *Subscriptions) Create(ctx context.Context, d Profile) (View, error) {
	var faults apperr.Faults
	d.check(&faults, nil)
	if err := faults.Err(); err != nil {
		return View{}, err
	}
	place, epoch, err := s.stream.End()
	if err != nil {
		return View{}, err
	}
	id, err := s.store.NewID(ctx)
	if err != nil {
		return View{}, err
	}
	made := webhook.NewSecret()
	ctx = docstore.InTurn(ctx, "subscriptions")
	return docstore.Write(ctx, s.store, func(tx *docstore.Tx) (View, error) {
		sub := &Subscription{Meta: docstore.Meta{ID: id}, Profile: d, State: Active}
		if d.Status == "0" {
			sub.State = Paused
		}
		fresh := sub.complete(request.Tenant(ctx), made)
		if err := s.checkBudget(ctx, tx, sub); err != nil {
			return View{}, err
		}
		doc, err := subscriptions.Insert(ctx, tx, sub)
		if err != nil {
			return View{}, err
		}
		p := &Progress{Meta: docstore.Meta{ID: id}, Epoch: epoch, Place: place, Event: s.stream.IDAt(place)}
		if _, err := ProgressOf.Insert(ctx, tx, p); err != nil {
			return View{}, err
		}
		v, err := view(doc, p)
		return v.showing(fresh), err
	})
}

// complete sets the members that the platform makes, and returns the secret if it is one of them.
func (s *Subscription) complete(tenant, made string) (fresh string) {
	if s.Delivery.Type == NATS {
		s.Delivery.Subject, s.Delivery.User = bus.SubscriptionSubject(tenant, s.ID), tenant+"."+s.ID
	}
	if s.Delivery.Secret.IsSet() {
		return ""
	}
	s.Delivery.Secret = secret.NewText(made)
	return made
}

// showing puts a new secret in place of its mask.
func (v View) showing(fresh string) View {
	if fresh == "" {
		return v
	}
	masked := []byte(`,"secret":"` + secret.Mask + `"`)
	v.JSON = bytes.Replace(v.JSON, masked, []byte(`,"secret":"`+fresh+`"`), 1) // base64 needs no JSON escapes
	return v
}

// checkBudget refuses a subscription with which the tenant would have too many, or too expensive filters.
func (s *Subscriptions) checkBudget(ctx context.Context, tx *docstore.Tx, sub *Subscription) error {
	all, err := subscriptions.Page(ctx, tx, docstore.Query{Limit: MaxSubscriptions + 1})
	if err != nil {
		return err
	}
	cost, n := filterCost(sub.Filter), 1
	for i := range all.Docs {
		other, err := all.Docs[i].Value()
		if err != nil {
			return err
		}
		if other.ID != sub.ID {
			cost += filterCost(other.Filter)
			n++
		}
	}
	if n > MaxSubscriptions {
		return apperr.New(apperr.InvalidState, "a tenant has at most %d subscriptions", MaxSubscriptions)
	}
	if cost > MaxFilterCost {
		return apperr.New(apperr.InvalidState,
			"the filters of the tenant's subscriptions would cost %d, the limit is %d",
			cost, MaxFilterCost)
	}
	return nil
}

func filterCost(filter string) int64 {
	if filter == "" {
		return 0
	}
	program, err := Filters.Cached(filter)
	if err != nil {
		return 0 // it selects nothing
	}
	return program.Cost()
}

// Get returns a subscription. The error is apperr.NotFound.
func (s *Subscriptions) Get(ctx context.Context, id string) (View, error) {
	doc, err := subscriptions.Find(ctx, s.store, id)
	if err != nil {
		return View{}, err
	}
	views, err := s.views(ctx, s.store, []Doc{doc})
	if err != nil {
		return View{}, err
	}
	return views[0], nil
}

// Find returns the record without its progress. The error is apperr.NotFound.
func (s *Subscriptions) Find(ctx context.Context, id string) (*Subscription, error) {
	doc, err := subscriptions.Find(ctx, s.store, id)
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// views joins subscriptions with their progress.
func (s *Subscriptions) views(ctx context.Context, r docstore.Reader, docs []Doc) ([]View, error) {
	ids := make([]string, len(docs))
	for i, doc := range docs {
		ids[i] = doc.ID
	}
	found, err := ProgressOf.FindMany(ctx, r, ids)
	if err != nil {
		return nil, err
	}
	progress := map[string]*Progress{}
	for _, doc := range found {
		p, err := doc.Value()
		if err != nil {
			return nil, err
		}
		progress[p.ID] = p
	}
	views := make([]View, len(docs))
	for i, doc := range docs {
		p := progress[doc.ID]
		if p == nil { // it was deleted meanwhile
			p = &Progress{}
		}
		if views[i], err = view(doc, p); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// Filter selects subscriptions by equal members; empty members are ignored.
type Filter struct {
	Name  string `query:"name" maxLength:"256"`
	State string `query:"state" enum:"active,paused,failing,disabled"`
	textindex.Search
	docstore.Paging
}

// Page is a page of a list.
type Page struct {
	Views []View
	Total int64
	More  bool
	Next  string
}

// List returns a page of subscriptions. The error is apperr.InvalidParameters (paging).
func (s *Subscriptions) List(ctx context.Context, f Filter) (Page, error) {
	where := docstore.And(docstore.EqOrAll(byName, f.Name), docstore.EqOrAll(byState, f.State),
		textindex.HavingPart(f.Keyword))
	page, err := subscriptions.List(ctx, s.store, where, f.Paging)
	if err != nil {
		return Page{}, err
	}
	views, err := s.views(ctx, s.store, page.Docs)
	return Page{views, page.Total, page.More, page.Next}, err
}

// Update changes the profile of a subscription. A mask in place of a secret keeps the secret. The error is
// apperr.NotFound, InvalidParameters, AlreadyExists, InvalidState (the tenant's budget) or VersionMismatch.
func (s *Subscriptions) Update(ctx context.Context, id string, change func(*Profile) error) (View, error) {
	made := webhook.NewSecret()
	ctx = docstore.InTurn(ctx, "subscriptions")
	return s.change(ctx, id, "updated", func(tx *docstore.Tx, sub *Subscription, p *Progress) (string, error) {
		before := sub.Profile
		after := before.clone()
		if err := change(&after); err != nil {
			return "", err
		}
		var faults apperr.Faults
		after.check(&faults, &before)
		if err := faults.Err(); err != nil {
			return "", err
		}
		sub.Profile = after
		switch {
		case after.Status == before.Status: // it stays paused, failing or disabled
		case after.Status == "1":
			sub.enter(Active)
			p.LastError = ""
		default:
			sub.enter(Paused)
		}
		fresh := sub.complete(request.Tenant(ctx), made)
		return fresh, s.checkBudget(ctx, tx, sub)
	})
}

func (p Profile) clone() Profile {
	p.EventTypes = slices.Clone(p.EventTypes)
	headers := map[string]*secret.Text{}
	for name, value := range p.Delivery.Headers {
		kept := *value
		headers[name] = &kept
	}
	p.Delivery.Headers = headers
	return p
}

// change loads a subscription with its progress, changes it, and tells the event. fn returns a new secret, or "".
func (s *Subscriptions) change(ctx context.Context, id, action string,
	fn func(*docstore.Tx, *Subscription, *Progress) (fresh string, err error)) (View, error) {
	return docstore.Write(ctx, s.store, func(tx *docstore.Tx) (View, error) {
		sub, err := subscriptions.Load(ctx, tx, id)
		if err != nil {
			return View{}, err
		}
		p, err := ProgressOf.Load(ctx, tx, id)
		if err != nil {
			return View{}, err
		}
		fresh, err := fn(tx, sub, p)
		if err != nil {
			return View{}, err
		}
		if _, err := ProgressOf.Replace(ctx, tx, p); err != nil {
			return View{}, err
		}
		replace := subscriptions.As(action).Replace
		if action == "reset" { // tell the event even if only the progress changes
			replace = subscriptions.As(action).Revise
		}
		doc, err := replace(ctx, tx, sub)
		if err != nil {
			return View{}, err
		}
		v, err := view(doc, p)
		return v.showing(fresh), err
	})
}

// Delete removes a subscription with its deliveries. The error is apperr.NotFound or VersionMismatch.
func (s *Subscriptions) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	return subscriptions.Remove(ctx, s.store, id, func(tx *docstore.Tx, _ *Subscription) error {
		if err := ProgressOf.DeleteWhere(ctx, tx, docstore.ID(id), nil); err != nil {
			return err
		}
		return s.rows.Forget(ctx, tx, id)
	})
}

func number(i int) string { return strconv.Itoa(i) }
