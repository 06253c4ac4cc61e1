package oidc

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

const (
	deviceTTL = 10 * time.Minute
	// interval is how long a program waits between its requests for tokens.
	interval = 5 * time.Second
	// letters are those of user codes: consonants, so that no words arise (RFC 8628 §6.1). A code has 34 bits.
	letters    = "BCDFGHJKLMNPQRSTVWXZ"
	userLength = 8
	maxAgent   = 256 // bytes of a User-Agent that are kept
)

// grantDevice is the grant type of programs on devices without a browser (RFC 8628 §3.4).
const grantDevice = "urn:ietf:params:oauth:grant-type:device_code"

// device is a request of a program that a person answers on another device. Its id is the device code's SHA-256.
type device struct {
	docstore.Meta
	UserCode  string     `json:"user_code"` // its SHA-256
	AppID     string     `json:"app_id"`
	ClientID  string     `json:"client_id"`
	Scope     []string   `json:"scope,omitempty"`
	Resources []string   `json:"resources,omitempty"`
	Address   string     `json:"address,omitempty"` // of the program
	Agent     string     `json:"agent,omitempty"`   // the program's User-Agent
	Expires   clock.Time `json:"expires"`
	Asked     clock.Time `json:"asked"` // when the program last asked
	Denied    bool       `json:"denied,omitempty"`
	Granted   *Granted   `json:"granted,omitempty"` // null until a person has signed in
}

const byUserCode = "user_code"

var devices = docstore.Define(docstore.Schema[device]{
	Name: "oidc_devices", Noun: "device code",
	Indexes: []docstore.Index[device]{
		docstore.Unique(docstore.ByText(byUserCode, func(d *device) string { return d.UserCode }), byUserCode),
	},
	Due: func(d *device) clock.Time { return d.Expires },
})

// DeviceAnswer is the answer of the endpoint for devices (RFC 8628 §3.2).
type DeviceAnswer struct {
	DeviceCode string `json:"device_code" doc:"With which the program asks for tokens"`
	UserCode   string `json:"user_code" doc:"What the person enters at verification_uri" example:"BCDF-GHJK"`
	URI        string `json:"verification_uri" doc:"The page where the person enters it"`
	Complete   string `json:"verification_uri_complete" doc:"The page with the code, such as for a QR code"`
	ExpiresIn  int64  `json:"expires_in" doc:"Seconds"`
	Interval   int64  `json:"interval" doc:"Seconds between the program's requests for tokens"`
}

// Device begins the sign-in of a program on a device without a browser (RFC 8628 §3.1), for applications of category 3.
// Errors are those of Token.
func (p *Provider) Device(ctx context.Context, issuer string, r TokenRequest) (DeviceAnswer, error) {
	client, err := p.sender(ctx, issuer, r, "/device_authorization")
	if err != nil {
		return DeviceAnswer{}, err
	}
	if client.Category != questions.ClientProgram {
		return DeviceAnswer{}, apperr.OAuth(apperr.InvalidParameters, "unauthorized_client",
			"only client programs (category %s) sign in by device codes", questions.ClientProgram)
	}
	a := Authorization{ClientID: client.ClientID}
	a.parseScope(client, r.Form)
	if why := p.parseResources(client, &a, r.Form["resource"]); why != nil {
		return DeviceAnswer{}, apperr.OAuth(apperr.InvalidParameters, why.code, "%s", why.text)
	}
	if err := p.mayStore(ctx, client, r); err != nil {
		return DeviceAnswer{}, err
	}
	for {
		text, id := newToken()
		user := newUserCode()
		err := docstore.Do(docstore.WithoutCommitHook(ctx), p.Store, func(tx *docstore.Tx) error {
			_, err := devices.Insert(ctx, tx, &device{
				Meta: docstore.Meta{ID: id}, UserCode: hashOf(user), AppID: client.AppID, ClientID: client.ClientID,
				Scope: a.Scope, Resources: a.Resources, Expires: tx.Now.Add(deviceTTL), Address: r.Address,
				Agent: strings.ToValidUTF8(r.Browser[:min(len(r.Browser), maxAgent)], ""),
			})
			return err
		})
		if _, taken := errors.AsType[*docstore.DuplicateError](err); taken {
			continue // another program has that user code now
		}
		if err != nil {
			return DeviceAnswer{}, err
		}
		shown := shownCode(user)
		return DeviceAnswer{
			DeviceCode: text, UserCode: shown, URI: issuer + "/device",
			Complete:  issuer + "/device?" + url.Values{"user_code": {shown}}.Encode(),
			ExpiresIn: int64(deviceTTL.Seconds()), Interval: int64(interval.Seconds()),
		}, nil
	}
}

