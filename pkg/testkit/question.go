package testkit

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
)

var refusals = []apperr.Kind{
	apperr.InvalidParameters, apperr.Forbidden, apperr.NotFound, apperr.AlreadyExists, apperr.HasChildren, apperr.InUse,
	apperr.InvalidState, apperr.VersionMismatch, apperr.TooLarge, apperr.RateLimited,
}

// Ask asks a service with types of the test's own, like a service that was built with another version of the question.
func Ask[Resp any](ctx context.Context, b *bus.Bus, service, question string, req any) (Resp, error) {
	return bus.Question[any, Resp]{Service: service, Name: question}.Ask(ctx, b, req)
}

// AnswerFor answers in place of a service, with types of the test's own and any refusal.
func AnswerFor[Req, Resp any](b *bus.Bus, service, question string, fn func(ctx context.Context, req Req) (Resp,
	error)) error {
	return bus.Question[Req, Resp]{Service: service, Name: question, Refusals: refusals}.Answer(b, fn)
}
