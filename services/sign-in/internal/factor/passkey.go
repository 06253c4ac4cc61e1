package factor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// Site is where passkeys belong: a browser shows them nowhere else. The zero Site has none.
type Site struct {
	ID     string // the relying party's: a domain
	Origin string
}

// SiteOf is the site of an origin. An address has no passkeys (WebAuthn §5.1.2), and neither has plain http, but for
// localhost.
func SiteOf(address string) Site {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Hostname() != "localhost" {
		return Site{}
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return Site{}
	}
	return Site{ID: u.Hostname(), Origin: u.Scheme + "://" + u.Host}
}

// Party is who asks for passkeys, as authenticators show it.
type Party struct {
	Site
	Name string
	// UserVerification and Attestation are what is asked of authenticators (WebAuthn §5.4.6 and §5.4.7). Empty:
	// preferred, and none.
	UserVerification, Attestation string
	// Discoverable asks for a passkey that is found without a login name.
	Discoverable bool
}

func (p Party) webauthn() (*webauthn.WebAuthn, error) {
	resident := protocol.ResidentKeyRequirementPreferred
	if p.Discoverable {
		resident = protocol.ResidentKeyRequirementRequired
	}
	return webauthn.New(&webauthn.Config{
		RPID: p.ID, RPDisplayName: p.Name, RPOrigins: []string{p.Origin},
		AttestationPreference: protocol.ConveyancePreference(
			cmp.Or(p.Attestation, string(protocol.PreferNoAttestation))),
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: resident,
			UserVerification: protocol.UserVerificationRequirement(
				cmp.Or(p.UserVerification, string(protocol.VerificationPreferred))),
		},
	})
}

// Owner is whose passkey it is, as authenticators show it.
type Owner struct{ UserID, Username, Name string }

// owner implements webauthn.User.
type owner struct {
	Owner
	handle []byte
	keys   []webauthn.Credential
}

func (o owner) WebAuthnID() []byte                         { return o.handle }
func (o owner) WebAuthnName() string                       { return o.Username }
func (o owner) WebAuthnDisplayName() string                { return o.Name }
func (o owner) WebAuthnCredentials() []webauthn.Credential { return o.keys }

// ownerOf makes the owner with those keys of a set that belong to a site. The handle says nothing of the user, and is
// another one in each tenant: authenticators keep one passkey for each handle.
func (s *Factors) ownerOf(ctx context.Context, site Site, set *Set, o Owner) (owner, []string, error) {
	sum := sha256.Sum256([]byte("user handle " + request.Tenant(ctx) + " " + o.UserID))
	all, ids := owner{Owner: o, handle: sum[:]}, []string(nil)
	for i := range set.Secrets {
		one := &set.Secrets[i]
		if one.Type != proof.Passkey || one.Site != site.ID {
			continue
		}
		text, err := s.open(ctx, o.UserID, one)
		if err != nil {
			return all, nil, err
		}
		var key webauthn.Credential
		if err := json.Unmarshal(text, &key); err != nil {
			return all, nil, err
		}
		all.keys, ids = append(all.keys, key), append(ids, one.ID)
	}
	return all, ids, nil
}

// Ceremony is what a browser is asked to do with a passkey. Session stays here; Options go to the browser.
type Ceremony struct {
	Options json.RawMessage `json:"options"` // for navigator.credentials
	Session json.RawMessage `json:"session"`
	Time    clock.Time      `json:"time"`
}

// maxUsed is how many ceremonies a passkey remembers.
const maxUsed = 20

// used is a ceremony in which a passkey has served.
type used struct {
	Challenge string `json:"challenge"`
	Time      int64  `json:"time"` // in milliseconds
}

// serves uses a ceremony up, and reports whether the passkey may serve in it: once, and in none that began before those
// that it remembers.
func (one *sealed) serves(challenge string, began clock.Time) bool {
	isThis := func(u used) bool { return u.Challenge == challenge }
	if began.Millis() <= one.Step || slices.ContainsFunc(one.Used, isThis) {
		return false
	}
	one.Used = append(one.Used, used{challenge, began.Millis()})
	if len(one.Used) > maxUsed {
		slices.SortFunc(one.Used, func(a, b used) int { return cmp.Compare(a.Time, b.Time) })
		one.Step, one.Used = one.Used[0].Time, one.Used[1:]
	}
	return true
}

func (s *Factors) ceremony(options, session any) (c Ceremony, err error) {
	c.Time = s.Store.Now()
	if c.Options, err = json.Marshal(options); err == nil {
		c.Session, err = json.Marshal(session)
	}
	return c, err
}

// BeginPasskey begins to set up a passkey.
func (s *Factors) BeginPasskey(ctx context.Context, p Party, set *Set, o Owner) (Ceremony, error) {
	party, err := p.webauthn()
	if err != nil {
		return Ceremony{}, err
	}
	user, _, err := s.ownerOf(ctx, p.Site, set, o)
	if err != nil {
		return Ceremony{}, err
	}
	options, session, err := party.BeginRegistration(user,
		webauthn.WithExclusions(webauthn.Credentials(user.keys).CredentialDescriptors()))
	if err != nil {
		return Ceremony{}, err
	}
	return s.ceremony(options.Response, session)
}

// maxAnswer bounds what a browser sends for a passkey, in bytes.
const maxAnswer = 16 << 10

