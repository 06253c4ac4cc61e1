// Package factor is the domain of second factors: what people have set up beside a password to show who they are, and
// the recovery codes that take the place of a factor that is lost.
//
// A factor is a record without its secret. The secrets of a user are one document, sealed, which no answer and no event
// has: so a code is checked and used up in one transaction, and a user's factors are found by one id.
package factor

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/sign-in/internal/message"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// Factor is a second factor of a user, or the user's recovery codes. It has the same JSON form in the API, in events
// and in the store.
type Factor struct {
	docstore.Meta
	UserID    string     `json:"user_id" readOnly:"true" doc:"Whose it is" example:"1048577"`
	Type      string     `json:"type" readOnly:"true" enum:"otp,webauthn,recovery_code" doc:"otp: an authenticator app; webauthn: a passkey; recovery_code: all the user's recovery codes, any of which takes the place of a factor that is lost" example:"otp"`
	Name      string     `json:"name" readOnly:"true" doc:"As the person calls it; may be empty" example:"Work phone"`
	KeyID     string     `json:"key_id" readOnly:"true" doc:"Of a passkey: its credential id (WebAuthn §5.1), in base64url. Empty for other types" example:""`
	Site      string     `json:"site" readOnly:"true" doc:"Of a passkey: the domain that it works for (its relying party). Empty for other types" example:""`
	CodesLeft int        `json:"codes_left" readOnly:"true" doc:"How many recovery codes are not used yet; 0 for other types" example:"0"`
	TimeUsed  clock.Time `json:"time_used" readOnly:"true" nullable:"true" doc:"When it was last shown; null: never since it was set up"`
	Address   string     `json:"address" readOnly:"true" doc:"Where it was last shown or set up: the IP address" example:"192.0.2.1"`
	Browser   string     `json:"browser" readOnly:"true" doc:"The same: the User-Agent" example:"Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0"`
}

const (
	byUser    = "user_id"
	byType    = "type"
	byKey     = "key"
	byCreated = "time_created"
)

var factors = outbox.Define("factor", "/factors", docstore.Schema[Factor]{
	Name: "factors", Noun: "factor", Sortable: []string{byCreated},
	Indexes: []docstore.Index[Factor]{
		docstore.ByText(byUser, func(f *Factor) string { return f.UserID }),
		docstore.ByText(byType, func(f *Factor) string { return f.Type }),
		docstore.Unique(docstore.ByList(byKey, func(f *Factor) []string {
			if f.KeyID == "" {
				return nil
			}
			return []string{f.KeyID}
		}), "key_id"),
		docstore.ByNumber(byCreated, func(f *Factor) docstore.Value { return docstore.Moment(f.TimeCreated) }),
	},
})

// Set are the secrets of a user's factors. It has the user's id.
type Set struct {
	docstore.Meta
	Secrets []sealed `json:"secrets"` // in the order of their set-up
	// Guesses counts the wrong codes of apps, and OfKnown those from browsers in which the user has signed in before,
	// once Guesses blocks them: whoever knows the password cannot keep the person out.
	Guesses guesses `json:"guesses"`
	OfKnown guesses `json:"of_known"`
}

// guesses counts wrong codes since the last right one: after maxWrong of them none is looked at until Until, the longer
// the more Blocks there were.
type guesses struct {
	Wrong  int        `json:"wrong"`
	Blocks int        `json:"blocks"`
	Until  clock.Time `json:"until"`
}

func (g *guesses) count(now clock.Time) {
	if g.Wrong++; g.Wrong >= maxWrong {
		g.Until = now.Add(min(blocked<<min(g.Blocks, maxDoubled), maxBlocked))
		g.Wrong, g.Blocks = 0, g.Blocks+1
	}
}

