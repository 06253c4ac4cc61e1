package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/consent"
	"github.com/idplatform/idplatform/services/sign-in/internal/factor"
	"github.com/idplatform/idplatform/services/sign-in/internal/person"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/session"
)

// OwnPage is the protocol of the person's own page, which is no application's.
const OwnPage = "own"

// OwnRequest is the request of the person's own page. fresh demands a new sign-in.
func OwnRequest(fresh bool) protocol.Request {
	return protocol.Request{Protocol: OwnPage, Fresh: fresh}
}

// Change is what a person changes on its own page. It is stored with the flow of a sign-in that must come first, so its
// JSON form is kept compatible.
type Change struct {
	UserID  string `json:"user_id"` // whose session asks for it; empty if it has ended
	Action  Action `json:"action"`
	ID      string `json:"id"`
	Address string `json:"address"` // of the browser
	Browser string `json:"browser"` // its User-Agent
}

// Action is a kind of change.
type Action string

// The actions that may have to wait for a sign-in. A new password wants the old one instead.
const (
	EndSession      Action = "end_session"
	WithdrawConsent Action = "withdraw_consent"
	EndGrant        Action = "end_grant"
	// AddFactor and RenewCodes are done on pages of the flow, as its Task.
	AddFactor    Action = "add_factor"
	RenewCodes   Action = "renew_codes"
	RemoveFactor Action = "remove_factor"
	// AddLink and RemoveLink are of links to other providers.
	AddLink    Action = "add_link" // on pages of the flow; ID is the connection's
	RemoveLink Action = "remove_link"
	// OpenApplication changes nothing: it leads to an application.
	OpenApplication Action = "open_application"
)

// The notices of changes of factors and links.
const (
	FactorAdded   = "factor_added"
	CodesRenewed  = "codes_renewed"
	FactorRemoved = "factor_removed"
	FactorKept    = "factor_kept" // the person has no password, and could not sign in without it
	LinkAdded     = "link_added"
	LinkRemoved   = "link_removed"
	LinkKept      = "link_kept" // the person could not sign in without it
)

// recently is how many seconds ago somebody may have signed in who changes factors.
const recently int64 = 300

// Request asks the person to sign in anew before the change. Whoever changes factors or links shows a factor that is
// there; a sign-in that is recent will do.
func (c Change) Request() (protocol.Request, error) {
	r := OwnRequest(true)
	switch c.Action {
	case AddFactor:
		r.Task = protocol.AddFactor
	case RenewCodes:
		r.Task = protocol.RenewCodes
	case AddLink:
		r.Task = protocol.AddLink
	}
	switch c.Action {
	case AddFactor, RenewCodes, RemoveFactor, AddLink, RemoveLink:
		most := recently
		r.Fresh, r.MaxAge, r.ACR, r.TaskOf = false, &most, []string{proof.TwoFactors}, c.UserID
	}
	var err error
	r.Message, err = json.Marshal(c)
	return r, err
}

// opens is the application that a request of the own page leads to; empty if it leads to none.
func opens(r protocol.Request) string { return asksFor(r, OpenApplication) }

// asksFor is the id of what a request of the own page asks an action for; empty if it asks for none.
func asksFor(r protocol.Request, action Action) string {
	var c Change
	if len(r.Message) == 0 || json.Unmarshal(r.Message, &c) != nil || c.Action != action {
		return ""
	}
	return c.ID
}

// Own leads to the person's own page, after the change that was asked for there.
type Own struct {
	Sessions *session.Sessions
	Consents *consent.Consents
	// EndGrant ends a grant of a person. The error is apperr.NotFound.
	EndGrant func(ctx context.Context, id, userID string) error
	Clients  Clients
	Factors  *factor.Factors
	Site     factor.Site
	Bus      *bus.Bus
}

// Grant implements protocol.Protocol. A change that another person asked for is not made.
func (o Own) Grant(ctx context.Context, issuer string, r protocol.Request, p protocol.Person) (protocol.Answer, error) {
	var c *Change
	if len(r.Message) > 0 {
		if err := json.Unmarshal(r.Message, &c); err != nil {
			return protocol.Answer{}, err
		}
	}
	switch {
	case c == nil:
		return protocol.Answer{URL: issuer}, nil
	case c.UserID != p.UserID:
		return protocol.Answer{URL: issuer + "?done=not_changed"}, nil
	case c.Action == OpenApplication:
		return protocol.Answer{URL: o.startOf(ctx, issuer, c.ID)}, nil
	}
	done, err := o.Make(ctx, *c)
	return protocol.Answer{URL: issuer + "?done=" + done}, err
}

// startOf is where an application is opened; the person's own page, if it has no such address, or none that is known.
func (o Own) startOf(ctx context.Context, issuer, appID string) string {
	apps, err := o.Clients.Launchable(ctx)
	if err != nil { // the page does without applications, too
		return issuer
	}
	for _, app := range apps {
		if app.ID == appID {
			return StartOf(issuer, app)
		}
	}
	return issuer
}

