package users

import (
	"context"
	"errors"
	"strconv"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/users/internal/credential"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

// answerSignIn registers the answers to the sign-in service's questions. recipient opens the passwords in them.
func answerSignIn(b *bus.Bus, users *user.Users, credentials *credential.Credentials, recipient *secret.Recipient,
) error {
	links := links{users, credentials}
	return errors.Join(
		questions.FindLinked.Answer(b, links.find),
		questions.Link.Answer(b, links.link),
		questions.LinksOf.Answer(b, func(ctx context.Context, q questions.LinksQuestion) (questions.UserLinks, error) {
			return credentials.LinksOf(ctx, q.UserID)
		}),
		questions.Unlink.Answer(b, links.unlink),
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

// links answer whom the identities of other providers are linked to.
type links struct {
	users       *user.Users
	credentials *credential.Credentials
}

func (l links) find(ctx context.Context, in questions.ForeignIdentity) (questions.Linked, error) {
	c, err := l.credentials.OfIdentity(ctx, in)
	switch {
	case apperr.IsNotFound(err):
		return questions.Linked{Reason: questions.NotLinked}, nil
	case err != nil:
		return questions.Linked{}, err
	}
	return l.linked(ctx, c)
}

func (l links) linked(ctx context.Context, c *credential.Credential) (questions.Linked, error) {
	if c.Status != "1" {
		return questions.Linked{Reason: questions.LinkDisabled}, nil
	}
	doc, reason, scoped, err := l.users.MayEnter(ctx, strconv.FormatInt(c.UserID, 10))
	if apperr.IsNotFound(err) { // the user is being deleted
		return questions.Linked{Reason: questions.NotLinked}, nil
	}
	if err != nil || reason != "" {
		return questions.Linked{Reason: reason}, err
	}
	in, err := signedIn(doc)
	return questions.Linked{LinkID: c.ID, HasScopes: scoped, SignedIn: in}, err
}

func (l links) link(ctx context.Context, q questions.NewLink) (questions.Linked, error) {
	userID, notLinked := q.UserID, questions.Linked{Reason: questions.NotLinked}
	if q.Email != "" {
		var err error
		if userID, err = l.users.OfVerifiedEmail(ctx, q.Email); err != nil || userID == "" {
			return notLinked, err
		}
		_, reason, scoped, err := l.users.MayEnter(ctx, userID)
		if err != nil {
			return notLinked, apperr.Ignore(err, apperr.NotFound)
		}
		if reason != "" || scoped {
			return notLinked, nil
		}
	}
	c, err := l.credentials.Link(ctx, q.ForeignIdentity, userID, func(ctx context.Context, tx *docstore.Tx) error {
		return l.users.CheckLinked(ctx, tx, userID, q.Email)
	})
	if err != nil {
		return questions.Linked{}, err
	}
	return l.linked(ctx, c)
}

func (l links) unlink(ctx context.Context, q questions.EndedLink) (questions.Nothing, error) {
	return questions.Nothing{}, l.credentials.Unlink(ctx, q.ID, q.UserID, q.Disabled,
		func(ctx context.Context, tx *docstore.Tx) (bool, error) {
			if q.MayBeLast {
				return true, nil
			}
			return l.users.HasPassword(ctx, tx, q.UserID)
		})
}
