package oidc

import (
	"github.com/idplatform/idplatform/pkg/clientauth"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc/keys"
)

// Metadata is the discovery document (OpenID Connect Discovery §3, RFC 8414 §2, and the standards that add members).
type Metadata struct {
	Issuer                   string   `json:"issuer" doc:"The provider's name, which tokens have as iss"`
	AuthorizationEndpoint    string   `json:"authorization_endpoint" doc:"Where people are sent"`
	TokenEndpoint            string   `json:"token_endpoint" doc:"Where applications get tokens"`
	UserInfoEndpoint         string   `json:"userinfo_endpoint" doc:"Where applications get a person's claims"`
	JWKSURI                  string   `json:"jwks_uri" doc:"The public keys"`
	PushedEndpoint           string   `json:"pushed_authorization_request_endpoint" doc:"RFC 9126"`
	DeviceEndpoint           string   `json:"device_authorization_endpoint" doc:"RFC 8628"`
	EndSessionEndpoint       string   `json:"end_session_endpoint" doc:"Where people are sent to sign out"`
	IntrospectionEndpoint    string   `json:"introspection_endpoint" doc:"RFC 7662"`
	RevocationEndpoint       string   `json:"revocation_endpoint" doc:"RFC 7009"`
	ScopesSupported          []string `json:"scopes_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	ClaimsSupported          []string `json:"claims_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	ResponseTypes            []string `json:"response_types_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	ResponseModes            []string `json:"response_modes_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	GrantTypes               []string `json:"grant_types_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	SubjectTypes             []string `json:"subject_types_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	ACRValues                []string `json:"acr_values_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	Prompts                  []string `json:"prompt_values_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	Locales                  []string `json:"ui_locales_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	ChallengeMethods         []string `json:"code_challenge_methods_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	IDTokenAlgorithms        []string `json:"id_token_signing_alg_values_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	TokenMethods             []string `json:"token_endpoint_auth_methods_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	TokenAlgorithms          []string `json:"token_endpoint_auth_signing_alg_values_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	IntrospectionMethods     []string `json:"introspection_endpoint_auth_methods_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	IntrospectionAlgorithms  []string `json:"introspection_endpoint_auth_signing_alg_values_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	RevocationMethods        []string `json:"revocation_endpoint_auth_methods_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	RevocationAlgorithms     []string `json:"revocation_endpoint_auth_signing_alg_values_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	ClaimsParameter          bool     `json:"claims_parameter_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	RequestParameter         bool     `json:"request_parameter_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	RequestURIParameter      bool     `json:"request_uri_parameter_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	IssuerParameter          bool     `json:"authorization_response_iss_parameter_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	BackchannelLogout        bool     `json:"backchannel_logout_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	BackchannelLogoutSession bool     `json:"backchannel_logout_session_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	FrontchannelLogout       bool     `json:"frontchannel_logout_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
	FrontchannelSession      bool     `json:"frontchannel_logout_session_supported" doc:"As OpenID Connect Discovery §3 and the standards that add to it say"`
}

// Discovery returns the discovery document of an issuer.
func Discovery(issuer string) Metadata {
	withSecret := clientMethods[:len(clientMethods)-1] // none is the last
	return Metadata{
		Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token",
		UserInfoEndpoint: issuer + "/userinfo", JWKSURI: issuer + "/jwks", PushedEndpoint: issuer + "/par",
		EndSessionEndpoint: issuer + "/logout", IntrospectionEndpoint: issuer + "/introspect",
		RevocationEndpoint: issuer + "/revoke", DeviceEndpoint: issuer + "/device_authorization",
		ScopesSupported: Scopes,
		ClaimsSupported: []string{
			"iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr", "sid", "at_hash", "name",
			"given_name", "family_name", "middle_name", "preferred_username", "gender", "locale", "zoneinfo", "picture", "updated_at", "email", "email_verified",
			"phone_number", "phone_number_verified", "groups", "sub_account",
		},
		ResponseTypes: []string{"code"}, ResponseModes: []string{query, formPost},
		GrantTypes: []string{grantCode, grantRefresh, grantDevice}, SubjectTypes: []string{"public"},
		ACRValues: classes[:2], Prompts: []string{"none", "login", "consent", "select_account"},
		Locales: []string{"en", "zh-Hans"}, ChallengeMethods: []string{"S256"}, IDTokenAlgorithms: keys.Algorithms,
		TokenMethods: clientMethods, TokenAlgorithms: clientauth.Algorithms,
		IntrospectionMethods: withSecret, IntrospectionAlgorithms: clientauth.Algorithms,
		RevocationMethods: clientMethods, RevocationAlgorithms: clientauth.Algorithms,
		ClaimsParameter: true, IssuerParameter: true,
		BackchannelLogout: true, BackchannelLogoutSession: true, FrontchannelLogout: true, FrontchannelSession: true,
	}
}
