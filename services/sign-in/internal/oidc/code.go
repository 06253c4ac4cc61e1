package oidc

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

const (
	codeTTL = time.Minute
	// usedKept is how long a code is known after it has expired, so that a second use is noticed.
	usedKept = time.Hour
)

// Granted is what an application may know and do for a person. Codes and token families have it.
type Granted struct {
	AppID      string               `json:"app_id"`
	ClientID   string               `json:"client_id"`
	UserID     string               `json:"user_id"`
	SessionID  string               `json:"session_id"`
	Scope      []string             `json:"scope,omitempty"`
	Resources  []string             `json:"resources,omitempty"`
	Nonce      string               `json:"nonce,omitempty"`
	Claims     *wanted              `json:"claims,omitempty"`
	SubAccount *protocol.SubAccount `json:"sub_account,omitempty"`
	ACR        string               `json:"acr"`
	AMR        []string             `json:"amr,omitempty"`
	AuthTime   clock.Time           `json:"auth_time"`
	// Proofs are what the sign-in rests on; null in what an earlier version has stored.
	Proofs []proof.Proof `json:"proofs,omitempty"`
	// TimePasswordChanged is when the password was set that the person signed in with. Replicas of an earlier version
	// read it.
	TimePasswordChanged clock.Time `json:"time_password_changed,omitzero"`
	// SessionEnds is when the session ends at the latest.
	SessionEnds clock.Time `json:"session_ends"`
	// Consents are the scopes to which the person must have agreed still.
	Consents []string `json:"consents,omitempty"`
	// Consent is the id of that consent; "" in what an earlier version has stored.
	Consent string `json:"consent,omitempty"`
}

func (g *Granted) has(scope string) bool { return slices.Contains(g.Scope, scope) }

// code is an authorization code (RFC 6749 §4.1.2). Its id is the code's SHA-256.
type code struct {
	docstore.Meta
	Granted
	RedirectURI string     `json:"redirect_uri"`
	Challenge   string     `json:"code_challenge,omitempty"`
	Expires     clock.Time `json:"expires"`
	// Family is what it was used for; "" until then.
	Family string `json:"family,omitempty"`
}

var codes = docstore.Define(docstore.Schema[code]{
	Name: "oidc_codes", Noun: "authorization code",
	Due: func(c *code) clock.Time { return c.Expires.Add(usedKept) },
})

// Grant answers a request for a person with a code. The error is protocol.ErrUnknown if the application has been
// disabled meanwhile, *protocol.PageError if it has lost the address, or apperr.Unavailable.
func (p *Provider) Grant(
	ctx context.Context, issuer string, r protocol.Request, person protocol.Person,
) (protocol.Answer, error) {
	var a Authorization
	if err := json.Unmarshal(r.Message, &a); err != nil {
		return protocol.Answer{}, err
	}
	client, err := p.client(ctx, questions.ClientName{AppID: r.AppID})
	if err != nil {
		return protocol.Answer{}, err
	}
	granted := a.granted(r, person)
	if len(r.Consents) > 0 {
		granted.Consent, err = p.Consent(ctx, person.UserID, r.AppID, r.Consents)
		if err != nil {
			return protocol.Answer{}, err
		}
		if granted.Consent == "" { // it has just been withdrawn
			return p.Refuse(ctx, issuer, r, protocol.ConsentRequired)
		}
	}
	if a.Device != "" {
		return p.answerDevice(ctx, issuer, &a, &granted)
	}
	if !isRegistered(client, a.RedirectURI) {
		return protocol.Answer{}, &protocol.PageError{
			Message: "The address to return to is not one of the application's any more (redirect_uri).",
		}
	}
	if a.Subject != "" && a.Subject != person.UserID {
		return p.Refuse(ctx, issuer, r, protocol.LoginRequired)
	}
	text, id := newToken()
	err = docstore.Do(docstore.WithoutCommitHook(ctx), p.Store, func(tx *docstore.Tx) error {
		_, err := codes.Insert(ctx, tx, &code{
			Meta: docstore.Meta{ID: id}, Granted: granted, RedirectURI: a.RedirectURI,
			Challenge: a.Challenge, Expires: tx.Now.Add(codeTTL),
		})
		return err
	})
	if err != nil {
		return protocol.Answer{}, err
	}
	members := url.Values{"code": {text}, "iss": {issuer}} // RFC 9207
	if a.State != "" {
		members.Set("state", a.State)
	}
	return respond(a.RedirectURI, a.ResponseMode, members), nil
}

