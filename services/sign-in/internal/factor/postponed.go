package factor

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Postponed are the templates at which a user has gone on without a factor that was offered or demanded. It has the
// user's id.
type Postponed struct {
	docstore.Meta
	Templates []postponed `json:"templates"`
}

// postponed is when the user went on so at the template with a code.
type postponed struct {
	Code  string     `json:"code"`
	First clock.Time `json:"first"`
	Last  clock.Time `json:"last"`
}

var postponements = docstore.Define(docstore.Schema[Postponed]{Name: "postponed_factors", Noun: "factor"})

// maxPostponed is for how many templates of a user it is known; the one that was met longest ago is forgotten first.
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

// At returns when the user first and last went on without a factor at a template; zero: never.
func (p *Postponed) At(code string) (first, last clock.Time) {
	if i := p.index(code); i >= 0 {
		return p.Templates[i].First, p.Templates[i].Last
	}
	return first, last
}

func (p *Postponed) index(code string) int {
	return slices.IndexFunc(p.Templates, func(one postponed) bool { return one.Code == code })
}

// Postpone notes that a user goes on without a factor at a template.
func Postpone(ctx context.Context, tx *docstore.Tx, userID, code string) error {
	found, err := postponements.LoadMany(ctx, tx, []string{userID})
	if err != nil {
		return err
	}
	p := &Postponed{Meta: docstore.Meta{ID: userID}}
	if len(found) > 0 {
		p = found[0]
	}
	one := postponed{Code: code, First: tx.Now, Last: tx.Now}
	if i := p.index(code); i >= 0 {
		one.First = p.Templates[i].First
		p.Templates = slices.Delete(p.Templates, i, i+1)
	}
	if p.Templates = append(p.Templates, one); len(p.Templates) > maxPostponed {
		p.Templates = p.Templates[1:]
	}
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
