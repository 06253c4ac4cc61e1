package session

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// browser is a browser in which a user has signed in. Its id is both's.
type browser struct {
	docstore.Meta
	UserID      string     `json:"user_id"`
	TimeExpires clock.Time `json:"time_expires"`
	// Trusted is set once the user has signed in with two factors.
	Trusted *trusted `json:"trusted,omitempty"`
}

// trusted says that a user has signed in with a browser with two factors.
type trusted struct {
	Time    clock.Time `json:"time"`    // of the sign-in
	Hash    string     `json:"hash"`    // of the cookie that the browser got then
	Factors []string   `json:"factors"` // the credentials that were shown
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

// newTrust makes the cookie by which a browser is trusted after a sign-in; empty if that was not by two factors.
func newTrust(proofs []proof.Proof) string {
	ours := slices.ContainsFunc(proofs, func(p proof.Proof) bool { return proof.IsFactor(p.Method) })
	if !ours || !proof.Meets(proof.Class(proofs), proof.TwoFactors) {
		return ""
	}
	return secret.Token(trustBytes)
}

const trustBytes = 32

// remember notes that a user signs in with a browser, and reports whether it was known already. trust is newTrust.
func remember(ctx context.Context, tx *docstore.Tx, in SignIn, trust string) (bool, error) {
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
	if trust != "" {
		b.Trusted = &trusted{Time: proof.Since(in.Proofs), Hash: Hash(trust), Factors: []string{}}
		for _, p := range in.Proofs {
			if proof.IsFactor(p.Method) {
				b.Trusted.Factors = append(b.Trusted.Factors, p.Credential)
			}
		}
	}
	if len(found) == 0 {
		_, err = browsers.Insert(ctx, tx, b)
		return false, err
	}
	_, err = browsers.Replace(ctx, tx, b)
	return true, err
}

// TrustedFor is for how long a browser is trusted after a sign-in with two factors.
const TrustedFor = 90 * 24 * time.Hour

// Trust returns the credentials of the factors by which a user has signed in with a browser within the last 90 days;
// none if the browser is not trusted. cookie is the one that it got then: whoever has seen another cookie of the
// browser before is not trusted.
func (s *Sessions) Trust(ctx context.Context, hash, userID, cookie string) ([]string, error) {
	doc, err := browsers.Find(ctx, s.Store, browserID(hash, userID))
	if err != nil {
		return nil, apperr.Ignore(err, apperr.NotFound)
	}
	b, err := doc.Value()
	if err != nil || b.Trusted == nil || !secret.Equal(b.Trusted.Hash, Hash(cookie)) ||
		!s.Store.Now().Before(b.Trusted.Time.Add(TrustedFor)) {
		return nil, err
	}
	return b.Trusted.Factors, nil
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
