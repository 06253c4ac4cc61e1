package oidc

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

const (
	// grace is how long a refresh token gives the present one after it was used: its answer may have been lost, or
	// several tabs refresh at once, one of them late.
	grace = 30 * time.Second
	// maxRotations bounds the rotations that a family remembers.
	maxRotations = 20
	// offlineIdle and offlineMax are how long refresh tokens with offline_access are valid, unused and in all.
	offlineIdle = 30 * 24 * time.Hour
	offlineMax  = 90 * 24 * time.Hour
	// noted is how exactly the last use of a token that does not rotate is known. It saves writes.
	noted = time.Hour
)

// family is all tokens that one grant has given: the access tokens name it, and the refresh tokens are its generations.
// It is deleted when it ends, and they with it.
type family struct {
	docstore.Meta
	Granted
	// Generation is that of the present refresh token.
	Generation  int64      `json:"generation"`
	TimeRotated clock.Time `json:"time_rotated"` // when it became the present one
	// Rotations are when the last generations became the present one, within grace of TimeRotated, which is the last.
	Rotations []clock.Time `json:"rotations,omitempty"`
	TimeUsed  clock.Time   `json:"time_used"`
	TimeEnd   clock.Time   `json:"time_end"` // at the latest
	// GrantID is the record of a family that goes on after the session; "" for others.
	GrantID string `json:"grant_id,omitempty"`

	used string // see redeem
}

const (
	bySession = "session_id"
	// byConnection has the connections through which the person has signed in, of families that go on after the
	// session.
	byConnection = "connection_id"
	byUser       = "user_id"
	byApp        = "app_id"
)

var families = docstore.Define(docstore.Schema[family]{
	Name: "oidc_families", Noun: "token family",
	Indexes: []docstore.Index[family]{
		docstore.ByText(bySession, func(f *family) string {
			if f.offline() {
				return ""
			}
			return f.SessionID
		}),
		docstore.ByList(byConnection, func(f *family) []string {
			if !f.offline() {
				return nil
			}
			return proof.Connections(f.Proofs)
		}),
		docstore.ByText(byUser, func(f *family) string { return f.UserID }),
		docstore.ByText(byApp, func(f *family) string { return f.AppID }),
	},
	Due: func(f *family) clock.Time { return f.due() },
})

// newFamily makes a family that is not stored yet.
func (p *Provider) newFamily(ctx context.Context, g Granted) (f *family, err error) {
	f = &family{Meta: docstore.Meta{ID: strings.ToLower(rand.Text())}, Granted: g}
	if f.offline() {
		f.GrantID, err = p.Store.NewID(ctx)
	}
	return f, err
}

// offline reports whether it lives on without the session.
func (f *family) offline() bool { return f.has(offlineAccess) }

// ends is when a family that begins now ends at the latest.
func (f *family) ends(now clock.Time) clock.Time {
	if f.offline() {
		return now.Add(offlineMax)
	}
	return f.SessionEnds
}

// due is when it ends if it is not used any more.
func (f *family) due() clock.Time {
	if idle := f.TimeUsed.Add(offlineIdle); f.offline() && idle.Before(f.TimeEnd) {
		return idle
	}
	return f.TimeEnd
}

// session is the session that it depends on; "" for none.
func (f *family) session() string {
	if f.offline() {
		return ""
	}
	return f.SessionID
}

// refreshToken makes the refresh token of a generation. It is not stored: whoever reads the store cannot make it
// without the seed, and every replica can make it again.
func (p *Provider) refreshToken(ctx context.Context, id string, generation int64) string {
	body := id + "." + strconv.FormatInt(generation, 10)
	mac := hmac.New(sha256.New, p.Seed)
	mac.Write([]byte("refresh token\x00" + request.Tenant(ctx) + "\x00" + body))
	return body + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// readRefreshToken returns the family and the generation of one of the tenant's refresh tokens.
func (p *Provider) readRefreshToken(ctx context.Context, text string) (id string, generation int64, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || len(text) > 200 {
		return "", 0, false
	}
	generation, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return "", 0, false
	}
	return parts[0], generation, hmac.Equal([]byte(text), []byte(p.refreshToken(ctx, parts[0], generation)))
}

// use says what a refresh token of a generation is good for now.
type use int

const (
	isCurrent use = iota
	isFormer      // it was used a moment ago: the present token is given again
	isReused      // somebody else has used it: it ends the family
)

func (f *family) useOf(generation int64, now clock.Time) use {
	behind := f.Generation - generation
	switch {
	case behind == 0:
		return isCurrent
	case behind == 1 && now.Before(f.TimeRotated.Add(grace)):
		return isFormer
	case behind < 1 || behind > int64(len(f.Rotations)):
		return isReused
	case now.Before(f.Rotations[int64(len(f.Rotations))-behind].Add(grace)):
		return isFormer
	}
	return isReused
}

// rotate makes the next generation the present one.
func (f *family) rotate(now clock.Time) {
	f.Generation, f.TimeRotated = f.Generation+1, now
	f.Rotations = slices.DeleteFunc(append(f.Rotations, now), func(t clock.Time) bool {
		return !now.Before(t.Add(grace))
	})
	f.Rotations = f.Rotations[max(0, len(f.Rotations)-maxRotations):]
}