// sealed is the secret of a factor.
type sealed struct {
	ID      string     `json:"id"` // the factor's
	Type    string     `json:"type"`
	TimeSet clock.Time `json:"time_set"`
	// Sealed is the key of an app, the public key of a passkey (webauthn.Credential, JSON), or a JSON list of the
	// recovery codes that are not used.
	Sealed string `json:"sealed"`
	// Step is the time step of the last right code of an app, and of a passkey the time of the last ceremony that it
	// does not remember, in milliseconds. None up to it serves.
	Step  int64  `json:"step,omitempty"`
	Used  []used `json:"used,omitempty"` // of a passkey: the ceremonies that it remembers
	Site  string `json:"site,omitempty"` // of a passkey
	Codes        // of an app
	// Spent is how many recovery codes were used.
	Spent int `json:"spent,omitempty"`
}

var sets = docstore.Define(docstore.Schema[Set]{Name: "factor_secrets", Noun: "factor", NoIfMatch: true})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return []*docstore.Def{factors.Def(), sets.Def(), postponements.Def()}
}

const (
	maxWrong = 5
	// blocked is how long the first block lasts. Each further one is twice as long, up to maxBlocked.
	blocked    = 15 * time.Minute
	maxBlocked = 24 * time.Hour
	maxDoubled = 10
	// MaxFactors is how many factors of a type a user can have.
	MaxFactors = 10
	// RecoveryCodes is how many are made at once, and codeSigns their length: 45 bits.
	RecoveryCodes = 10
	codeSigns     = 10
	maxName       = 64 // characters
	maxCode       = 64 // bytes
	maxAgent      = 512
)

// Doc is a factor as read or written.
type Doc = docstore.Doc[Factor]

// Factors are the use cases. Both members are required.
type Factors struct {
	Store *docstore.Store
	Keys  *secret.Keyring
}

// From is where a person shows or sets up a factor.
type From struct {
	Address string
	Browser string // its User-Agent
	Known   bool   // the user has signed in with the browser before
}

