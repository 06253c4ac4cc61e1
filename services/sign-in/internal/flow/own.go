package flow

import (
	"context"

	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// OwnPage is the protocol of the person's own page, which is no application's.
const OwnPage = "own"

func ownRequest() protocol.Request { return protocol.Request{Protocol: OwnPage} }

// OwnRequest is the request of the person's own page. fresh demands a new sign-in.
func OwnRequest(fresh bool) protocol.Request {
	r := ownRequest()
	r.Fresh = fresh
	return r
}

// Own leads to the person's own page.
type Own struct{}

// Grant implements protocol.Protocol.
func (Own) Grant(_ context.Context, issuer string, _ protocol.Request, _ protocol.Person) (protocol.Answer, error) {
	return protocol.Answer{URL: issuer}, nil
}

// Refuse implements protocol.Protocol.
func (Own) Refuse(_ context.Context, issuer string, _ protocol.Request, _ protocol.Refusal) (protocol.Answer, error) {
	return protocol.Answer{URL: issuer}, nil
}