// byRefreshToken is the grant refresh_token (RFC 6749 §6).
func (p *Provider) byRefreshToken(ctx context.Context, issuer string, client questions.Client, r TokenRequest) (
	TokenAnswer, error,
) {
	id, generation, ok := p.readRefreshToken(ctx, r.Form.Get("refresh_token"))
	if !ok {
		return TokenAnswer{}, errGrant
	}
	f, err := p.family(ctx, id)
	if err != nil {
		return TokenAnswer{}, err
	}
	switch now := p.Store.Now(); {
	case f == nil || f.ClientID != client.ClientID || !now.Before(f.due()):
		return TokenAnswer{}, errGrant
	case f.useOf(generation, now) == isReused:
		return TokenAnswer{}, p.usedAgain(ctx, r, id)
	}
	session := f.session() // before the request leaves offline_access out
	if err := f.narrow(r.Form); err != nil {
		return TokenAnswer{}, err
	}
	use, err := p.entitle(ctx, client, &f.Granted, session, r.Form)
	if err != nil {
		return TokenAnswer{}, err
	}
	rotated, err := p.rotate(ctx, id, generation, client.Category != questions.StandardWeb)
	if err != nil {
		return TokenAnswer{}, err
	}
	if rotated == nil {
		return TokenAnswer{}, p.usedAgain(ctx, r, id)
	}
	f.Generation = rotated.Generation
	return p.issue(ctx, issuer, client, f, use, "")
}

// narrow restricts a family, as it was read, to the scopes that a request for a token names (RFC 6749 §6).
func (f *family) narrow(form url.Values) error {
	asked := words(form.Get("scope"))
	if len(asked) == 0 {
		return nil
	}
	for _, scope := range asked {
		if !f.has(scope) {
			return apperr.OAuth(apperr.InvalidParameters, "invalid_scope", "scope goes beyond what was granted")
		}
	}
	f.Scope = asked
	return nil
}

// family returns a family that has not ended; nil if there is none.
func (p *Provider) family(ctx context.Context, id string) (*family, error) {
	doc, err := families.Find(ctx, p.Store, id)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := doc.Value()
	if err != nil || !p.Store.Now().Before(f.due()) {
		return nil, err
	}
	return f, nil
}

// rotate uses a refresh token of a generation: its successor becomes the present one. It returns nil if the token has
// been reused.
func (p *Provider) rotate(ctx context.Context, id string, generation int64, rotates bool) (*family, error) {
	return docstore.Write(docstore.WithoutCommitHook(ctx), p.Store, func(tx *docstore.Tx) (*family, error) {
		f, err := families.Load(ctx, tx, id)
		if isNotFound(err) {
			return nil, errGrant
		}
		if err != nil {
			return nil, err
		}
		switch f.useOf(generation, tx.Now) {
		case isReused:
			return nil, nil
		case isFormer:
			return f, nil
		case isCurrent:
		}
		if !rotates && tx.Now.Before(f.TimeUsed.Add(noted)) {
			return f, nil
		}
		before := f.TimeUsed
		if f.TimeUsed = tx.Now; rotates {
			f.rotate(tx.Now)
		}
		if _, err = families.Touch(ctx, tx, f); err != nil {
			return nil, err
		}
		return f, noteUse(ctx, tx, f, before)
	})
}

// reuse is the record of the event token_family.reused.
type reuse struct {
	docstore.Meta
	AppID     string   `json:"app_id"`
	ClientID  string   `json:"client_id"`
	UserID    string   `json:"user_id"`
	SessionID string   `json:"session_id"`
	Scope     []string `json:"scope"`
}

var familyEvents = outbox.Kind{Entity: "token_family", Source: "/token-families"}

// endReused ends a family, one of whose tokens was used twice, and tells it.
func (p *Provider) endReused(ctx context.Context, r TokenRequest, id string) error {
	return docstore.Do(docstore.Guarding(ctx), p.Store, func(tx *docstore.Tx) error {
		f, err := families.Load(ctx, tx, id)
		if isNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		doc, err := families.Delete(ctx, tx, f)
		if err != nil {
			return err
		}
		if err := dropGrants(ctx, tx, []*family{f}, grantReused); err != nil {
			return err
		}
		record, err := json.Marshal(reuse{
			Meta: f.Meta, AppID: f.AppID, ClientID: f.ClientID, UserID: f.UserID, SessionID: f.SessionID,
			Scope: append([]string{}, f.Scope...),
		})
		if err != nil {
			return err
		}
		return outbox.TellAs(ctx, tx, familyEvents, "reused", &doc, record,
			map[string]any{"address": r.Address, "browser": r.Browser})
	})
}

