package user

import (
	"context"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// Filter selects users. The zero Filter selects all.
type Filter struct {
	Keyword                  string
	FullText                 bool // Keyword is words in any member; otherwise the start of a basic member
	ModifiedFrom, ModifiedTo clock.Time
	Status                   Status
	Locked                   *bool
	IDs                      []string
}

// List returns a page of users. The error is apperr.InvalidParameters (paging, or a range that ends before it starts).
func (s *Users) List(ctx context.Context, f Filter, p docstore.Paging) (docstore.Page[User], error) {
	where, err := s.where(f)
	if err != nil {
		return docstore.Page[User]{}, err
	}
	return users.List(ctx, s.Store, where, p)
}

// Each calls fn for every user that a filter selects. The error is apperr.InvalidParameters before the first call.
func (s *Users) Each(ctx context.Context, f Filter, fn func(Doc) error) error {
	where, err := s.where(f)
	if err != nil {
		return err
	}
	return users.Each(ctx, s.Store, where, fn)
}

// where makes the storage filter. The error is apperr.InvalidParameters.
func (s *Users) where(f Filter) (docstore.Filter, error) {
	var all []docstore.Filter
	if f.Keyword != "" {
		all = append(all, matching(f.Keyword, f.FullText))
	}
	if !f.ModifiedFrom.IsZero() && !f.ModifiedTo.IsZero() && f.ModifiedTo.Before(f.ModifiedFrom) {
		return docstore.Filter{}, apperr.Invalid("time_modified_from", "must not be after time_modified_to")
	}
	if !f.ModifiedFrom.IsZero() {
		all = append(all, docstore.From(byTimeModified, docstore.Moment(f.ModifiedFrom)))
	}
	if !f.ModifiedTo.IsZero() {
		// What was last modified before a time was also created before it; this lets lists by time_created skip all
		// later users. The hour allows for differing clocks of several machines.
		all = append(all, docstore.Until(byTimeModified, docstore.Moment(f.ModifiedTo)),
			docstore.Known(docstore.Until(byTimeCreated, docstore.Moment(f.ModifiedTo.Add(time.Hour)))))
	}
	now := s.Store.Now()
	if f.Status != "" {
		all = append(all, inStatus(f.Status, now))
	}
	if f.Locked != nil {
		all = append(all, lockedNow(*f.Locked, now))
	}
	return docstore.And(append(all, docstore.IDOrAll(f.IDs...))...), nil
}

// inStatus selects by the status at now: a scheduled resignation counts from its time on, whether or not ApplyDue has
// stored it.
func inStatus(status Status, now clock.Time) docstore.Filter {
	is := inState(func(of Status, _ bool) bool { return of == status })
	if status == Resigned {
		return docstore.Or(is, reached(byLeaving, now))
	}
	return docstore.And(is, notReached(byLeaving, now))
}

// lockedNow selects by the lock at now: a lock with an end counts until that time, whether or not ApplyDue
// has stored its end.
func lockedNow(is bool, now clock.Time) docstore.Filter {
	if is {
		return docstore.And(inState(func(_ Status, locked bool) bool { return locked }), notReached(byLockEnd, now))
	}
	return docstore.Or(inState(func(_ Status, locked bool) bool { return !locked }), reached(byLockEnd, now))
}

func inState(is func(Status, bool) bool) docstore.Filter {
	var states []docstore.Value
	for _, status := range []Status{Active, Disabled, Resigned} {
		for _, locked := range []bool{false, true} {
			if is(status, locked) {
				states = append(states, docstore.Text(state(status, locked)))
			}
		}
	}
	return docstore.In(byState, states...)
}

// reached selects users with a time that has come. They are few, because ApplyDue removes them.
func reached(index string, now clock.Time) docstore.Filter {
	return docstore.TimeBound(docstore.Range(index, docstore.Number(docstore.NoNumber.Num+1),
		docstore.Number(now.Millis()+1)))
}

// notReached selects users with a time that has not come yet, or without one.
func notReached(index string, now clock.Time) docstore.Filter {
	return docstore.TimeBound(docstore.Outside(index, docstore.Number(docstore.NoNumber.Num+1),
		docstore.Number(now.Millis()+1)))
}

func matching(keyword string, fullText bool) docstore.Filter {
	if !fullText {
		key := textindex.Key(keyword)
		username, email := docstore.Prefix(byUsername, key), docstore.Prefix(byEmail, key)
		if !strings.Contains(key, "@") { // else byLogin has another form of the domain; see loginKey
			username, email = docstore.Known(username), docstore.Known(email)
		}
		return docstore.Or(docstore.Prefix(byLogin, key), docstore.Prefix(byWord, sharedMark+key),
			docstore.Prefix(byDisplayName, key), docstore.Prefix(byEmployeeNumber, key), docstore.ID(keyword), username,
			email)
	}
	return textindex.Matching(byWord, keyword)
}
