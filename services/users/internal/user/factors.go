package user

import (
	"context"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// secondFactor is a second factor of a user, as far as the sign-in service has told. It has the factor's id. One that
// is gone is known for a while, because the event about its creation can come after that about its end.
type secondFactor struct {
	docstore.Meta
	UserID      string     `json:"user_id"`
	Type        string     `json:"type"`                  // otp or webauthn
	TimeForgets clock.Time `json:"time_forgets,omitzero"` // zero: it is there
}

// goneFor is how long a factor that is gone is known.
const goneFor = 30 * 24 * time.Hour

const byFactorOwner = "user_id"

var secondFactors = docstore.Define(docstore.Schema[secondFactor]{
	Name: "second_factors", Noun: "second factor",
	Indexes: []docstore.Index[secondFactor]{
		docstore.ByList(byFactorOwner, func(f *secondFactor) []string {
			if !f.TimeForgets.IsZero() {
				return nil
			}
			return []string{f.UserID}
		}),
	},
	Due: func(f *secondFactor) clock.Time { return f.TimeForgets },
})

// DueFactors lists the factors to forget.
var DueFactors = secondFactors.Due

// DropFactor forgets a factor that is gone.
func (s *Users) DropFactor(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		found, err := secondFactors.LoadMany(ctx, tx, []string{id})
		if err != nil || len(found) == 0 {
			return err
		}
		_, err = secondFactors.Delete(ctx, tx, found[0])
		return err
	})
}

// recoveryCode is the type of recovery codes, which are nothing without a factor.
const recoveryCode = "recovery_code"

// KeepFactor notes that a user has a second factor. It may be told several times.
func (s *Users) KeepFactor(ctx context.Context, id, userID, kind string) error {
	if kind == recoveryCode {
		return nil
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		found, err := secondFactors.LoadMany(ctx, tx, []string{id})
		if err != nil || len(found) > 0 {
			return err
		}
		_, err = secondFactors.Insert(ctx, tx, &secondFactor{Meta: docstore.Meta{ID: id}, UserID: userID, Type: kind})
		return err
	})
}

// ForgetFactor notes that a second factor is gone. It may be told several times, and before KeepFactor.
func (s *Users) ForgetFactor(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		found, err := secondFactors.LoadMany(ctx, tx, []string{id})
		if err != nil {
			return err
		}
		forgets := tx.Now.Add(goneFor)
		if len(found) == 0 {
			_, err = secondFactors.Insert(ctx, tx, &secondFactor{Meta: docstore.Meta{ID: id}, TimeForgets: forgets})
			return err
		}
		found[0].TimeForgets = forgets
		_, err = secondFactors.Replace(ctx, tx, found[0])
		return err
	})
}

// mostFactors is how many factors of a user are looked at.
const mostFactors = 50

// factorTypes are the types of a user's second factors, each once, in order.
func (s *Users) factorTypes(ctx context.Context, userID string) ([]string, error) {
	page, err := secondFactors.Page(ctx, s.Store, docstore.Query{
		Filter: docstore.Eq(byFactorOwner, docstore.Text(userID)), Limit: mostFactors,
	})
	if err != nil {
		return nil, err
	}
	types := make([]string, len(page.Docs))
	for i := range page.Docs {
		f, err := page.Docs[i].Value()
		if err != nil {
			return nil, err
		}
		types[i] = f.Type
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}
