package rest

import (
	"context"
	"errors"
	"fmt"
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
		err := refused(status, message, errs)
		if call, ok := ctx.Context().Value(callKey{}).(*call); ok && len(call.unknown) > 0 {
			err = withUnknown(call.unknown, err)
		}
		if call, ok := ctx.Context().Value(callKey{}).(*call); ok && call.op.OAuth {
			return &oauthRefusal{oauthFault(err), err}
		}
		return newRefusal(err, ctx.Header("X-Request-Id"))
	}
	huma.ErrorFormatter = func(format string, args ...any) string {
		if without, cut := strings.CutSuffix(format, ": %v"); cut {
			return without // what the parser of a format says of the value repeats it
		}
		return fmt.Sprintf(format, args...)
	}
	validation.MsgUnexpectedProperty = "is not a known member"
	validation.MsgExpectedRequiredProperty = missingMember + "%s"
	huma.DefaultArrayNullable = false // null is no list: it would be an empty one that no limit has seen
}

const missingMember = "must have the member "

func newRefusal(err error, requestID string) *refusal {
	return &refusal{problem.Of(err, requestID), err}
}

// refused turns what huma found wrong with a request into our kinds. The rejected values that huma's details hold go no further.
func refused(status int, message string, errs []error) error {
	if status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
		return errors.Join(append([]error{errors.New(message)}, errs...)...)
	}
	var faults []apperr.Fault
	for _, err := range errs {
		fault := apperr.Fault{Location: "body", Message: "could not be read"}
		if detail, ok := errors.AsType[*huma.ErrorDetail](err); ok {
			fault = apperr.Fault{Location: detail.Location, Message: harmless(detail.Message)}
			if member, ok := strings.CutPrefix(fault.Message, missingMember); ok { // huma names the object that it is missing from
				fault.Location, fault.Message = fault.Location+"."+member, "must be there"
			}
			fault.Location = shortened(fault.Location)
		}
		if faults = append(faults, fault); len(faults) > maxFaults {
			break
		}
	}
	if len(errs) == 0 {
		faults = append(faults, apperr.Fault{Location: "body", Message: strings.TrimPrefix(message, "request body ")})
	}
	return bounded(faults).Err()
}

// harmless cuts off what the parser of a parameter says of the value.
func harmless(message string) string {
	if strings.HasPrefix(message, "invalid value: ") {
		return "invalid value"
	}
	return message
}

// shortened bounds a location: it can hold names of the client's making.
func shortened(location string) string {
	const most = 200
	if len(location) <= most {
		return location
	}
	return strings.ToValidUTF8(location[:most], "") + "…"
}

// fail answers with err.
func (s *Server) fail(ctx context.Context, op *Op, w http.ResponseWriter, r *http.Request, err error) (status int) {
	switch {
	case errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled):
		problem.Write(w, apperr.New(apperr.Unavailable, "the request was given up"))
		return statusGivenUp
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		err = apperr.New(apperr.Unavailable, "the operation took too long").Because(err)
	}
	if op.OAuth {
		writeOAuth(w, err, r.Header.Get("Authorization"))
	} else {
		problem.Write(w, err)
	}
	return problem.Status(apperr.KindOf(err))
}

// statusGivenUp is what metrics and logs say of a request whose client left before the answer: it is no fault of ours. The number is nginx's.
const statusGivenUp = 499
