package applications

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/services/applications/internal/application"
)

// Bootstrap is the credential of the platform's first administrator. It is an ordinary application once it is created.
type Bootstrap struct {
	ClientID     string        `mapstructure:"client_id" doc:"Client id of an administrator of the platform, which is created at the start if it does not exist"`
	ClientSecret secret.String `mapstructure:"client_secret" doc:"Its secret, at least 32 characters that cannot be guessed: openssl rand -base64 32"`
	Tenant       string        `mapstructure:"tenant" doc:"Its tenant"`
}

const defaultTenant = "default"

var clientID = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,64}$`)

// Validate is called by config.Load.
func (b Bootstrap) Validate() error {
	var faults []error
	if (b.ClientID == "") != b.ClientSecret.IsZero() {
		faults = append(faults, errors.New("client_id and client_secret go together"))
	}
	if b.ClientID != "" && !clientID.MatchString(b.ClientID) {
		faults = append(faults, errors.New("client_id must be 1…64 letters, digits and . _ ~ -"))
	}
	if !b.ClientSecret.IsZero() {
		if err := secret.CheckChosen(b.ClientSecret); err != nil {
			faults = append(faults, fmt.Errorf("client_secret %w; make one with: openssl rand -base64 32", err))
		}
	}
	if b.Tenant != "" && !auth.ValidTenant(b.Tenant) {
		faults = append(faults, errors.New("tenant must be 1…63 of a-z, 0-9, _ and -"))
	}
	return errors.Join(faults...)
}

// make creates the administrator if one is configured and does not exist.
func (b Bootstrap) make(ctx context.Context, d service.Deps, apps *application.Applications) error {
	if b.ClientID == "" {
		return nil
	}
	ctx = request.System(ctx, b.Tenant)
	credential := application.Credential{ClientID: b.ClientID, Secret: b.ClientSecret.Reveal()}
	valid, err := apps.EnsureAdministrator(ctx, credential)
	if err != nil {
		return fmt.Errorf("the bootstrap administrator: %w", err)
	}
	if !valid {
		d.Log.Warn("the configured secret is not valid for the bootstrap administrator: its secret was refreshed",
			"client_id", b.ClientID)
	}
	return nil
}