// Of returns the secrets of a user's factors; an empty set if there are none.
func (s *Factors) Of(ctx context.Context, userID string) (*Set, error) {
	doc, err := sets.Find(ctx, s.Store, userID)
	if apperr.IsNotFound(err) {
		return &Set{}, nil
	}
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// Methods are the methods that the user can show at a site; recovery codes are the last.
func (s *Set) Methods(at Site) (types []string) {
	for _, one := range s.Secrets {
		elsewhere := one.Type == proof.Passkey && (one.Site != at.ID || at.ID == "")
		if !slices.Contains(types, one.Type) && !elsewhere && one.Spent < RecoveryCodes {
			types = append(types, one.Type)
		}
	}
	if i := slices.Index(types, proof.RecoveryCode); i >= 0 {
		types = append(slices.Delete(types, i, i+1), proof.RecoveryCode)
	}
	return types
}

// Types are the types of all factors, wherever they can be shown.
func (s *Set) Types() []string {
	types := make([]string, len(s.Secrets))
	for i, one := range s.Secrets {
		types[i] = one.Type
	}
	return types
}

// Lost reports whether the user has factors and can show none of them at a site.
func (s *Set) Lost(at Site) bool { return len(s.Secrets) > 0 && len(s.Methods(at)) == 0 }

// Any reports whether the user has a factor.
func (s *Set) Any() bool { return len(s.Secrets) > 0 }

func (s *Set) has(method string) bool {
	return slices.ContainsFunc(s.Secrets, func(one sealed) bool { return one.Type == method })
}

// Hold makes a transaction depend on the factors behind a user's proofs, and reports whether all are still there. A
// deletion at the same time makes one of the two transactions run again.
func Hold(ctx context.Context, tx *docstore.Tx, userID string, proofs []proof.Proof) (bool, error) {
	set, err := load(ctx, tx, userID)
	if err != nil || !set.haveAll(proofs) {
		return false, err
	}
	_, err = sets.Revise(ctx, tx, set)
	return err == nil, err
}

// Existing returns the proofs without those whose factors are not there any more.
func (s *Set) Existing(proofs []proof.Proof) []proof.Proof {
	return slices.DeleteFunc(slices.Clone(proofs), func(p proof.Proof) bool {
		return proof.IsFactor(p.Method) && !slices.ContainsFunc(s.Secrets, func(one sealed) bool {
			return proof.OfFactor(one.ID) == p.Credential
		})
	})
}

// HaveAll reports whether all factors with some credentials are there.
func (s *Set) HaveAll(credentials []string) bool {
	return !slices.ContainsFunc(credentials, func(c string) bool {
		return !slices.ContainsFunc(s.Secrets, func(one sealed) bool { return proof.OfFactor(one.ID) == c })
	})
}

func (s *Set) haveAll(proofs []proof.Proof) bool { return len(s.Existing(proofs)) == len(proofs) }

// AllExist reports whether the factors behind a user's proofs are still there.
func (s *Factors) AllExist(ctx context.Context, userID string, proofs []proof.Proof) (bool, error) {
	if !slices.ContainsFunc(proofs, func(p proof.Proof) bool { return proof.IsFactor(p.Method) }) {
		return true, nil
	}
	set, err := s.Of(ctx, userID)
	return err == nil && set.haveAll(proofs), err
}

// load returns the secrets of a user's factors; an empty set if there are none.
func load(ctx context.Context, tx *docstore.Tx, userID string) (*Set, error) {
	found, err := sets.LoadMany(ctx, tx, []string{userID})
	if err != nil || len(found) == 0 {
		return &Set{}, err
	}
	return found[0], nil
}

// Tried is what became of a code.
type Tried struct {
	Proof *proof.Proof // nil: the code is wrong
	// Blocked says that codes of apps are not looked at for now, because several were wrong.
	Blocked bool
	UserID  string // whose passkey it is
}

// Try checks a code of a user's app, or a recovery code, and uses it up: no code serves twice. Codes of apps that are
// wrong are counted: after five of them none is looked at for 15 minutes, then for 30, and so on up to a day. Recovery
// codes are looked at always.
func (s *Factors) Try(ctx context.Context, userID, code string, from From) (Tried, error) {
	digits := onlyDigits(code)
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Tried, error) {
		set, err := load(ctx, tx, userID)
		if err != nil || len(set.Secrets) == 0 {
			return Tried{}, err
		}
		if digits == "" {
			return s.tryRecoveryCode(ctx, tx, set, code, from)
		}
		count := &set.Guesses
		if from.Known {
			count = &set.OfKnown
		}
		if tx.Now.Before(count.Until) {
			return Tried{Blocked: true}, nil
		}
		for i := range set.Secrets {
			one := &set.Secrets[i]
			if one.Type != proof.App {
				continue
			}
			key, err := s.open(ctx, userID, one)
			if err != nil {
				return Tried{}, err
			}
			step, ok := AppKey{string(key), one.Codes}.stepOf(digits, tx.Now, one.Step)
			if !ok {
				continue
			}
			one.Step, *count = step, guesses{}
			p := proof.ByApp(tx.Now, one.ID, one.TimeSet)
			return Tried{Proof: &p}, s.used(ctx, tx, set, one.ID, from)
		}
		count.count(tx.Now)
		_, err = sets.Replace(ctx, tx, set)
		return Tried{Blocked: tx.Now.Before(count.Until)}, err
	})
}

// TryApp is Try for codes of apps alone.
func (s *Factors) TryApp(ctx context.Context, userID, code string, from From) (Tried, error) {
	if onlyDigits(code) == "" {
		return Tried{}, nil
	}
	return s.Try(ctx, userID, code, from)
}

// onlyDigits is a code of an app, however a person has written it; "" for anything else.
func onlyDigits(code string) string {
	if len(code) > maxCode {
		return ""
	}
	code = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '-' {
			return -1
		}
		return r
	}, norm.NFKC.String(code))
	isOther := func(r rune) bool { return r < '0' || r > '9' }
	if len(code) < appDigits || len(code) > maxDigits || strings.ContainsFunc(code, isOther) {
		return ""
	}
	return code
}

