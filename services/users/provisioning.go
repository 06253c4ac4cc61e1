package users

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

// answerProvisioning registers the answers to the provisioning service's questions. recipient opens the passwords in
// them.
func answerProvisioning(b *bus.Bus, users *user.Users, recipient *secret.Recipient) error {
	return errors.Join(
		questions.FindUser.Answer(b, users.FindBy),
		questions.ChangeUser.Answer(b, func(ctx context.Context, c questions.UserChange) (questions.UserState, error) {
			if c.Password == "" {
				return users.ApplyChange(ctx, c, "")
			}
			var named struct {
				Username string `json:"username"`
			}
			if err := json.Unmarshal(c.Profile, &named); err != nil {
				return questions.UserState{}, apperr.Invalid("profile", "must be an object").Because(err)
			}
			password, err := open(ctx, recipient, c.Password, questions.ToProvision, named.Username)
			if err != nil {
				return questions.UserState{}, err
			}
			return users.ApplyChange(ctx, c, password.Reveal())
		}),
		questions.SettleUserChange.Answer(b, func(ctx context.Context, q questions.ChangeID) (questions.UserOutcome,
			error) {
			return users.SettleChange(ctx, q.ID)
		}),
	)
}