func (a *Authorization) granted(r protocol.Request, person protocol.Person) Granted {
	return Granted{
		AppID: r.AppID, ClientID: a.ClientID, UserID: person.UserID, SessionID: person.SessionID, Scope: a.Scope,
		Resources: a.Resources, Nonce: a.Nonce, Claims: a.Claims, SubAccount: person.SubAccount, ACR: person.ACR,
		AMR: person.AMR, AuthTime: person.AuthTime, SessionEnds: person.SessionEnds,
		Proofs: person.Proofs, TimePasswordChanged: proof.TimeSet(person.Proofs, proof.Password), Consents: r.Consents,
	}
}

// restsOn reports whether the sign-in rests on a credential that was set before a time. Of what an earlier version has
// stored, the time of the sign-in stands for the password's if that is missing.
func (g *Granted) restsOn(credential string, before clock.Time) bool {
	if g.Proofs == nil {
		return credential == proof.Password && cmp.Or(g.TimePasswordChanged, g.AuthTime).Before(before)
	}
	return proof.RestsOn(g.Proofs, credential, before)
}

// errGrant is the error for codes, refresh tokens and device codes that are no good (RFC 6749 §5.2). It does not say
// why: whoever has found one learns nothing.
var errGrant = apperr.OAuth(apperr.InvalidParameters, "invalid_grant", "the grant is not valid, or not any more")

// check checks that a code was given to a client, for the request that the verifier belongs to. A code that was
// asked for without PKCE is refused with a verifier: otherwise a code that somebody injects would pass (RFC 9700
// §4.8.2).
func (c *code) check(client questions.Client, form url.Values) error {
	verifier := form.Get("code_verifier")
	sum := sha256.Sum256([]byte(verifier))
	proof := base64.RawURLEncoding.EncodeToString(sum[:])
	switch {
	case c.ClientID != client.ClientID,
		c.RedirectURI != form.Get("redirect_uri"),
		(c.Challenge == "") != (verifier == ""),
		c.Challenge != "" && subtle.ConstantTimeCompare([]byte(c.Challenge), []byte(proof)) != 1:
		return errGrant
	}
	return nil
}

// byCode is the grant authorization_code (RFC 6749 §4.1.3).
func (p *Provider) byCode(ctx context.Context, issuer string, client questions.Client, r TokenRequest) (
	TokenAnswer, error,
) {
	id := hashOf(r.Form.Get("code"))
	doc, err := codes.Find(ctx, p.Store, id)
	if isNotFound(err) {
		return TokenAnswer{}, errGrant
	}
	if err != nil {
		return TokenAnswer{}, err
	}
	c, err := doc.Value()
	if err != nil {
		return TokenAnswer{}, err
	}
	if c.ClientID == client.ClientID && c.Family != "" {
		return TokenAnswer{}, p.usedAgain(ctx, r, c.Family)
	}
	if err := c.check(client, r.Form); err != nil {
		return TokenAnswer{}, err
	}
	if !p.Store.Now().Before(c.Expires) {
		return TokenAnswer{}, errGrant
	}
	use, err := p.entitle(ctx, client, &c.Granted, c.SessionID, r.Form)
	if err != nil {
		return TokenAnswer{}, err
	}
	fresh, err := p.newFamily(ctx, c.Granted)
	if err != nil {
		return TokenAnswer{}, err
	}
	answer, err := p.issue(ctx, issuer, client, fresh, use, c.Nonce) // if it fails, the code is still good
	if err != nil {
		return TokenAnswer{}, err
	}
	if err := p.makeRoom(ctx, fresh); err != nil {
		return TokenAnswer{}, err
	}
	f, err := p.redeem(ctx, id, fresh)
	if err != nil {
		return TokenAnswer{}, err
	}
	if f.ID == "" { // another request was faster
		return TokenAnswer{}, p.usedAgain(ctx, r, f.used)
	}
	return answer, nil
}

// redeem uses a code, and stores the token family that it is used for. Without an ID, the family is none: the code was
// used before, for that family.
func (p *Provider) redeem(ctx context.Context, id string, f *family) (*family, error) {
	return docstore.Write(docstore.WithoutCommitHook(ctx), p.Store, func(tx *docstore.Tx) (*family, error) {
		c, err := codes.Load(ctx, tx, id)
		if isNotFound(err) {
			return nil, errGrant
		}
		if err != nil {
			return nil, err
		}
		if c.Family != "" {
			return &family{used: c.Family}, nil
		}
		fresh := *f
		c.Family = fresh.ID
		if _, err := codes.Touch(ctx, tx, c); err != nil {
			return nil, err
		}
		return &fresh, insertFamily(ctx, tx, &fresh)
	})
}

// usedAgain ends what a code or refresh token has given, because two have it: the application, and a thief.
func (p *Provider) usedAgain(ctx context.Context, r TokenRequest, familyID string) error {
	if err := p.endReused(ctx, r, familyID); err != nil {
		return err
	}
	return errGrant
}