func (s *Factors) tryRecoveryCode(ctx context.Context, tx *docstore.Tx, set *Set, code string, from From) (Tried,
	error,
) {
	i := slices.IndexFunc(set.Secrets, func(one sealed) bool { return one.Type == proof.RecoveryCode })
	if i < 0 || len(code) > maxCode {
		return Tried{}, nil
	}
	one := &set.Secrets[i]
	text, err := s.open(ctx, set.ID, one)
	if err != nil {
		return Tried{}, err
	}
	var left []string
	if err := json.Unmarshal(text, &left); err != nil {
		return Tried{}, err
	}
	asked := message.ReadCode(code)
	before := len(left)
	left = slices.DeleteFunc(left, func(right string) bool { return secret.Equal(right, asked) })
	if len(left) == before {
		return Tried{}, nil
	}
	one.Spent = RecoveryCodes - len(left)
	if one.Sealed, err = s.seal(ctx, set.ID, one, left); err != nil {
		return Tried{}, err
	}
	p := proof.ByRecoveryCode(tx.Now, one.ID, one.TimeSet)
	return Tried{Proof: &p}, s.used(ctx, tx, set, one.ID, from)
}

// used stores a set, and notes that one of its factors was shown. Of recovery codes, which are few, an event tells.
func (s *Factors) used(ctx context.Context, tx *docstore.Tx, set *Set, id string, from From) error {
	if _, err := sets.Replace(ctx, tx, set); err != nil {
		return err
	}
	f, err := factors.Load(ctx, tx, id)
	if err != nil {
		return err
	}
	f.TimeUsed = tx.Now
	f.from(from)
	if f.Type == proof.RecoveryCode {
		f.CodesLeft--
		_, err = factors.As("used").Revise(ctx, tx, f)
		return err
	}
	_, err = factors.Collection.Revise(ctx, tx, f)
	return err
}

func (f *Factor) from(from From) {
	f.Address = from.Address
	f.Browser = strings.ToValidUTF8(from.Browser[:min(len(from.Browser), maxAgent)], "")
}

// Name is a name for a factor as it is stored: without signs that cannot be seen, up to 64 characters.
func Name(text string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
	if all := []rune(text); len(all) > maxName {
		text = string(all[:maxName])
	}
	return text
}

func (s *Factors) boundTo(ctx context.Context, userID, factorID string) []byte {
	return []byte("factor " + request.Tenant(ctx) + " " + userID + " " + factorID)
}

func (s *Factors) open(ctx context.Context, userID string, one *sealed) ([]byte, error) {
	return s.Keys.Open(one.Sealed, s.boundTo(ctx, userID, one.ID))
}

func (s *Factors) seal(ctx context.Context, userID string, one *sealed, codes []string) (string, error) {
	text, err := json.Marshal(codes)
	return s.Keys.Seal(text, s.boundTo(ctx, userID, one.ID)), err
}

// Filter selects factors by equal members; empty members are ignored.
type Filter struct {
	docstore.Paging
	UserID string `query:"user_id" maxLength:"64" doc:"Those of this user" example:"1048577"`
	Type   string `query:"type" enum:"otp,webauthn,recovery_code" doc:"Those of this type" example:"otp"`
}

// List returns a page of factors. The error is apperr.InvalidParameters (paging).
func (s *Factors) List(ctx context.Context, f Filter) (docstore.Page[Factor], error) {
	where := docstore.And(docstore.EqOrAll(byUser, f.UserID), docstore.EqOrAll(byType, f.Type))
	return factors.List(ctx, s.Store, where, f.Paging)
}

// Get returns a factor. The error is apperr.NotFound.
func (s *Factors) Get(ctx context.Context, id string) (Doc, error) {
	return factors.Find(ctx, s.Store, id)
}

// OfUser returns all factors of a user, in the order of their set-up.
func (s *Factors) OfUser(ctx context.Context, userID string) ([]*Factor, error) {
	page, err := factors.Page(ctx, s.Store, docstore.Query{
		Filter: docstore.Eq(byUser, docstore.Text(userID)), Sort: []docstore.Order{{Index: byCreated}},
		Limit: 2*MaxFactors + 1,
	})
	if err != nil {
		return nil, err
	}
	all := make([]*Factor, len(page.Docs))
	for i := range page.Docs {
		if all[i], err = page.Docs[i].Value(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
