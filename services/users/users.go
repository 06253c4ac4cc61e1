// Package users is the users service: user records, stored credentials and avatars. It exports only what a program
// needs to run it.
package users

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/picture"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/users/internal/credential"
	"github.com/idplatform/idplatform/services/users/internal/httpapi"
	"github.com/idplatform/idplatform/services/users/internal/password"
	"github.com/idplatform/idplatform/services/users/internal/realname"
	"github.com/idplatform/idplatform/services/users/internal/transfer"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

// Config holds the service's own settings.
type Config struct {
	PasswordMemory      uint32        `mapstructure:"password_memory_kib" doc:"argon2id: memory of one hash, in KiB"`
	PasswordIterations  uint32        `mapstructure:"password_iterations" doc:"argon2id: passes over the memory"`
	PasswordConcurrency int           `mapstructure:"password_concurrency" doc:"Hashes computed at the same time; 0 = one per processor"`
	LockoutFailures     int           `mapstructure:"lockout_failures" doc:"Wrong passwords that lock a user"`
	LockoutWithin       time.Duration `mapstructure:"lockout_within" doc:"The time in which they count"`
	LockoutFor          time.Duration `mapstructure:"lockout_for" doc:"How long the lock lasts"`
	RealNameVerifier    string        `mapstructure:"real_name_verifier" doc:"URL of the service that verifies real names; empty: only the form of the number is checked"`
}

// DefaultConfig follows OWASP's recommendation for argon2id.
func DefaultConfig() Config {
	return Config{
		PasswordMemory: 19456, PasswordIterations: 2,
		LockoutFailures: 5, LockoutWithin: 15 * time.Minute, LockoutFor: 15 * time.Minute,
	}
}

// maxLockoutFailures bounds the failed logins that are stored for each user.
const maxLockoutFailures = 100

// Spec describes the service with a configuration.
func Spec(c Config) service.Spec {
	return service.Spec{
		Name:        "users",
		Collections: slices.Concat(user.Collections(), credential.Collections(), transfer.Collections()),
		New:         c.new,
		CacheWeight: 3,
	}
}

func (c Config) new(ctx context.Context, d service.Deps) (service.App, error) {
	if c.LockoutFailures < 1 || c.LockoutFailures > maxLockoutFailures || c.LockoutWithin <= 0 || c.LockoutFor <= 0 {
		return service.App{},
			fmt.Errorf("lockout_failures must lie in 1…%d, lockout_within and lockout_for must be positive",
				maxLockoutFailures)
	}
	hasher, err := password.New(password.Config{
		Memory: c.PasswordMemory, Iterations: c.PasswordIterations, Parallelism: 1,
		MaxConcurrent: c.PasswordConcurrency,
	})
	if err != nil {
		return service.App{}, err
	}
	hashKey, err := d.DataKey(ctx, "id numbers")
	if err != nil {
		return service.App{}, err
	}
	transit, err := d.DataKey(ctx, "passwords in transit")
	if err != nil {
		return service.App{}, err
	}
	recipient, err := secret.NewRecipient(transit)
	if err != nil {
		return service.App{}, err
	}
	var verifier realname.Verifier
	if c.RealNameVerifier != "" {
		verifier = realname.HTTPVerifier{URL: c.RealNameVerifier, Client: d.Outbound}
	}
	users := user.New(user.Deps{
		Store: d.Store, Bus: d.Bus, Hasher: hasher, Pictures: picture.NewDecoder(d.Pictures, d.Metrics),
		Verifier: verifier,
		HashKey:  hashKey,
		Lockout:  user.Lockout{Failures: c.LockoutFailures, Within: c.LockoutWithin, For: c.LockoutFor},
		OnDelete: credential.DeleteOf, Bind: credential.Bind,
	})
	credentials := credential.New(credential.Deps{Store: d.Store, Bus: d.Bus})
	transfers := transfer.New(transfer.Deps{Store: d.Store, Users: users, Log: d.Log})

	server := d.Server("users")
	httpapi.Register(server, users, credentials, transfers)
	return service.App{
		Handler: server,
		Tasks: []service.Task{
			d.DueTask(service.DueWork{Name: "apply due changes of users", Every: time.Second, Due: user.Due,
				Do: users.ApplyDue}),
			d.DueTask(service.DueWork{
				Name: "finish organization changes", Every: 5 * time.Second, Due: user.DueOrganizationChanges,
				Do: users.FinishOrganizationChange,
			}),
			d.DueTask(service.DueWork{Name: "forget changes", Every: time.Minute, Due: user.DueChanges,
				Do: users.ForgetChange}),
			d.DueTask(service.DueWork{Name: "forget second factors", Every: time.Minute, Due: user.DueFactors,
				Do: users.DropFactor}),
			d.DueTask(service.DueWork{Name: "forget imports", Every: time.Minute, Due: transfer.Due,
				Do: transfers.Forget}),
		},
		Consumers: []stream.ConsumerConfig{{
			Name: "users-factors", Types: stream.Types{"factor.created", "factor.deleted"},
			Handle: func(ctx context.Context, e stream.Event) error { return onFactor(ctx, users, e) },
		}},
		Answer: func(b *bus.Bus) error {
			return errors.Join(answer(b, users, credentials), answerSignIn(b, users, credentials, recipient),
				answerProvisioning(b, users, recipient))
		},
	}, nil
}

// onFactor keeps which second factors users have: login-verification tells it.
func onFactor(ctx context.Context, users *user.Users, e stream.Event) error {
	if strings.HasSuffix(e.Type, ".deleted") {
		return users.ForgetFactor(ctx, e.Subject)
	}
	var data struct {
		Record struct {
			UserID string `json:"user_id"`
			Type   string `json:"type"`
		} `json:"record"`
	}
	if err := e.Read(&data); err != nil {
		return err
	}
	return users.KeepFactor(ctx, e.Subject, data.Record.UserID, data.Record.Type)
}

// answer registers the answers to other services' questions.
func answer(b *bus.Bus, users *user.Users, credentials *credential.Credentials) error {
	return errors.Join(
		questions.ExistingUsers.Answer(b, func(ctx context.Context, q questions.UserIDs) (questions.UserIDs, error) {
			existing, err := users.Existing(ctx, q.IDs)
			return questions.UserIDs{IDs: existing}, err
		}),
		questions.NextUsersTenant.Answer(b, func(ctx context.Context, q questions.TenantName) (questions.TenantName,
			error) {
			next, err := users.NextTenant(ctx, q.Tenant)
			return questions.TenantName{Tenant: next}, err
		}),
		questions.UserRecords.Answer(b, func(ctx context.Context, q questions.UsersPage) (questions.Records, error) {
			return users.Records(ctx, q)
		}),
		questions.UserPlaces.Answer(b, users.Places),
		questions.SettingsOfUsers.Answer(b, func(ctx context.Context, _ questions.Nothing) (questions.UserSettings,
			error) {
			may, err := user.MayShare(ctx, users.Store)
			return questions.UserSettings{SharedContacts: may}, err
		}),
		questions.MatchingUsers.Answer(b, func(ctx context.Context, q questions.Search) (questions.Found, error) {
			ids, more, err := users.Matching(ctx, q.Keyword, q.IDs, q.Limit)
			return questions.Found{IDs: ids, More: more}, err
		}),
		questions.CredentialsOfConnection.Answer(b,
			func(ctx context.Context, q questions.ConnectionNumber) (questions.Count, error) {
				n, err := credentials.CountOf(ctx, q.ID)
				return questions.Count{Count: n}, err
			}),
	)
}
