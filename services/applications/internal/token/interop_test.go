package token_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// OAuth and OIDC libraries find the endpoints, get a token and verify it.
func TestUsualClients(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	defer server.Close()
	w := newWorld(t)
	w.publicURL = "http://" + server.Listener.Addr().String()
	w.Service = w.Replica(w.spec)
	const id, secret = "c 1", "s3cret/+ :%"
	w.clients.set(machine(id, "acme", secret, "users:read"))
	server.Config.Handler = w.Handler
	server.Start()
	client := server.Client()
	ctx := oidc.ClientContext(t.Context(), client)

	answer, err := client.Get(server.URL + "/.well-known/oauth-authorization-server")
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, "public, max-age=60", answer.Header.Get("Cache-Control"))
	var found oidc.ProviderConfig
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&found))
	require.Equal(t, server.URL, found.IssuerURL)
	provider := found.NewProvider(ctx)

	for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams,
		oauth2.AuthStyleAutoDetect} {
		config := clientcredentials.Config{
			ClientID: id, ClientSecret: secret, TokenURL: provider.Endpoint().TokenURL, Scopes: []string{"users:read"},
			AuthStyle: style,
		}
		given, err := config.Token(ctx)
		require.NoError(t, err)
		require.InDelta(t, time.Hour, time.Until(given.Expiry), float64(time.Minute))

		// go-oidc verifies with go-jose; the signer is golang-jwt.
		verifier := provider.VerifierContext(ctx,
			&oidc.Config{ClientID: server.URL, SupportedSigningAlgs: []string{oidc.EdDSA}})
		verified, err := verifier.Verify(ctx, given.AccessToken)
		require.NoError(t, err)
		require.Equal(t, id, verified.Subject)
		var claims struct {
			ClientID string `json:"client_id"`
			Scope    string `json:"scope"`
			Tenant   string `json:"tenant_id"`
		}
		require.NoError(t, verified.Claims(&claims))
		require.Equal(t, []string{id, "users:read", "acme"}, []string{claims.ClientID, claims.Scope, claims.Tenant})
	}
	bad := clientcredentials.Config{ClientID: id, ClientSecret: "x", TokenURL: provider.Endpoint().TokenURL,
		AuthStyle: oauth2.AuthStyleInHeader}
	_, err = bad.Token(ctx)
	var refused *oauth2.RetrieveError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "invalid_client", refused.ErrorCode)
	require.Equal(t, http.StatusUnauthorized, refused.Response.StatusCode)
}
