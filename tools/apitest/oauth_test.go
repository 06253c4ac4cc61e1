package apitest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/client/rs"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// useOAuth is what a machine client does with a third-party library, unmodified: it finds the endpoints by discovery,
// gets a token by client credentials, uses it, has it verified and introspected, and revokes it.
func useOAuth(t *testing.T, p platform) {
	id, secret := p.createMachine(t)
	party, err := rp.NewRelyingPartyOIDC(t.Context(), p.url, id, secret, "", []string{"users:read"},
		rp.WithCustomDiscoveryUrl(p.url+"/.well-known/oauth-authorization-server"), // RFC 8414
		rp.WithVerifierOpts(rp.WithSupportedSigningAlgorithms("EdDSA")))
	require.NoError(t, err)
	given, err := rp.ClientCredentials(t.Context(), party, url.Values{})
	require.NoError(t, err)
	require.Equal(t, "Bearer", given.TokenType)

	verifier := op.NewAccessTokenVerifier(p.url, party.IDTokenVerifier().KeySet,
		op.WithSupportedAccessTokenSigningAlgorithms("EdDSA"))
	claims, err := op.VerifyAccessToken[*oidc.AccessTokenClaims](t.Context(), given.AccessToken, verifier)
	require.NoError(t, err)
	require.Equal(t, id, claims.Subject)

	require.Equal(t, http.StatusOK, p.status(t, "/v1/users", given.AccessToken))
	require.Equal(t, http.StatusForbidden, p.status(t, "/v1/applications", given.AccessToken))

	server, err := rs.NewResourceServerClientCredentials(t.Context(), p.url, id, secret,
		rs.WithStaticEndpoints(party.OAuthConfig().Endpoint.TokenURL, p.url+"/v1/oauth2/introspect"))
	require.NoError(t, err)
	introspect := func() *oidc.IntrospectionResponse {
		answer, err := rs.Introspect[*oidc.IntrospectionResponse](t.Context(), server, given.AccessToken)
		require.NoError(t, err)
		return answer
	}
	answer := introspect()
	require.True(t, answer.Active)
	require.Equal(t, id, answer.ClientID)
	require.Equal(t, oidc.SpaceDelimitedArray{"users:read"}, answer.Scope)

	require.NoError(t, rp.RevokeToken(t.Context(), party, given.AccessToken, "access_token"))
	require.False(t, introspect().Active)
	require.Equal(t, http.StatusUnauthorized, p.status(t, "/v1/applications", given.AccessToken))

	wrong, err := rp.NewRelyingPartyOAuth(party.OAuthConfig())
	require.NoError(t, err)
	wrong.OAuthConfig().ClientSecret = "another"
	_, err = rp.ClientCredentials(t.Context(), wrong, url.Values{})
	require.ErrorContains(t, err, "invalid_client")
}

// createMachine creates an application that gets tokens.
func (p platform) createMachine(t *testing.T) (id, secret string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, p.url+"/v1/applications",
		strings.NewReader(`{"name": "Billing", "category": "4", "scopes": ["users:read"]}`))
	require.NoError(t, err)
	request.Header = http.Header{"Authorization": {"Bearer " + p.token}, "Content-Type": {"application/json"}}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	var created struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&created))
	require.Equal(t, http.StatusOK, response.StatusCode)
	return created.ClientID, created.ClientSecret
}

// status is the status of a GET with a token.
func (p platform) status(t *testing.T, path, token string) int {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, p.url+path, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}
