package flow

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/factor"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// policy is what the methods of a template say of the factors that are shown or set up.
type policy struct {
	factor.Codes
	UserVerification string `json:"user_verification"`
	Attestation      string `json:"attestation"`
	// Discoverable says that the passkey must be one that the sign-in page finds without a login name.
	Discoverable bool `json:"-"`
}

// verificationRequired is the value of UserVerification with which only passkeys count that verify their user.
const verificationRequired = "required"

func policyOf(m questions.LoginMethod) (p policy) {
	_ = json.Unmarshal(m.Policy, &p) // empty if the service is of an earlier version
	return p
}

// policyOfAll is what the methods of some steps say together: the first one that says anything, but the strictest of
// passkeys.
func policyOfAll(steps []questions.LoginStep) (all policy) {
	for _, step := range steps {
		for _, m := range step.Methods {
			p := policyOf(m)
			switch m.Type {
			case proof.App:
				all.Codes = factor.Codes{
					Digits: cmp.Or(all.Digits, p.Digits), Period: cmp.Or(all.Period, p.Period),
				}
			case proof.Passkey:
				all.Attestation = cmp.Or(all.Attestation, p.Attestation)
				if all.UserVerification = cmp.Or(all.UserVerification, p.UserVerification); verifies(p) {
					all.UserVerification = verificationRequired
				}
			}
		}
	}
	return all
}

func verifies(p policy) bool { return p.UserVerification == verificationRequired }

// verifiesUsers reports whether only passkeys complete a step that verify their user.
func verifiesUsers(step questions.LoginStep) bool {
	passkeys := slices.DeleteFunc(slices.Clone(step.Methods), func(m questions.LoginMethod) bool {
		return m.Type != proof.Passkey
	})
	return len(passkeys) > 0 && !slices.ContainsFunc(passkeys, func(m questions.LoginMethod) bool {
		return !verifies(policyOf(m))
	})
}
