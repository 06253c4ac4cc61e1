package httpapi

import (
	"context"
	"net/http"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/sign-in/internal/flow"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc"
	"github.com/idplatform/idplatform/services/sign-in/internal/page"
)

// DeviceForm is a request of a program on a device without a browser (RFC 8628 §3.1).
type DeviceForm struct {
	Scope string `json:"scope,omitempty" doc:"Joined by spaces"`
	ClientForm
}

// UserCodeForm has the code that a device shows.
type UserCodeForm struct {
	UserCode string `json:"user_code" doc:"Without regard to case and dashes"`
}

type deviceInput struct {
	Call
	Form rest.Values[DeviceForm]
}

type devicePageInput struct{ Visitor }

type userCodeInput struct {
	Visitor
	Form rest.Values[UserCodeForm]
}

func (a *api) registerDevice(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "authorize-device", Method: http.MethodPost, Path: below + "/device_authorization",
		IfMatchParam: rest.NoRecord,
		Summary:      "Ask for a person by another device", Doc: "RFC 8628 §3.1.", OAuth: true, NoReplay: true,
		Errors: clientErrors, Request: DeviceForm{Scope: "openid", ClientForm: ClientForm{ClientID: "c1"}},
		Response: oidc.DeviceAnswer{DeviceCode: "GmRhmhcxhwAzkoEqiMEg_DnyEysNkuNhszIySk9eS", UserCode: "WDJB-MJHT",
			URI: "https://id.example.com/sign-in/acme/device", ExpiresIn: 600, Interval: 5,
			Complete: "https://id.example.com/sign-in/acme/device?user_code=WDJB-MJHT"},
	}, func(ctx context.Context, in *deviceInput) (oidc.DeviceAnswer, error) {
		return call(ctx, a, &in.Call, in.Form.Values, a.OIDC.Device)
	})
	rest.Handle(s, rest.Op{
		ID: "show-device-page", Method: http.MethodGet, Path: below + "/device", ErrorPage: a.failed,
		Summary: "Show where to enter a device's code", ContentTypes: htmlOnly, Response: examplePage,
		Doc: "RFC 8628 §3.3. With the code in the query, too, a button has to be pressed.",
	}, func(ctx context.Context, in *devicePageInput) (rest.Page, error) {
		ctx, v, err := a.enter(ctx, &in.Visitor)
		if err != nil {
			return rest.Page{}, err
		}
		q := in.Request.URL.Query()
		return a.devicePage(ctx, v, http.StatusOK, page.Device{Code: q.Get("user_code"), Done: q.Get("done")})
	})
	rest.Handle(s, rest.Op{
		ID: "enter-device-code", Method: http.MethodPost, Path: below + "/device", IfMatchParam: rest.NoRecord,
		ErrorPage: a.failed,
		Summary:   "Enter a device's code", ContentTypes: htmlOnly, Errors: []apperr.Kind{apperr.Forbidden},
		Request: UserCodeForm{"WDJB-MJHT"}, Response: examplePage,
	}, a.enterCode)
}

func (a *api) devicePage(ctx context.Context, v *visit, status int, c page.Device) (rest.Page, error) {
	v.choose(a.language(v), "", nil, "")
	if len(c.Code) > maxUserCode {
		c.Code = ""
	}
	return a.html(ctx, v, status, c)
}

const maxUserCode = 32 // bytes

// enterCode goes on with the request of the device, if there is one. Wrong codes count as wrong passwords do.
func (a *api) enterCode(ctx context.Context, in *userCodeInput) (rest.Page, error) {
	ctx, v, err := a.enter(ctx, &in.Visitor)
	if err != nil {
		return rest.Page{}, err
	}
	attempt, err := a.Engine.Admit(ctx, flow.DeviceCode, v.Visitor, "")
	if err != nil {
		return rest.Page{}, err
	}
	if attempt == nil {
		return a.tooManyCodes(ctx, v)
	}
	r, err := a.OIDC.DeviceRequest(ctx, in.Form.Get("user_code"))
	wrong := apperr.IsNotFound(err)
	if err != nil && !wrong {
		return rest.Page{}, err
	}
	told, failed := attempt.Settle(ctx, !wrong)
	switch {
	case failed != nil:
		return rest.Page{}, failed
	case !told:
		return a.tooManyCodes(ctx, v)
	case wrong:
		return a.devicePage(ctx, v, http.StatusOK, page.Device{Notice: "wrong_code"})
	}
	f, err := a.Engine.StoreRequest(ctx, r, v.Browser)
	if err != nil {
		return rest.Page{}, err
	}
	return a.redirect(v, v.base+"/flow/"+f.ID), nil
}

func (a *api) tooManyCodes(ctx context.Context, v *visit) (rest.Page, error) {
	p, err := a.devicePage(ctx, v, http.StatusTooManyRequests, page.Device{Notice: "too_many"})
	p.RetryAfter = busyFor
	return p, err
}
