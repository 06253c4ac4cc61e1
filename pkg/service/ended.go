package service

import (
	"context"
	"fmt"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
)

// EndedToken is what the applications service reports of the platform's unexpired tokens that are no longer valid: one
// token, those signed with a key, or those of a client from before a version of its record. See auth.Ended. It is the
// record of the events token.ended.
type EndedToken struct {
	TokenID       string     `json:"token_id,omitempty"`
	ClientID      string     `json:"client_id,omitempty"`
	ClientVersion int64      `json:"client_version,omitempty"`
	KeyID         string     `json:"key_id,omitempty"`
	Until         clock.Time `json:"until"`
}

// TokenEnded is the type of events about ended tokens.
const TokenEnded = "idp.token.ended"

// EndedPage asks for the page after the one whose Next is After; empty for the first page.
type EndedPage struct {
	After string `json:"after"`
}

// EndedList is a page of all that has ended, of all tenants. Next is empty on the last page.
type EndedList struct {
	Ended []EndedToken `json:"ended"`
	Next  string       `json:"next"`
}

// EndedQuestion asks the applications service. A service that starts is not ready until it has an answer.
var EndedQuestion = bus.Question[EndedPage, EndedList]{Service: "applications", Name: "ended-tokens"}

// EndedTokens makes a follower that tells a verifier which of the platform's tokens have ended. each calls its function
// with everything that ended before.
func EndedTokens(v *auth.Verifier, each func(context.Context, func(EndedToken) error) error) stream.FollowerConfig {
	end := func(e EndedToken) error {
		return v.End(auth.Ended{
			Issuer: auth.Platform, TokenID: e.TokenID, KeyID: e.KeyID, ClientID: e.ClientID,
			ClientVersion: e.ClientVersion, Until: e.Until,
		})
	}
	return stream.FollowerConfig{
		Name:     "ended-tokens",
		Types:    stream.Types{"token.ended"},
		Snapshot: func(ctx context.Context) error { return each(ctx, end) },
		Handle: func(_ context.Context, e stream.Event) error {
			var data struct{ Record EndedToken }
			if err := e.Read(&data); err != nil {
				return fmt.Errorf("the event %s: %w", e.ID, err)
			}
			return end(data.Record)
		},
	}
}

// endedTokens is EndedTokens for a service that is not the applications service. Without NATS it asks that over HTTP.
func (d Deps) endedTokens() stream.FollowerConfig {
	follower := EndedTokens(d.Verifier, d.askForEnded)
	if d.Introspect != nil {
		follower.Started = func(f *stream.Follower) {
			d.Verifier.AskMeanwhile(auth.Meanwhile{Age: f.Age, Active: d.Introspect})
		}
	}
	return follower
}

// askForEnded asks page by page.
func (d Deps) askForEnded(ctx context.Context, fn func(EndedToken) error) error {
	ctx = request.System(ctx, request.Platform)
	for page := (EndedPage{}); ; {
		answer, err := EndedQuestion.Ask(ctx, d.Bus, page)
		if err != nil {
			return err
		}
		for _, e := range answer.Ended {
			if err := fn(e); err != nil {
				return err
			}
		}
		if answer.Next == "" {
			return nil
		}
		page.After = answer.Next
	}
}