// shownCode is a user code as devices show it.
func shownCode(code string) string { return code[:userLength/2] + "-" + code[userLength/2:] }

// newUserCode makes a user code without its dash.
func newUserCode() string {
	code := make([]byte, userLength)
	for i := range code {
		n, _ := rand.Int(rand.Reader, big.NewInt(int64(len(letters)))) // never fails (crypto/rand)
		code[i] = letters[n.Int64()]
	}
	return string(code)
}

// DeviceRequest returns the request for which a person has entered a user code, in whatever case and with whatever
// between the letters. Its Grant and Refuse lead the browser to <issuer>/device?done=1 or done=0. The error is
// apperr.NotFound for a code that is wrong, too old or answered; the caller bounds how often people may guess.
func (p *Provider) DeviceRequest(ctx context.Context, userCode string) (protocol.Request, error) {
	wrong := apperr.Missing("device code")
	code := strings.Map(func(c rune) rune {
		if strings.ContainsRune(letters, c) {
			return c
		}
		return -1
	}, strings.ToUpper(userCode[:min(len(userCode), maxParameter)]))
	if len(code) != userLength {
		return protocol.Request{}, wrong
	}
	doc, err := devices.First(ctx, p.Store, docstore.Eq(byUserCode, docstore.Text(hashOf(code))))
	if err != nil {
		return protocol.Request{}, err
	}
	d, err := doc.Value()
	if err != nil {
		return protocol.Request{}, err
	}
	if !d.open(p.Store.Now()) {
		return protocol.Request{}, wrong
	}
	_, err = p.client(ctx, questions.ClientName{AppID: d.AppID})
	if errors.Is(err, protocol.ErrUnknown) {
		return protocol.Request{}, wrong
	}
	if err != nil {
		return protocol.Request{}, err
	}
	a := Authorization{ClientID: d.ClientID, Scope: d.Scope, Resources: d.Resources, Device: d.ID}
	// Whoever has begun on the device may have sent the code to somebody else, who must see which application gets
	// what (RFC 8628 §5.4), and must enter the code: a link to the flow would skip the page that says so.
	r := protocol.Request{
		Protocol: protocol.OIDC, AppID: d.AppID, Bound: true, AskConsent: true, Consents: a.consents(),
		Device: &protocol.Device{Code: shownCode(code), Address: d.Address, Agent: d.Agent},
	}
	r.Message, err = json.Marshal(a)
	return r, err
}

// open reports whether a person may still answer.
func (d *device) open(now clock.Time) bool {
	return now.Before(d.Expires) && !d.Denied && d.Granted == nil
}

// answerDevice stores the answer of the person: what is granted, or nil.
func (p *Provider) answerDevice(ctx context.Context, issuer string, a *Authorization, g *Granted) (
	protocol.Answer, error,
) {
	err := docstore.Do(docstore.WithoutCommitHook(ctx), p.Store, func(tx *docstore.Tx) error {
		d, err := devices.Load(ctx, tx, a.Device)
		if err != nil {
			return err
		}
		if !d.open(tx.Now) {
			return apperr.Missing("device code")
		}
		d.Granted, d.Denied = g, g == nil
		_, err = devices.Touch(ctx, tx, d)
		return err
	})
	if isNotFound(err) {
		return protocol.Answer{}, &protocol.PageError{
			Message: "The code is no longer good. Please begin again on the other device.",
		}
	}
	done := "1"
	if g == nil {
		done = "0"
	}
	return protocol.Answer{URL: issuer + "/device?done=" + done}, err
}

