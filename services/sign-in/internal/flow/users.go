package flow

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
)

// users asks the users service. Passwords travel sealed with its key.
type users struct {
	bus *bus.Bus
	key atomic.Pointer[secret.TransitKey]
}

// verify asks whether a password is right.
func (e *Engine) verify(ctx context.Context, name, password string, v Visitor) (questions.LoginVerified, error) {
	known, err := e.Sessions.KnownTo(ctx, v.Browser)
	if err != nil {
		return questions.LoginVerified{}, err
	}
	return sealed(ctx, e.users, questions.ToVerify, name, password, func(box string) (questions.LoginVerified, error) {
		return questions.VerifyLogin.Ask(ctx, e.Bus, questions.Login{
			LoginName: name, Password: box, Browser: questions.Browser{ID: v.Browser, KnownTo: known},
		})
	})
}

// setPassword sets a new password for a user. proven says who it is, and what they have proven.
func (u *users) setPassword(ctx context.Context, password string, proven questions.NewPassword) (questions.SignedIn,
	error,
) {
	proven.ID = secret.Token(idBytes)
	return sealed(ctx, u, questions.ToSet, proven.UserID, password, func(box string) (questions.SignedIn, error) {
		proven.Password = box
		return questions.SetPassword.Ask(ctx, u.bus, proven)
	})
}

// sealed asks with a sealed password; again, if the service has another key than the one known.
func sealed[T any](ctx context.Context, u *users, use, whose, password string, ask func(box string) (T, error),
) (T, error) {
	use = questions.PasswordFor(use, request.Tenant(ctx), whose)
	var none T
	for again := false; ; again = true {
		key, err := u.transitKey(ctx)
		if err != nil {
			return none, err
		}
		box, err := key.Seal(password, use)
		if err != nil {
			return none, err
		}
		answer, err := ask(box)
		if apperr.KindOf(err) != apperr.VersionMismatch || err == nil || again {
			return answer, err
		}
		u.key.CompareAndSwap(key, nil)
	}
}

func (u *users) transitKey(ctx context.Context) (*secret.TransitKey, error) {
	if key := u.key.Load(); key != nil {
		return key, nil
	}
	key, err := questions.TransitKeyOfUsers.Ask(ctx, u.bus, questions.Nothing{})
	if err != nil {
		return nil, err
	}
	u.key.Store(&key)
	return &key, nil
}

// orNull is a record that may not be there.
func orNull(record json.RawMessage) json.RawMessage {
	if len(record) == 0 {
		return json.RawMessage("{}")
	}
	return record
}
