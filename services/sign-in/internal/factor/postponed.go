package factor

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Postponed are the steps of templates at which a user has gone on without a factor that was offered, or is demanded
// later. It has the user's id.
type Postponed struct {
	docstore.Meta
	Steps []postponed `json:"steps"`
}

type postponed struct {
	Step  string     `json:"step"`           // its key
	Since clock.Time `json:"since,omitzero"` // when the days of grace have begun; zero: they have not
	Last  clock.Time `json:"last"`           // when the user last went on
}

var postponements = docstore.Define(docstore.Schema[Postponed]{Name: "postponed_factors", Noun: "factor"})

// maxPostponed is for how many steps of a user it is known; the one that was met longest ago is forgotten first.
const maxPostponed = 100

// Postponed returns what a user has postponed.
func (s *Factors) Postponed(ctx context.Context, userID string) (*Postponed, error) {
	doc, err := postponements.Find(ctx, s.Store, userID)
	if apperr.IsNotFound(err) {
		return &Postponed{}, nil
	}
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// At returns since when the user has had days of grace at a step, and when the user last went on without a factor;
// zero: never.
func (p *Postponed) At(step string) (since, last clock.Time) {
	if i := p.index(step); i >= 0 {
		return p.Steps[i].Since, p.Steps[i].Last
	}
	return since, last
}

func (p *Postponed) index(step string) int {
	return slices.IndexFunc(p.Steps, func(one postponed) bool { return one.Step == step })
}

// Postpone notes that a user goes on without a factor at a step, and begins days of grace if there are any.
func Postpone(ctx context.Context, tx *docstore.Tx, userID, step string, grace bool) error {
	return editPostponed(ctx, tx, userID, func(p *Postponed) {
		one := p.take(step)
		one.Last = tx.Now
		if grace && one.Since.IsZero() {
			one.Since = tx.Now
		}
		p.Steps = append(p.Steps, one)
	})
}

// BeginGrace begins the days of grace of a user at some steps, where they have not begun.
func BeginGrace(ctx context.Context, tx *docstore.Tx, userID string, steps []string) error {
	return editPostponed(ctx, tx, userID, func(p *Postponed) {
		for _, step := range steps {
			one := p.take(step)
			if one.Since.IsZero() {
				one.Since = tx.Now
			}
			p.Steps = append(p.Steps, one)
		}
	})
}

// take takes a step out of the list; a new one if it is not in it.
func (p *Postponed) take(step string) postponed {
	i := p.index(step)
	if i < 0 {
		return postponed{Step: step}
	}
	one := p.Steps[i]
	p.Steps = slices.Delete(p.Steps, i, i+1)
	return one
}

func editPostponed(ctx context.Context, tx *docstore.Tx, userID string, edit func(*Postponed)) error {
	found, err := postponements.LoadMany(ctx, tx, []string{userID})
	if err != nil {
		return err
	}
	p := &Postponed{Meta: docstore.Meta{ID: userID}}
	if len(found) > 0 {
		p = found[0]
	}
	edit(p)
	p.Steps = p.Steps[max(0, len(p.Steps)-maxPostponed):]
	if len(found) == 0 {
		_, err = postponements.Insert(ctx, tx, p)
		return err
	}
	_, err = postponements.Replace(ctx, tx, p)
	return err
}

// forgetPostponed deletes what a user has postponed.
func forgetPostponed(ctx context.Context, tx *docstore.Tx, userID string) error {
	found, err := postponements.LoadMany(ctx, tx, []string{userID})
	if err != nil || len(found) == 0 {
		return err
	}
	_, err = postponements.Delete(ctx, tx, found[0])
	return err
}
