package questions

import (
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
)

// SecondStep is somebody whose password is right, on the way to an application.
type SecondStep struct {
	UserID string `json:"user_id"`
	// AppID is the application; empty: what the tenant demands of everybody.
	AppID string `json:"app_id,omitempty"`
	// Code is of an authenticator app; empty: none was given. It serves once.
	Code string `json:"code,omitempty"`
	// User is the record, in the form that events carry.
	User json.RawMessage `json:"user"`
}

// Due is what is due after a password.
type Due struct {
	// Required says that something is.
	Required bool `json:"required"`
	// Methods are the types of factors that the person can show for it; none: they have to set one up, if they can.
	Methods []string `json:"methods,omitempty"`
	// Refused says why the code was refused: InvalidCode or CodesBlocked.
	Refused string `json:"refused,omitempty"`
}

// The values of Due.Refused.
const (
	InvalidCode  = "invalid_otp"
	CodesBlocked = "otp_blocked" // too many were wrong
)

// WhatIsDue asks what an application demands after a password, and whether a code is right. Refused with NotFound, if
// there is no such application that is enabled.
var WhatIsDue = bus.Question[SecondStep, Due]{
	Service: "sign-in", Name: "what-is-due", Refusals: []apperr.Kind{apperr.NotFound},
}