// makeRoom ends the least used tenth of a user's families before a new one if there are as many as may be: those of the
// same application, so that one which asks for tokens in a loop ends no others, unless it has none.
func (p *Provider) makeRoom(ctx context.Context, fresh *family) error {
	most := p.MaxFamilies
	ofUser := docstore.Eq(byUser, docstore.Text(fresh.UserID))
	total, err := families.CountTo(ctx, p.Store, ofUser, int64(most))
	if err != nil || total.N < int64(most) {
		return err
	}
	page, err := families.Page(ctx, p.Store, docstore.Query{Filter: ofUser, Limit: 2 * most})
	if err != nil {
		return err
	}
	all := make([]*family, len(page.Docs))
	for i := range page.Docs {
		if all[i], err = page.Docs[i].Value(); err != nil {
			return err
		}
	}
	own := func(f *family) bool { return f.AppID == fresh.AppID }
	if slices.ContainsFunc(all, own) {
		all = slices.DeleteFunc(all, func(f *family) bool { return !own(f) })
	}
	slices.SortFunc(all, func(a, b *family) int { return cmp.Compare(a.TimeUsed.Millis(), b.TimeUsed.Millis()) })
	ids := make([]string, min(len(all), most/10+1))
	for i := range ids {
		ids[i] = all[i].ID
	}
	return endFamilies(docstore.WithoutCommitHook(ctx), p.Store, ids, grantReplaced)
}

// revokeFamily ends a family for its application.
func (p *Provider) revokeFamily(ctx context.Context, id string) error {
	return endFamilies(docstore.WithoutCommitHook(ctx), p.Store, []string{id}, grantRevoked)
}

// EndSession ends, in the transaction that ends a session, all that depends on it: its codes that were not used yet
// lead to nothing, because the session is gone.
func EndSession(ctx context.Context, tx *docstore.Tx, sessionID string) error {
	if sessionID == "" { // families without a session are found under it
		return nil
	}
	return families.DeleteWhere(ctx, tx, docstore.Eq(bySession, docstore.Text(sessionID)), nil)
}

// EndUser ends all token families of a user who is disabled, deleted, resigned or locked by a caller, those with
// offline_access too.
func EndUser(ctx context.Context, s *docstore.Store, userID string) error {
	return endOfUser(ctx, s, userID, grantUser, all)
}

// EndConsent ends the token families of a user for an application to which the user does not agree any more.
func EndConsent(ctx context.Context, s *docstore.Store, userID, appID string) error {
	return endOfUser(ctx, s, userID, grantConsent, func(f *family) bool { return f.AppID == appID })
}

// EndBefore ends the user's token families whose sign-in rests on a credential that was set before a time.
func EndBefore(ctx context.Context, s *docstore.Store, userID, credential string, set clock.Time) error {
	reason := grantFactor
	switch {
	case credential == proof.Password:
		reason = grantPassword
	case proof.IsLink(credential):
		reason = grantLink
	}
	return endOfUser(ctx, s, userID, reason, func(f *family) bool { return f.restsOn(credential, set) })
}

// EndConnection ends the token families of people who have signed in through a connection that is disabled or deleted.
func EndConnection(ctx context.Context, s *docstore.Store, connectionID string) error {
	_, err := endFamiliesWhere(ctx, s, ofConnection(connectionID), grantLink, all)
	return err
}

// EndGrantsThrough is EndConnection for a caller of the API. It returns how many there were.
func EndGrantsThrough(ctx context.Context, s *docstore.Store, connectionID string) (int64, error) {
	if docstore.IsDryRun(ctx) {
		return families.Count(ctx, s, ofConnection(connectionID))
	}
	return endFamiliesWhere(ctx, s, ofConnection(connectionID), grantByAPI, all)
}

// EndApplication ends all token families of an application that is disabled or deleted.
func (p *Provider) EndApplication(ctx context.Context, appID string) error {
	_, err := endFamiliesWhere(ctx, p.Store, docstore.Eq(byApp, docstore.Text(appID)), grantApplication, all)
	return err
}

func ofConnection(id string) docstore.Filter { return docstore.Eq(byConnection, docstore.Text(id)) }

func all(*family) bool { return true }

// endOfUser ends token families of a user.
func endOfUser(
	ctx context.Context, s *docstore.Store, userID, reason string, which func(*family) bool,
) error {
	_, err := endFamiliesWhere(ctx, s, docstore.Eq(byUser, docstore.Text(userID)), reason, which)
	return err
}

// endFamiliesWhere ends token families, some at a time, and returns how many.
func endFamiliesWhere(ctx context.Context, s *docstore.Store, where docstore.Filter, reason string,
	which func(*family) bool,
) (ended int64, err error) {
	for after := ""; ; {
		page, err := families.Page(ctx, s, docstore.Query{Filter: where, Limit: endAtOnce, After: after})
		if err != nil {
			return ended, err
		}
		var ids []string
		for i := range page.Docs {
			f, err := page.Docs[i].Value()
			if err != nil {
				return ended, err
			}
			if which(f) {
				ids = append(ids, f.ID)
			}
		}
		if len(ids) > 0 {
			if err := endFamilies(ctx, s, ids, reason); err != nil {
				return ended, err
			}
			ended += int64(len(ids))
		}
		if page.Next == "" {
			return ended, nil
		}
		after = page.Next
	}
}

const endAtOnce = 500

func isNotFound(err error) bool { return apperr.IsNotFound(err) }
