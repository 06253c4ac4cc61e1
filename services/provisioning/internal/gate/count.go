package gate

import (
	"context"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
)

// Removal is what a request takes away: people or whole groups, or members of one group.
type Removal struct {
	group  string // "": people or groups
	n      int64
	reason string // why the request is held if it is too much
}

// OfPeople is the removal of a user, or of a group as a whole.
func OfPeople(reason string) Removal { return Removal{n: 1, reason: reason} }

// OfMembers is the removal of n members of a group.
func OfMembers(group string, n int64) Removal {
	return Removal{group, n, "too many members of the group are removed"}
}

// id is that of the removals among which it counts.
func (r Removal) id(connectionID string) string {
	if r.group == "" {
		return connectionID
	}
	return placeOf(connectionID, r.group)
}

// removals counts, by hour, what the client of a connection has taken away: people and groups, or members of one group.
type removals struct {
	docstore.Meta
	ConnectionID string `json:"connection_id"`
	Hours        []hour `json:"hours"` // oldest first
	// Base is how much was there when the window of BaseHour began.
	Base     int64      `json:"base"`
	BaseHour int64      `json:"base_hour"`
	Ends     clock.Time `json:"ends"` // when nothing of it counts any more
}

type hour struct {
	Hour int64 `json:"hour"` // since 1970
	N    int64 `json:"n"`
}

var counts = docstore.Define(docstore.Schema[removals]{
	Name: "removals", Noun: "count", NoIfMatch: true, Revision: 1,
	Due: func(r *removals) clock.Time { return r.Ends },
	Indexes: []docstore.Index[removals]{
		docstore.ByText(byConnection, func(r *removals) string { return r.ConnectionID }),
	},
})

// countsOf selects the counts of a connection.
func countsOf(connectionID string) docstore.Filter {
	return docstore.Or(docstore.ID(connectionID), docstore.Eq(byConnection, docstore.Text(connectionID)))
}

func hourOf(t clock.Time) int64 { return t.Millis() / time.Hour.Milliseconds() }

func momentOf(hour int64) clock.Time { return clock.FromMillis(hour * time.Hour.Milliseconds()) }

// count counts removals of a connection. If one is too much, it counts none and returns it.
func count(ctx context.Context, tx *docstore.Tx, c *connection.Connection, all []Removal) (*Removal, error) {
	ids := make([]string, len(all))
	for i, r := range all {
		ids[i] = r.id(c.ID)
	}
	found, err := counts.LoadMany(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	before, known := map[string]*removals{}, map[string]bool{}
	for _, r := range found {
		before[r.ID], known[r.ID] = r, true
	}
	this := hourOf(tx.Now)
	first := this - int64(c.Gate.Hours) + 1
	var tooMuch *Removal
	for i, r := range all {
		of := before[ids[i]]
		if of == nil {
			of = &removals{Meta: docstore.Meta{ID: ids[i]}}
			before[of.ID] = of
		}
		of.ConnectionID, of.Ends = c.ID, momentOf(this+int64(c.Gate.Hours))
		recent := of.since(first)
		if recent+r.n > int64(c.Gate.Min) {
			if of.BaseHour != this {
				there, err := r.existed(ctx, tx.Peek(), c.ID, momentOf(first))
				if err != nil {
					return nil, err
				}
				of.Base, of.BaseHour = there+recent, this
			}
			if recent+r.n > max(int64(c.Gate.Min), of.Base*int64(c.Gate.Percent)/100) {
				tooMuch = &all[i]
				break
			}
		}
	}
	for i, r := range all {
		of := before[ids[i]]
		switch {
		case of == nil || tooMuch != nil && of.BaseHour != this:
			continue
		case tooMuch == nil:
			of.add(this, r.n)
		}
		if known[of.ID] {
			_, err = counts.Replace(ctx, tx, of)
		} else {
			_, err = counts.Insert(ctx, tx, of)
		}
		if err != nil {
			return nil, err
		}
	}
	return tooMuch, nil
}

// existed counts what is still there of what was there at a moment: what is made first, to be taken away then, is none
// of it.
func (r Removal) existed(
	ctx context.Context, from docstore.Reader, connectionID string, at clock.Time,
) (int64, error) {
	if r.group == "" {
		return directory.CountActiveBefore(ctx, from, connectionID, at)
	}
	return directory.CountMembersBefore(ctx, from, r.group, at)
}

// since forgets what is older than an hour, and returns the number of the rest.
func (r *removals) since(first int64) (n int64) {
	var kept []hour
	for _, h := range r.Hours {
		if h.Hour >= first {
			kept = append(kept, h)
			n += h.N
		}
	}
	r.Hours = kept
	return n
}

func (r *removals) add(this, n int64) {
	if last := len(r.Hours) - 1; last >= 0 && r.Hours[last].Hour == this {
		r.Hours[last].N += n
		return
	}
	r.Hours = append(r.Hours, hour{this, n})
}

// Release takes back the count of removals that were not made.
func (g *Gate) Release(ctx context.Context, connectionID string, all ...Removal) {
	if IsApproved(ctx) || len(all) == 0 {
		return
	}
	ids := make([]string, len(all))
	by := map[string]int64{}
	for i, r := range all {
		ids[i] = r.id(connectionID)
		by[ids[i]] = r.n
	}
	ctx = docstore.WithoutCommitHook(docstore.InTurn(ctx, "gate "+ids[0]))
	_ = docstore.Do(ctx, g.Store, func(tx *docstore.Tx) error {
		found, err := counts.LoadMany(ctx, tx, ids)
		if err != nil {
			return err
		}
		for _, of := range found {
			if last := len(of.Hours) - 1; last >= 0 {
				of.Hours[last].N = max(0, of.Hours[last].N-by[of.ID])
				if _, err := counts.Replace(ctx, tx, of); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// DueCounts lists counts of which nothing counts any more.
func DueCounts(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return counts.Due(ctx, s, limit)
}

// ForgetCount forgets such a count.
func ForgetCount(ctx context.Context, s *docstore.Store, id string) error {
	return docstore.Do(ctx, s, func(tx *docstore.Tx) error {
		found, err := counts.LoadMany(ctx, tx, []string{id})
		if err != nil || len(found) == 0 || tx.Now.Before(found[0].Ends) {
			return err
		}
		_, err = counts.Delete(ctx, tx, found[0])
		return err
	})
}
