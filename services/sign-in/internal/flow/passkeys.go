package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/sign-in/internal/factor"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// usePasskey is the use that the ceremony of a set-up is sealed for.
const usePasskey = "passkey"

// party is who asks for passkeys. Its name is shown only where one is made.
func (e *Engine) party(p policy) factor.Party {
	return factor.Party{
		Site: e.Site, Name: e.Site.ID, UserVerification: p.UserVerification, Attestation: p.Attestation,
		Discoverable: p.Discoverable,
	}
}

// beginPasskey begins to set up a passkey.
func (e *Engine) beginPasskey(ctx context.Context, f *Flow, asked policy) error {
	settings, err := e.Settings.Of(ctx)
	if err != nil {
		return err
	}
	p := e.party(asked)
	p.Name = cmp.Or(settings.Name, p.Name)
	set, err := e.Factors.Of(ctx, f.UserID)
	if err != nil {
		return err
	}
	owner, err := e.ownerOf(ctx, f)
	if err != nil {
		return err
	}
	c, err := e.Factors.BeginPasskey(ctx, p, set, owner)
	if err != nil {
		return err
	}
	text, err := json.Marshal(c)
	f.Setup = e.Keys.Seal(text, e.boundToUser(ctx, usePasskey, f.UserID))
	return err
}

func (e *Engine) ownerOf(ctx context.Context, f *Flow) (factor.Owner, error) {
	owner := factor.Owner{UserID: f.UserID, Username: f.LoginName, Name: f.LoginName}
	u, err := e.personOf(ctx, f.UserID)
	if u != nil {
		owner.Username, owner.Name = u.Username, u.Name()
	}
	return owner, err
}

// CeremonyOf is what the browser is asked to do to set up the passkey of a flow.
func (e *Engine) CeremonyOf(ctx context.Context, f *Flow) (c factor.Ceremony, err error) {
	text, err := e.Keys.Open(f.Setup, e.boundToUser(ctx, usePasskey, f.UserID))
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	return c, err
}

// newPasskey checks the passkey that a browser has made; nil if it is not good.
func (e *Engine) newPasskey(ctx context.Context, f *Flow, in factor.NewPasskey, answer string) (addition, error) {
	c, err := e.CeremonyOf(ctx, f)
	if err != nil {
		return nil, err
	}
	set, err := e.Factors.Of(ctx, f.UserID)
	if err != nil {
		return nil, err
	}
	in.Owner.UserID = f.UserID
	in, good, err := e.Factors.FinishPasskey(ctx, e.party(policy{}), set, c, answer, in)
	if err != nil {
		return nil, err
	}
	if !good {
		f.Notice = NoticePasskey
		return nil, nil
	}
	return func(ctx context.Context, tx *docstore.Tx) (proof.Proof, []string, error) {
		return e.Factors.AddPasskey(ctx, tx, in)
	}, nil
}

// Challenge is what a page asks the browser for a passkey with: the options, and the sealed ceremony, which comes back
// with the form.
type Challenge struct {
	Options string
	Sealed  string
}

// challengeLifetime is for how long a page can be open before its passkey is asked for.
const challengeLifetime = time.Hour

func boundToBrowser(ctx context.Context, v Visitor) []byte {
	return []byte("sign-in passkey challenge " + request.Tenant(ctx) + " " + v.Browser)
}

// asksPasskey reports whether the page of a view asks for a passkey.
func (e *Engine) asksPasskey(view View) bool {
	asks := view.Kind == SignIn || view.Kind == EnterFactor
	return asks && e.Site != (factor.Site{}) && slices.Contains(view.Methods, proof.Passkey)
}

// Challenge makes the challenge of a page that asks for a passkey; nil if it asks for none. It stores nothing.
func (e *Engine) Challenge(ctx context.Context, view View, v Visitor) (*Challenge, error) {
	if !e.asksPasskey(view) {
		return nil, nil
	}
	userID, set := "", &factor.Set{}
	if view.Kind == EnterFactor {
		userID = view.subject.userID
		var err error
		if set, err = e.Factors.Of(ctx, userID); err != nil {
			return nil, err
		}
	}
	c, err := e.Factors.AskPasskey(ctx, e.party(policyOfAll(view.steps)), set, userID)
	if errors.Is(err, factor.ErrNone) { // it was deleted a moment ago
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(c)
	return &Challenge{Options: string(c.Options), Sealed: e.Keys.Seal(text, boundToBrowser(ctx, v))}, err
}

// passkeys is the method of passkeys.
type passkeys struct{ *Engine }

// Guess implements Method.
func (passkeys) Guess() Guess { return PasskeyAnswer }

// Check implements Method.
func (m passkeys) Check(ctx context.Context, f *Flow, form Form, v Visitor) (Proven, error) {
	refused := Proven{Notice: NoticePasskey}
	text, err := m.Keys.Open(form.Challenge, boundToBrowser(ctx, v))
	if err != nil { // of another browser, or of a key that is gone
		return refused, nil
	}
	var c factor.Ceremony
	if err := json.Unmarshal(text, &c); err != nil {
		return Proven{}, err
	}
	if m.Store.Now().Sub(c.Time) > challengeLifetime {
		return refused, nil
	}
	tried, err := m.Factors.TryPasskey(ctx, m.party(policy{}), c, form.Passkey, f.UserID,
		factor.From{Address: v.Address, Browser: v.UserAgent()})
	if err != nil || tried.Proof == nil {
		return refused, err
	}
	u, err := m.personOf(ctx, tried.UserID)
	if err != nil || u == nil {
		return refused, err
	}
	return Proven{
		User: u, Proof: *tried.Proof, LoginName: u.Username,
		MustChangePassword: u.MustChangePassword && u.HasPassword(),
	}, nil
}
