package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

// maxFaults bounds the faults that are reported for one request: a body can have a million unknown members.
const maxFaults = 100

// refusal is a problem document in the form that huma expects of errors.
type refusal struct {
	problem.Document
	err error
}

func (r *refusal) Error() string             { return r.err.Error() }
func (r *refusal) GetStatus() int            { return r.Status }
func (r *refusal) ContentType(string) string { return problem.ContentType }

// These are package variables of huma, so they are set once, here.
func init() {
	huma.ValidateStrictCasing = true // "Username" is an unknown member, not another spelling of username
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return newRefusal(refused(status, message, errs), "")
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		err := refused(status, message, errs)
		if call, ok := ctx.Context().Value(callKey{}).(*call); ok && len(call.faults) > 0 {
			err = call.with(withoutBody(err))
		}
		if call, ok := ctx.Context().Value(callKey{}).(*call); ok && call.op.OAuth {
			return &oauthRefusal{oauthFault(err), err}
		} else if ok && call.op.SCIM != nil {
			return &scimRefusal{call.op.SCIM, err}
		}
		return newRefusal(err, ctx.Header("X-Request-Id"))
	}
	huma.ErrorFormatter = func(format string, args ...any) string {
		if without, cut := strings.CutSuffix(format, ": %v"); cut {
			return without // the format's parser repeats the value in its error
		}
		return fmt.Sprintf(format, args...)
	}
	validation.MsgUnexpectedProperty = "is not a known member"
	validation.MsgExpectedRequiredProperty = missingMember + "%s"
	// null is not a list: it would become an empty one without any check of its limits
	huma.DefaultArrayNullable = false
}

const (
	missingMember = "must have the member "
	missing       = "must be there"
)

func newRefusal(err error, requestID string) *refusal {
	return &refusal{problem.Of(err, requestID), err}
}

// withoutBody returns err without the fault of a body that could not be decoded: the faults of its members say why.
func withoutBody(err error) error {
	e, ok := errors.AsType[*apperr.Error](err)
	if !ok {
		return err
	}
	left := *e
	left.Faults = slices.DeleteFunc(slices.Clone(e.Faults), func(f apperr.Fault) bool { return f.Location == "body" })
	return &left
}

// refused translates huma's errors into the platform's kinds. It drops the rejected values that huma's details contain.
func refused(status int, message string, errs []error) error {
	if status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
		return errors.Join(append([]error{errors.New(message)}, errs...)...)
	}
	var faults []apperr.Fault
	for _, err := range errs {
		if faults = append(faults, faultOf(err)); len(faults) > maxFaults {
			break
		}
	}
	if len(errs) == 0 {
		faults = append(faults, apperr.Fault{Location: "body", Message: strings.TrimPrefix(message, "request body ")})
	}
	return bounded(faults).Err()
}

// faultOf translates one of huma's errors.
func faultOf(err error) apperr.Fault {
	detail, ok := errors.AsType[*huma.ErrorDetail](err)
	if !ok {
		return apperr.Fault{Location: "body", Message: "could not be read"}
	}
	fault := apperr.Fault{Location: detail.Location, Message: harmless(detail.Message)}
	// huma reports the object that lacks the member
	if member, ok := strings.CutPrefix(fault.Message, missingMember); ok {
		fault.Location, fault.Message = fault.Location+"."+member, missing
	}
	fault.Location = shortened(fault.Location)
	return fault
}

// bounded limits faults to as many as are reported for one request.
func bounded(list []apperr.Fault) *apperr.Faults {
	var faults apperr.Faults
	for i, fault := range list {
		if i == maxFaults {
			faults.Add("body", "has more faults than are listed")
			break
		}
		faults.Add(fault.Location, "%s", fault.Message)
	}
	return &faults
}

// harmless removes what a parameter's parser repeats of the value.
func harmless(message string) string {
	if strings.HasPrefix(message, "invalid value: ") {
		return "invalid value"
	}
	return message
}

// shortened bounds the length of a location, which can contain names that the client made up.
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
		problem.Write(w, apperr.New(apperr.Unavailable, "the client closed the request"))
		return statusGivenUp
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		err = apperr.New(apperr.Unavailable, "the operation took too long").Because(err)
	}
	s.noteDenied(ctx, op, r, err)
	switch {
	case op.ErrorPage != nil:
		writePage(op, w, r, err)
	case op.OAuth:
		writeOAuth(w, err, r.Header.Get("Authorization"))
	case op.SCIM != nil:
		writeSCIM(w, err, op.SCIM)
	default:
		problem.Write(w, err)
	}
	return problem.Status(apperr.KindOf(err))
}

// statusGivenUp is the status in metrics and logs of a request whose client disconnected before the answer. That is not
// the server's fault. The number is that of nginx.
const statusGivenUp = 499