// NewPasskey is a passkey that a browser has made.
type NewPasskey struct {
	ID, CodesID string // new ids
	Owner       Owner
	Name        string
	From        From
	key         *webauthn.Credential
	site        Site
}

// FinishPasskey checks a passkey that a browser has made; false if it is not good.
func (s *Factors) FinishPasskey(ctx context.Context, p Party, set *Set, c Ceremony, answer string, in NewPasskey) (
	NewPasskey, bool, error,
) {
	party, err := p.webauthn()
	if err != nil || len(answer) > maxAnswer {
		return in, false, err
	}
	var session webauthn.SessionData
	if err := json.Unmarshal(c.Session, &session); err != nil {
		return in, false, err
	}
	user, _, err := s.ownerOf(ctx, p.Site, set, in.Owner)
	if err != nil {
		return in, false, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(answer))
	if err != nil {
		return in, false, nil
	}
	in.key, err = party.CreateCredential(user, session, parsed)
	in.site = p.Site
	return in, err == nil, nil
}

// AddPasskey is Add for a passkey.
func (s *Factors) AddPasskey(ctx context.Context, tx *docstore.Tx, in NewPasskey) (proof.Proof, []string, error) {
	text, err := json.Marshal(in.key)
	if err != nil {
		return proof.Proof{}, nil, err
	}
	one := sealed{ID: in.ID, Type: proof.Passkey, Site: in.site.ID}
	codes, err := s.add(ctx, tx, one, string(text), in.CodesID, &Factor{
		UserID: in.Owner.UserID, Name: Name(in.Name), KeyID: keyID(in.key.ID), Site: in.site.ID,
	}, in.From)
	return passkeyProof(tx.Now, in.ID, tx.Now, in.key.Flags.UserVerified, in.key), codes, err
}

func keyID(id []byte) string { return base64.RawURLEncoding.EncodeToString(id) }

func passkeyProof(now clock.Time, id string, set clock.Time, verified bool, key *webauthn.Credential) proof.Proof {
	return proof.ByPasskey(now, id, set, verified, key.Flags.BackupEligible)
}

// AskPasskey asks for a passkey of a user, or of whoever comes if the user id is empty. The error is ErrNone if the
// user has none for the site.
func (s *Factors) AskPasskey(ctx context.Context, p Party, set *Set, userID string) (Ceremony, error) {
	party, err := p.webauthn()
	if err != nil {
		return Ceremony{}, err
	}
	if userID == "" {
		options, session, err := party.BeginDiscoverableLogin()
		if err != nil {
			return Ceremony{}, err
		}
		return s.ceremony(options.Response, session)
	}
	user, _, err := s.ownerOf(ctx, p.Site, set, Owner{UserID: userID})
	if err == nil && len(user.keys) == 0 {
		err = ErrNone
	}
	if err != nil {
		return Ceremony{}, err
	}
	options, session, err := party.BeginLogin(user)
	if err != nil {
		return Ceremony{}, err
	}
	return s.ceremony(options.Response, session)
}

// TryPasskey checks what a browser has answered to AskPasskey. userID is whom it was asked of; empty: of whoever comes.
// The user whose it is is in the answer.
func (s *Factors) TryPasskey(ctx context.Context, p Party, c Ceremony, answer, userID string, from From) (Tried,
	error,
) {
	party, err := p.webauthn()
	if err != nil || len(answer) > maxAnswer {
		return Tried{}, err
	}
	var session webauthn.SessionData
	if err := json.Unmarshal(c.Session, &session); err != nil {
		return Tried{}, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(answer))
	if err != nil {
		return Tried{}, nil
	}
	found, err := factors.First(ctx, s.Store, docstore.Eq(byKey, docstore.Text(keyID(parsed.RawID))))
	if err != nil {
		return Tried{}, apperr.Ignore(err, apperr.NotFound)
	}
	f, err := found.Value()
	if err != nil || userID != "" && f.UserID != userID {
		return Tried{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Tried, error) {
		set, err := load(ctx, tx, f.UserID)
		if err != nil {
			return Tried{}, err
		}
		user, ids, err := s.ownerOf(ctx, p.Site, set, Owner{UserID: f.UserID})
		if err != nil {
			return Tried{}, err
		}
		var key *webauthn.Credential
		if userID == "" {
			whose := func(_, _ []byte) (webauthn.User, error) { return user, nil }
			_, key, err = party.ValidatePasskeyLogin(whose, session, parsed)
		} else {
			key, err = party.ValidateLogin(user, session, parsed)
		}
		i := slices.IndexFunc(set.Secrets, func(one sealed) bool { return one.ID == f.ID })
		if err != nil || i < 0 || !slices.Contains(ids, f.ID) || key.Authenticator.CloneWarning ||
			!set.Secrets[i].serves(session.Challenge, c.Time) {
			return Tried{}, nil
		}
		one := &set.Secrets[i]
		text, err := json.Marshal(key)
		if err != nil {
			return Tried{}, err
		}
		one.Sealed = s.Keys.Seal(text, s.boundTo(ctx, set.ID, one.ID))
		verified := parsed.Response.AuthenticatorData.Flags.HasUserVerified()
		by := passkeyProof(tx.Now, one.ID, one.TimeSet, verified, key)
		return Tried{Proof: &by, UserID: f.UserID}, s.used(ctx, tx, set, one.ID, from)
	})
}
