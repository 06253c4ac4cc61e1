package users

import (
	"context"
	"errors"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

// answerSignIn registers the answers to the sign-in service's questions. recipient opens the passwords in them.
func answerSignIn(b *bus.Bus, users *user.Users, recipient *secret.Recipient) error {
	return errors.Join(
		questions.TransitKeyOfUsers.Answer(b, func(context.Context, questions.Nothing) (secret.TransitKey, error) {
			return recipient.Key(), nil
		}),
		questions.VerifyLogin.Answer(b, func(ctx context.Context, q questions.Login) (questions.LoginVerified, error) {
			var none questions.LoginVerified
			password, err := open(ctx, recipient, q.Password, questions.ToVerify, q.LoginName)
			if err != nil {
				return none, err
			}
			login, err := users.SignIn(ctx, q.LoginName, password.Reveal(), q.Browser)
			if err != nil || !login.Verified {
				return questions.LoginVerified{Reason: login.Reason}, err
			}
			record, err := signedIn(login.Doc)
			return questions.LoginVerified{
				Verified: true, MustChangePassword: *login.MustChangePassword, SignedIn: record,
			}, err
		}),
		questions.RecoverableUser.Answer(b,
			func(ctx context.Context, q questions.LoginName) (questions.Recoverable, error) {
				doc, found, err := users.Recoverable(ctx, q.LoginName)
				if err != nil || !found {
					return questions.Recoverable{}, err
				}
				record, err := signedIn(doc)
				return questions.Recoverable{Found: true, SignedIn: record}, err
			}),
		questions.VerifyEmail.Answer(b, func(ctx context.Context, q questions.ProvenEmail) (questions.SignedIn, error) {
			doc, err := users.VerifyEmail(ctx, q.UserID, q.Email)
			if err != nil {
				return questions.SignedIn{}, err
			}
			return signedIn(doc)
		}),
		questions.InvitableUser.Answer(b,
			func(ctx context.Context, q questions.UserToInvite) (questions.Invitable, error) {
				doc, reason, err := users.Invitable(ctx, q.UserID)
				if err != nil {
					return questions.Invitable{}, err
				}
				record, err := signedIn(doc)
				return questions.Invitable{Reason: reason, SignedIn: record}, err
			}),
		questions.SetPassword.Answer(b, func(ctx context.Context, q questions.NewPassword) (questions.SignedIn, error) {
			password, err := open(ctx, recipient, q.Password, questions.ToSet, q.UserID)
			if err != nil {
				return questions.SignedIn{}, err
			}
			doc, err := users.RenewPassword(ctx, q.UserID, q.ID, password.Reveal(), user.Proven{
				TimePasswordChanged: q.TimePasswordChanged, Email: q.Email,
			})
			if err != nil {
				return questions.SignedIn{}, err
			}
			return signedIn(doc)
		}),
	)
}

func open(ctx context.Context, r *secret.Recipient, sealed, use, whose string) (secret.String, error) {
	password, err := r.Open(sealed, questions.PasswordFor(use, request.Tenant(ctx), whose))
	if err != nil {
		return password, apperr.New(apperr.VersionMismatch, "the password is not sealed with the service's present key")
	}
	return password, nil
}

func signedIn(doc user.Doc) (questions.SignedIn, error) {
	body, err := doc.JSON()
	return questions.SignedIn{User: body, Sequence: docstore.FirstSequence(doc.Revision()+1) - 1}, err
}