// StartOf is where an application is opened: its own address, or a sign-in that begins here.
func StartOf(base string, app questions.Launchable) string {
	if app.LoginURL != "" {
		return app.LoginURL
	}
	return base + "/saml/start/" + url.PathEscape(app.ID)
}

// Refuse implements protocol.Protocol.
func (Own) Refuse(_ context.Context, issuer string, _ protocol.Request, _ protocol.Refusal) (protocol.Answer, error) {
	return protocol.Answer{URL: issuer}, nil
}

// Make makes a change and returns the notice that the page shows. What has gone meanwhile, or is another person's,
// needs none.
func (o Own) Make(ctx context.Context, c Change) (done string, err error) {
	switch c.Action {
	case EndSession:
		done = "session_ended"
		var s *session.Session
		if s, err = o.Sessions.Find(ctx, c.ID); err == nil && s.UserID == c.UserID {
			_, err = o.Sessions.End(ctx, c.ID, session.LoggedOut)
		}
	case WithdrawConsent:
		done = "withdrawn"
		_, err = o.Consents.Withdraw(ctx, c.ID, c.UserID, consent.From{Address: c.Address, Browser: c.Browser})
	case AddFactor:
		done = FactorAdded
	case RenewCodes:
		done = CodesRenewed
	case RemoveFactor:
		done = FactorRemoved
		if err = o.removeFactor(ctx, c); errors.Is(err, factor.ErrLastPasskey) {
			return FactorKept, nil
		}
	case AddLink:
		done = LinkAdded
	case RemoveLink:
		return o.removeLink(ctx, c)
	case EndGrant:
		done = "grant_ended"
		err = o.EndGrant(ctx, c.ID, c.UserID)
	}
	return done, apperr.Ignore(err, apperr.NotFound)
}

// removeFactor deletes a factor of a person. Whoever has no password keeps a passkey. The error may be
// factor.ErrLastPasskey.
func (o Own) removeFactor(ctx context.Context, c Change) error {
	copied, err := person.Find(ctx, o.Sessions.Store, c.UserID)
	if err != nil {
		return err
	}
	u, err := person.Parse(copied.User)
	if err != nil {
		return err
	}
	if u.HasPassword() {
		_, err = o.Factors.Delete(ctx, c.ID, c.UserID)
		return err
	}
	_, err = o.Factors.DeleteOther(ctx, c.ID, c.UserID, o.Site)
	return err
}

// removeLink deletes a link of a person to another provider, unless the person could not sign in without it.
func (o Own) removeLink(ctx context.Context, c Change) (done string, err error) {
	set, err := o.Factors.Of(ctx, c.UserID)
	if err != nil {
		return "", err
	}
	links, err := o.Links(ctx, c.UserID)
	ended := questions.EndedLink{
		UserID: c.UserID, ID: c.ID, MayBeLast: slices.Contains(set.Methods(o.Site), proof.Passkey),
	}
	for _, one := range links {
		if one.Disabled {
			ended.Disabled = append(ended.Disabled, one.ConnectionID)
		}
	}
	if err == nil {
		_, err = questions.Unlink.Ask(ctx, o.Bus, ended)
	}
	switch {
	case err == nil || apperr.IsNotFound(err):
		return LinkRemoved, nil
	case apperr.KindOf(err) == apperr.InvalidState:
		return LinkKept, nil
	case apperr.KindOf(err) == apperr.Unavailable:
		return ServiceAway, nil
	}
	return "", err
}

// Link is a link of a person to another provider. Through is the name of the connection, and Disabled says that nobody
// signs in by it.
type Link struct {
	questions.UserLink
	Through  string
	Disabled bool
}

// Links are a person's links to other providers. The error may be apperr.Unavailable.
func (o Own) Links(ctx context.Context, userID string) ([]Link, error) {
	of, err := questions.LinksOf.Ask(ctx, o.Bus, questions.LinksQuestion{UserID: userID})
	if err != nil || len(of.Links) == 0 {
		return nil, err
	}
	var ids []string
	for _, one := range of.Links {
		if !slices.Contains(ids, one.ConnectionID) {
			ids = append(ids, one.ConnectionID)
		}
	}
	found, err := questions.ExistingConnections.Ask(ctx, o.Bus, questions.ConnectionIDs{IDs: ids})
	if err != nil {
		return nil, err
	}
	links := make([]Link, len(of.Links))
	for i, one := range of.Links {
		links[i] = Link{one, one.ProviderCode, true}
		for _, c := range found.Connections {
			if c.ID == one.ConnectionID {
				links[i].Through, links[i].Disabled = cmp.Or(c.Name, one.ProviderCode), c.Disabled
			}
		}
	}
	return links, nil
}
