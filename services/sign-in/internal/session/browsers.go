package session

import (
	"context"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// browser is a browser in which a user has signed in. Its id is both's.
type browser struct {
	docstore.Meta
	UserID      string     `json:"user_id"`
	TimeExpires clock.Time `json:"time_expires"`
	// TimeTwoFactors is when the user last signed in with two factors.
	TimeTwoFactors clock.Time `json:"time_two_factors,omitzero"`
}

var browsers = docstore.Define(docstore.Schema[browser]{
	Name: "known_browsers", Noun: "browser",
	Due: func(b *browser) clock.Time { return b.TimeExpires },
	Indexes: []docstore.Index[browser]{
		docstore.ByText(byUser, func(b *browser) string { return b.UserID }),
		docstore.ByText(byHash, func(b *browser) string { _, hash, _ := strings.Cut(b.ID, "."); return hash }),
	},
	Revision: 1,
})

const byHash = "hash"

// known is how long a browser is known without a sign-in.
const known = 400 * 24 * time.Hour

func browserID(hash, userID string) string { return userID + "." + hash }

// remember notes that a user signs in with a browser, and reports whether it was known already.
func remember(ctx context.Context, tx *docstore.Tx, in SignIn) (bool, error) {
	id := browserID(in.BrowserHash, in.UserID)
	found, err := browsers.LoadMany(ctx, tx, []string{id})
	if err != nil {
		return false, err
	}
	b := &browser{Meta: docstore.Meta{ID: id}, UserID: in.UserID}
	if len(found) > 0 {
		b = found[0]
	}
	b.TimeExpires = tx.Now.Add(known)
	if proof.Meets(proof.Class(in.Proofs), proof.TwoFactors) {
		b.TimeTwoFactors = proof.Since(in.Proofs)
	}
	if len(found) == 0 {
		_, err = browsers.Insert(ctx, tx, b)
		return false, err
	}
	_, err = browsers.Replace(ctx, tx, b)
	return true, err
}

// trusted is for how long a browser is trusted after a sign-in with two factors.
const trusted = 90 * 24 * time.Hour

// Trusts reports whether a user has signed in with a browser with two factors within the last 90 days.
func (s *Sessions) Trusts(ctx context.Context, hash, userID string) (bool, error) {
	doc, err := browsers.Find(ctx, s.Store, browserID(hash, userID))
	if err != nil {
		return false, apperr.Ignore(err, apperr.NotFound)
	}
	b, err := doc.Value()
	return err == nil && s.Store.Now().Before(b.TimeTwoFactors.Add(trusted)), err
}

// maxTrusted is how many browsers of a user stop being trusted at once.
const maxTrusted = 500

// Distrust stops trusting the browsers in which a user has signed in with two factors before a time.
func (s *Sessions) Distrust(ctx context.Context, userID string, before clock.Time) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		found, err := browsers.LoadWhere(ctx, tx, docstore.Eq(byUser, docstore.Text(userID)), "", maxTrusted)
		if err != nil {
			return err
		}
		for _, b := range found {
			if b.TimeTwoFactors.IsZero() || !b.TimeTwoFactors.Before(before) {
				continue
			}
			b.TimeTwoFactors = clock.Time{}
			if _, err := browsers.Replace(ctx, tx, b); err != nil {
				return err
			}
		}
		return nil
	})
}

// usersOfBrowser is to how many users a browser can be known. One that more people share, such as a library's, is known
// to these.
const usersOfBrowser = 50

// KnownTo returns the users who have signed in with a browser.
func (s *Sessions) KnownTo(ctx context.Context, hash string) ([]string, error) {
	page, err := browsers.Page(ctx, s.Store, docstore.Query{
		Filter: docstore.Eq(byHash, docstore.Text(hash)), Limit: usersOfBrowser,
	})
	if err != nil {
		return nil, err
	}
	users := make([]string, len(page.Docs))
	for i, doc := range page.Docs {
		users[i], _, _ = strings.Cut(doc.ID, ".")
	}
	return users, nil
}

// knownBrowser is the member of data that tells whether the person has used the browser before.
const knownBrowser = "known_browser"

// DueBrowsers lists the browsers to forget.
var DueBrowsers = browsers.Due

// ForgetBrowser forgets a browser that was not used for long.
func (s *Sessions) ForgetBrowser(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		b, err := browsers.Load(ctx, tx, id)
		if err != nil {
			return apperr.Ignore(err, apperr.NotFound)
		}
		_, err = browsers.Delete(ctx, tx, b)
		return err
	})
}

// ForgetUser forgets the browsers of a user.
func ForgetUser(ctx context.Context, tx *docstore.Tx, userID string) error {
	return browsers.DeleteWhere(ctx, tx, docstore.Eq(byUser, docstore.Text(userID)), nil)
}