// The answers to a program whose person has not answered yet, or not in time (RFC 8628 §3.5).
var (
	errPending = deviceFault("authorization_pending", "the person has not answered yet")
	errSlow    = deviceFault("slow_down", "the program asks too often")
	errDenied  = deviceFault("access_denied", "the person may not, or does not want to")
	errExpired = deviceFault("expired_token", "the device code is too old")
)

func deviceFault(code, text string) *apperr.Error {
	return apperr.OAuth(apperr.InvalidParameters, code, "%s", text)
}

// byDeviceCode is the grant of RFC 8628 §3.4.
func (p *Provider) byDeviceCode(ctx context.Context, issuer string, client questions.Client, r TokenRequest) (
	TokenAnswer, error,
) {
	id := hashOf(r.Form.Get("device_code"))
	d, err := p.poll(ctx, id, client)
	if err != nil {
		return TokenAnswer{}, err
	}
	use, err := p.entitle(ctx, client, d.Granted, d.Granted.SessionID, r.Form)
	if err != nil {
		return TokenAnswer{}, err
	}
	fresh, err := p.newFamily(ctx, *d.Granted)
	if err != nil {
		return TokenAnswer{}, err
	}
	answer, err := p.issue(ctx, issuer, client, fresh, use, "") // if it fails, the device code is still good
	if err != nil {
		return TokenAnswer{}, err
	}
	if err := p.makeRoom(ctx, fresh); err != nil {
		return TokenAnswer{}, err
	}
	err = docstore.Do(docstore.WithoutCommitHook(ctx), p.Store, func(tx *docstore.Tx) error {
		d, err := devices.Load(ctx, tx, id)
		if isNotFound(err) {
			return errGrant // another request was faster
		}
		if err != nil {
			return err
		}
		f := *fresh
		if _, err := devices.Delete(ctx, tx, d); err != nil {
			return err
		}
		return insertFamily(ctx, tx, &f)
	})
	if err != nil {
		return TokenAnswer{}, err
	}
	return answer, nil
}

// poll returns a device code that a person has granted, and notes when its program has asked.
func (p *Provider) poll(ctx context.Context, id string, client questions.Client) (*device, error) {
	var refusal *apperr.Error
	d, err := docstore.Write(docstore.WithoutCommitHook(ctx), p.Store, func(tx *docstore.Tx) (*device, error) {
		refusal = nil
		d, err := devices.Load(ctx, tx, id)
		if isNotFound(err) || err == nil && d.ClientID != client.ClientID {
			return nil, errGrant
		}
		if err != nil {
			return nil, err
		}
		switch {
		case !tx.Now.Before(d.Expires):
			return nil, errExpired
		case d.Denied:
			return nil, errDenied
		case d.Granted != nil:
			return d, nil
		case !d.Asked.IsZero() && tx.Now.Before(d.Asked.Add(interval)):
			refusal = errSlow
		default:
			refusal = errPending
		}
		d.Asked = tx.Now
		_, err = devices.Touch(ctx, tx, d)
		return d, err
	})
	if err == nil && refusal != nil {
		err = refusal
	}
	return d, err
}

// parseScope keeps the scopes that are known; others are ignored (OpenID Connect Core §3.1.2.1).
func (a *Authorization) parseScope(client questions.Client, v url.Values) {
	for _, scope := range words(v.Get("scope")) {
		known := slices.Contains(Scopes, scope) || slices.Contains(client.Scopes, scope)
		if scope == openID && client.OIDC.OAuthOnly {
			continue
		}
		if known && !slices.Contains(a.Scope, scope) {
			a.Scope = append(a.Scope, scope)
		}
	}
}
