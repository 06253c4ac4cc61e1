// Package signout tells the SAML applications of a session that a person has signed out, through the person's browser:
// one application after the other, because each finds its own session by its own cookie (SAML profiles §4.4). An
// application with a SOAP service, and those that the browser does not come to, are told from server to server.
package signout

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
)

const (
	// patience is how long the browser may stay at an application.
	patience = 2 * time.Minute
	// maxInBrowser bounds the applications that the browser is sent to. The others are told from server to server.
	maxInBrowser = 20
)

// SignOut is a sign-out that goes on in a browser. Its id is the secret by which the browser continues it.
type SignOut struct {
	docstore.Meta
	Issuer  string        `json:"issuer"`
	Waiting []saml.Notice `json:"waiting,omitempty"`
	// Asked is the application that the browser is at.
	Asked *saml.Notice `json:"asked,omitempty"`
	// Missed are the applications that have not confirmed that the person is signed out there.
	Missed []string   `json:"missed,omitempty"`
	End    End        `json:"end"`
	Next   clock.Time `json:"next"` // when the rest is told from server to server
}

// End is where the browser goes at last.
type End struct {
	// Reply is the application that has asked for the sign-out by SAML; nil for none. Outcome is what it is answered if
	// all others have confirmed.
	Reply   *saml.Reply  `json:"reply,omitempty"`
	Outcome saml.Outcome `json:"outcome,omitempty"`
	// URL leads back to the application AppID; empty: to a page that says that the person is signed out.
	URL   string `json:"url,omitempty"`
	AppID string `json:"app_id,omitempty"`
}

var signOuts = docstore.Define(docstore.Schema[SignOut]{
	Name: "sign_outs", Noun: "sign-out", Due: func(s *SignOut) clock.Time { return s.Next },
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{signOuts.Def()} }

// SignOuts are the use cases. All members are required.
type SignOuts struct {
	Store *docstore.Store
	SAML  *saml.Provider
	// Tell stores that applications are told from server to server.
	Tell func(ctx context.Context, tx *docstore.Tx, issuer string, all []saml.Notice) error
}

// Begin makes a sign-out of a session's SAML applications, in the transaction that ends the session, before it ends. It
// returns "" if the browser has no application to go to, unless always is true. The application that has asked for the
// sign-out knows of it.
func (s *SignOuts) Begin(
	ctx context.Context, tx *docstore.Tx, issuer, sessionID string, end End, always bool,
) (id string, err error) {
	all, err := s.SAML.Take(ctx, tx, sessionID)
	if err != nil {
		return "", err
	}
	all = slices.DeleteFunc(all, func(n saml.Notice) bool { return end.Reply != nil && n.AppID == end.Reply.AppID })
	if len(all) == 0 && !always {
		return "", nil
	}
	so := &SignOut{Meta: docstore.Meta{ID: rand.Text()}, Issuer: issuer, End: end, Next: tx.Now.Add(patience)}
	if len(all) > maxInBrowser {
		if err := s.Tell(ctx, tx, issuer, all[maxInBrowser:]); err != nil {
			return "", err
		}
		all = all[:maxInBrowser]
	}
	so.Waiting = all
	_, err = signOuts.Insert(ctx, tx, so)
	return so.ID, err
}

// Step is where the browser goes next: to an application, or to the End, once all have been asked.
type Step struct {
	ToApp *protocol.Answer // nil at the end
	AppID string
	// End and Missed are set at the end.
	End    End
	Missed []string
}

// Continue sends the browser on. came is the answer of an application that it brings, nil if it brings none: then the
// application that it was sent to has not confirmed. The error is apperr.NotFound for a sign-out that has ended.
func (s *SignOuts) Continue(ctx context.Context, id string, came *saml.Finished) (Step, error) {
	result := unconfirmed
	if came != nil {
		result = confirmed
		if came.Failed {
			result = refused
		}
	}
	so, err := s.advance(ctx, id, func(so *SignOut) outcome {
		if came == nil || so.Asked != nil && so.Asked.AppID == came.AppID {
			return result
		}
		return so.late(came)
	})
	for err == nil && so.Asked != nil {
		var answer protocol.Answer
		asked := *so.Asked
		if answer, err = s.SAML.FrontRequest(ctx, so.Issuer, asked, id); err == nil {
			return Step{ToApp: &answer, AppID: asked.AppID}, nil
		}
		result = elsewhere
		switch {
		case errors.Is(err, protocol.ErrUnknown): // there is no address at which it could be told
			result = refused
		case !errors.Is(err, saml.ErrBySOAP):
			result = later
		}
		so, err = s.advance(ctx, id, func(now *SignOut) outcome {
			if now.Asked == nil || *now.Asked != asked {
				return again // another request of the browser was faster
			}
			return result
		})
	}
	if err != nil {
		return Step{}, err
	}
	return Step{End: so.End, Missed: so.Missed}, nil
}

// outcome is what became of the application that the browser was sent to.
type outcome int

const (
	confirmed   outcome = iota
	refused             // it says so, or cannot be told
	unconfirmed         // the browser has come back without its answer
	elsewhere           // it is told from server to server
	later               // so, and it may never hear
	again               // the browser goes to it once more
)

// late notes the answer of an application whose answer is not waited for any more. The browser stays where it is.
func (so *SignOut) late(came *saml.Finished) outcome {
	if !came.Failed {
		so.Missed = slices.DeleteFunc(so.Missed, func(id string) bool { return id == came.AppID })
	}
	if so.Asked == nil {
		return confirmed
	}
	return again
}

// advance goes on to the next application. After the last one the sign-out is removed, and returned without Asked.
func (s *SignOuts) advance(ctx context.Context, id string, judge func(*SignOut) outcome) (*SignOut, error) {
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (*SignOut, error) {
		so, err := signOuts.Load(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		result := judge(so)
		if so.Asked != nil && result != again {
			if result == elsewhere || result == later {
				if err := s.Tell(ctx, tx, so.Issuer, []saml.Notice{*so.Asked}); err != nil {
					return nil, err
				}
			}
			if result != confirmed && result != elsewhere {
				so.Missed = append(so.Missed, so.Asked.AppID)
			}
			so.Asked = nil
		}
		if so.Asked == nil && len(so.Waiting) > 0 {
			so.Asked, so.Waiting = &so.Waiting[0], so.Waiting[1:]
		}
		if so.Asked == nil {
			_, err := signOuts.Delete(ctx, tx, so)
			return so, err
		}
		so.Next = tx.Now.Add(patience)
		_, err = signOuts.Touch(ctx, tx, so)
		return so, err
	})
}

// Due lists the sign-outs whose browser does not come back.
var Due = signOuts.Due

// GiveUp has the rest told from server to server.
func (s *SignOuts) GiveUp(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		so, err := signOuts.Load(ctx, tx, id)
		if err != nil || tx.Now.Before(so.Next) { // the browser has come meanwhile
			return apperr.Ignore(err, apperr.NotFound)
		}
		rest := so.Waiting
		if so.Asked != nil {
			rest = append(rest, *so.Asked)
		}
		if err := s.Tell(ctx, tx, so.Issuer, rest); err != nil {
			return err
		}
		_, err = signOuts.Delete(ctx, tx, so)
		return err
	})
}
