package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

// maxFaults bounds the faults told of one request: a body can hold a million unknown members.
const maxFaults = 100

// refusal is a problem document as huma wants its errors.
type refusal struct {
	problem.Document
	err error
}

func (r *refusal) Error() string             { return r.err.Error() }
func (r *refusal) GetStatus() int            { return r.Status }
func (r *refusal) ContentType(string) string { return problem.ContentType }

// huma keeps these in package variables, so they are set here once and for all.
func init() {
	huma.ValidateStrictCasing = true // "Username" is an unknown member, not a second way to write username
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return newRefusal(refused(status, message, errs), "")
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		return newRefusal(refused(status, message, errs), ctx.Header("X-Request-Id"))
	}
	validation.MsgUnexpectedProperty = "is not a known member"
	validation.MsgExpectedRequiredProperty = "must have the member %s"
}

func newRefusal(err error, requestID string) *refusal {
	return &refusal{problem.Of(err, requestID), err}
}

// refused turns what huma found wrong with a request into our kinds. The rejected values that huma's details hold go no further.
func refused(status int, message string, errs []error) error {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return apperr.New(apperr.TooLarge, "the body is too large")
	case http.StatusUnsupportedMediaType:
		return apperr.New(apperr.UnsupportedMediaType, "the body must be application/json")
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestTimeout:
	default:
		return errors.Join(append([]error{errors.New(message)}, errs...)...)
	}
	var faults apperr.Faults
	for i, err := range errs {
		if i == maxFaults {
			faults.Add("body", "has more faults than are listed")
			break
		}
		if detail, ok := errors.AsType[*huma.ErrorDetail](err); ok {
			faults.Add(detail.Location, "%s", harmless(detail.Message))
		} else {
			faults.Add("body", "could not be read")
		}
	}
	if len(errs) == 0 {
		faults.Add("body", "%s", strings.TrimPrefix(message, "request body "))
	}
	return faults.Err()
}

// harmless cuts off what parsers of formats and of JSON say about the value itself.
func harmless(message string) string {
	for _, cut := range []string{"expected string to be RFC 5322 email", "expected string to be RFC 3986 uri", "expected string to be RFC 4122 uuid", "expected string to be regex"} {
		if strings.HasPrefix(message, cut) {
			return cut
		}
	}
	switch {
	case strings.HasPrefix(message, "invalid character"), strings.HasPrefix(message, "unexpected end of JSON"):
		return "is not valid JSON"
	case strings.HasPrefix(message, "json: "), strings.HasPrefix(message, "parsing time"):
		return "has a member of the wrong type"
	}
	return message
}

// fail answers with err.
func (s *Server) fail(ctx context.Context, w http.ResponseWriter, err error) int {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		err = apperr.New(apperr.Unavailable, "the operation took too long").Because(err)
	}
	problem.Write(w, err)
	return problem.Status(apperr.KindOf(err))
}
