package application_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/picture"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/applications/internal/application"
	"github.com/idplatform/idplatform/services/applications/internal/template"
)

func TestMain(m *testing.M) { basic.Main(m) }

// A client is found in any tenant, with its valid secrets, until it is deleted. OnEnd is called in the transaction that
// ends its tokens.
func TestClient(t *testing.T) {
	t.Parallel()
	clock := basic.NewClock()
	store := basic.Store(t, clock, application.Collections()...)
	catalogue, err := template.Open()
	require.NoError(t, err)
	ends := map[string]bool{} // by version, because a transaction may run again
	apps := application.New(application.Deps{
		Store: store, Templates: catalogue, Pictures: picture.NewDecoder(picture.NewRoom(), prometheus.NewRegistry()),
		OnEnd: func(_ context.Context, _ *docstore.Tx, app *application.Application) error {
			ends[fmt.Sprint(app.ID, " ", app.Version)] = true
			return nil
		},
	})
	acme := request.System(t.Context(), "acme")
	created, err := apps.Create(acme, true, func(a *application.Application) error {
		return json.Unmarshal([]byte(`{"name":"a","category":"4","scopes":["users:read"],"jwks_uri":"https://a.test/jwks"}`), a)
	})
	require.NoError(t, err)
	app, err := created.Value()
	require.NoError(t, err)
	body, _, err := created.Stored()
	require.NoError(t, err)
	var shown struct {
		Secret string `json:"client_secret"`
	}
	require.NoError(t, json.Unmarshal(body, &shown))

	client := func() application.Client {
		t.Helper()
		c, err := apps.Client(t.Context(), app.ClientID)
		require.NoError(t, err)
		return c
	}
	c := client()
	require.Len(t, c.Secrets, 1)
	assert.True(t, c.Secrets[0].Matches(shown.Secret))
	assert.False(t, c.Secrets[0].Matches(c.Secrets[0].Hash), "the hash is not a secret")
	c.Secrets = nil
	assert.Equal(t, application.Client{
		Tenant: "acme", AppID: app.ID, ClientID: app.ClientID, Version: 1, Enabled: true, Category: "4",
		Scopes:  []string{"users:read"},
		JWKSURI: "https://a.test/jwks",
	}, c)

	fresh, err := apps.RefreshSecrets(acme, app.ID, time.Minute)
	require.NoError(t, err)
	c = client()
	require.Len(t, c.Secrets, 2)
	assert.Equal(t, clock.Now().Add(time.Minute), c.Secrets[0].Expires)
	assert.True(t, c.Secrets[1].Matches(fresh.ClientSecret))
	clock.Advance(time.Minute)
	assert.Len(t, client().Secrets, 1, "an expired secret is not returned")
	assert.Len(t, ends, 1)
	for range 2 {
		_, err = apps.Disable(acme, app.ID)
		require.NoError(t, err)
	}
	assert.False(t, client().Enabled)
	assert.Len(t, ends, 2, "disabling twice ends the tokens once")
	for change, ended := range map[string]int{
		`{"descr":"x"}`: 0, `{"scopes":["users:read","users:write"]}`: 0, `{"scopes":[]}`: 1,
		`{"jwks_uri":"https://b.test"}`: 1, `{"category":"1"}`: 1,
	} {
		_, err := apps.Update(acme, app.ID, func(a *application.Application) error {
			a.Scopes, a.JWKSURI, a.Category = []string{"users:read"}, "https://a.test/jwks", "4"
			return nil
		})
		require.NoError(t, err)
		before := len(ends)
		_, err = apps.Update(acme, app.ID,
			func(a *application.Application) error { return json.Unmarshal([]byte(change), a) })
		require.NoError(t, err)
		assert.Equal(t, ended, len(ends)-before, change)
	}
	_, err = apps.Client(t.Context(), "nobody")
	assert.True(t, apperr.IsNotFound(err))
}
