// Package protocol is what the sign-in flow and the protocols (OpenID Connect, SAML, CAS) know of each other: an
// application's request in the members that all protocols share, the person who has signed in, and the answer that goes
// back to the application.
package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// The names of the protocols, as flows and events have them.
const (
	OIDC = "oidc"
	SAML = "saml"
	CAS  = "cas"
)

// Request is what an application asks for. It travels sealed in the form of the sign-in page, and is stored with the
// flow, so its JSON form is kept compatible.
type Request struct {
	Protocol string `json:"protocol"`
	AppID    string `json:"app_id"`
	// Message is the protocol's own request, which the flow does not look into.
	Message json.RawMessage `json:"message"`

	// Bound is true if only the browser that has made the request may go on with it: a link to its flow leads nowhere
	// in another one.
	Bound bool `json:"bound,omitempty"`

	Passive       bool     `json:"passive,omitempty"`        // nobody may be asked anything (prompt=none, IsPassive)
	Fresh         bool     `json:"fresh,omitempty"`          // the person signs in anew (prompt=login, ForceAuthn)
	MaxAge        *int64   `json:"max_age,omitempty"`        // seconds since the sign-in, at most
	SelectAccount bool     `json:"select_account,omitempty"` // prompt=select_account
	AskConsent    bool     `json:"ask_consent,omitempty"`    // prompt=consent
	Consents      []string `json:"consents,omitempty"`       // scopes that the person agrees to
	ACR           []string `json:"acr,omitempty"`            // acceptable classes of the sign-in; empty: any
	ACREssential  bool     `json:"acr_essential,omitempty"`  // without one of ACR the application gets an error
	Task          Task     `json:"task,omitempty"`           // what the person has come for; of the own page only
	TaskOf        string   `json:"task_of,omitempty"`        // the user who has asked for Task
	LoginHint     string   `json:"login_hint,omitempty"`
	Locales       []string `json:"locales,omitempty"` // BCP 47, the best first

	// Device is the one that a program on another device has asked from; nil for requests of a browser.
	Device *Device `json:"device,omitempty"`
}

// Task is what a person does on pages of the flow before it goes on.
type Task string

// The tasks.
const (
	AddFactor  Task = "add_factor"
	RenewCodes Task = "renew_codes"
	AddLink    Task = "add_link" // to another provider
)

// Device is what a person can compare with the device in front of him, before he agrees (RFC 8628 §5.4).
type Device struct {
	Code    string `json:"code"` // as the device shows it
	Address string `json:"address,omitempty"`
	Agent   string `json:"agent,omitempty"` // User-Agent
}

// Person is who has signed in, and how, as the application is told.
type Person struct {
	UserID     string          `json:"user_id"`
	User       json.RawMessage `json:"user"` // the user's record, in the form that events carry
	SubAccount *SubAccount     `json:"sub_account,omitempty"`

	SessionID string     `json:"session_id"` // what the application knows the session by (sid, SessionIndex)
	AuthTime  clock.Time `json:"auth_time"`
	ACR       string     `json:"acr"`
	AMR       []string   `json:"amr"` // RFC 8176
	// New is true if the person has signed in for this very request, and not in an earlier one of the session.
	New bool `json:"new,omitempty"`
	// SessionEnds is when the session ends at the latest.
	SessionEnds clock.Time `json:"session_ends"`
	// TimePasswordSet is when the person's present password was set.
	TimePasswordSet clock.Time `json:"-"`
	// Proofs are what the sign-in rests on.
	Proofs []proof.Proof `json:"proofs,omitempty"`
}

// SubAccount is the account that the person has in the application.
type SubAccount struct {
	Account     string `json:"account"`
	DisplayName string `json:"display_name"`
}

// Answer is what goes back to the application through the browser: a redirect, or a form that posts itself.
type Answer struct {
	URL  string     // where to
	Post url.Values // the form's fields; nil for a redirect
}

// Refusal says why the application does not get a person.
type Refusal string

// The refusals. Each protocol has its own word for them.
const (
	AccessDenied    Refusal = "access_denied"                     // the person may not use it, or does not want to
	LoginRequired   Refusal = "login_required"                    // a passive request, and nobody is signed in
	ConsentRequired Refusal = "consent_required"                  // a passive request without consent
	UnmetACR        Refusal = "unmet_authentication_requirements" // the class of sign-in that it demands is not reached
	Unavailable     Refusal = "temporarily_unavailable"           // a service that must be asked does not answer
)

// Protocol is one of the protocols, for one tenant's issuer (<public URL>/sign-in/<tenant>).
type Protocol interface {
	// Grant answers a request for a person. What it makes for the application (a code, a ticket) is stored first.
	Grant(ctx context.Context, issuer string, r Request, p Person) (Answer, error)
	// Refuse answers a request without a person.
	Refuse(ctx context.Context, issuer string, r Request, why Refusal) (Answer, error)
}

// PageError is a fault of a request that must be told to the person on a page (status 400), because there is no
// trustworthy address to send it to.
type PageError struct{ Message string }

func (e *PageError) Error() string { return e.Message }

// AnswerError is a fault of a request that the application is told by an answer.
type AnswerError struct {
	Answer Answer
	Code   string
}

func (e *AnswerError) Error() string { return e.Code }

// ErrUnknown is the error for an application that does not exist, is disabled, or does not use the protocol.
var ErrUnknown = errors.New("the application is not known here")
