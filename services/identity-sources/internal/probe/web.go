package probe

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/services/identity-sources/internal/provider"
)

// get fetches a document. It does not follow redirects, because addresses of issuers and metadata are exact.
func (r *run) get(ctx context.Context, address, accept string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fault("the address is not a URL")
	}
	request.Header.Set("Accept", accept)
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode >= 300 && response.StatusCode < 400:
		return nil, faultf("%s redirects elsewhere; give the address that it redirects to", request.URL.Redacted())
	case response.StatusCode != http.StatusOK:
		return nil, faultf("%s answered with status %d; check the address", request.URL.Redacted(), response.StatusCode)
	}
	return io.ReadAll(response.Body)
}

// issuers are the issuers of providers that have one issuer for all clients.
var issuers = map[string]string{
	"google": "https://accounts.google.com",
	"apple":  "https://appleid.apple.com",
}

// issuer returns the issuer of a connection, where discovery starts.
func (r *run) issuer(of *provider.Provider) string {
	if of.ProviderCode == "microsoft" {
		return "https://login.microsoftonline.com/" + url.PathEscape(r.config.text("TenantId", "")) + "/v2.0"
	}
	if issuer, ok := issuers[of.ProviderCode]; ok {
		return issuer
	}
	return r.config.text("Issuer", "")
}

// discovery is the needed part of OpenID Provider Metadata (OpenID Connect Discovery 1.0 §3).
type discovery struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	JWKSURI               string   `json:"jwks_uri"`
	ResponseTypes         []string `json:"response_types_supported"`
}

// oidc checks the discovery document and the signing keys.
func (r *run) oidc(of *provider.Provider) {
	issuer := r.issuer(of)
	var found discovery
	discovered := r.step("discovery", func(ctx context.Context) (string, error) {
		text, err := r.get(ctx, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", "application/json")
		if err != nil {
			return "", err
		}
		if err := json.Unmarshal(text, &found); err != nil {
			return "", fault("the discovery document is not a JSON object; check the issuer")
		}
		if found.Issuer != issuer && !manyTenants(of, found.Issuer) {
			return "", faultf("the discovery document names another issuer, %.200q; the two must be exactly the same",
				found.Issuer)
		}
		if found.AuthorizationEndpoint == "" || found.TokenEndpoint == "" || found.JWKSURI == "" {
			return "", fault("the discovery document lacks authorization_endpoint, token_endpoint or jwks_uri")
		}
		return "the issuer is " + issuer, nil
	})
	if !discovered {
		return
	}
	r.step("keys", func(ctx context.Context) (string, error) {
		text, err := r.get(ctx, found.JWKSURI, "application/jwk-set+json, application/json")
		if err != nil {
			return "", err
		}
		keys, all, err := auth.ReadKeySet(text)
		if err != nil {
			return "", fault("the key set at jwks_uri can't be read, or has a key that is not public")
		}
		keys = slices.DeleteFunc(keys, func(key jose.JSONWebKey) bool { return key.Use == "enc" || !key.IsPublic() })
		usable := len(keys)
		if usable == 0 {
			return "", fault("the key set at jwks_uri has no key that could verify a signature")
		}
		if usable < all {
			return fmt.Sprintf("%s; %d others are left out", counted(usable, "signing key"), all-usable), nil
		}
		return counted(usable, "signing key"), nil
	})
}

// manyTenants reports whether an issuer is one of the common endpoints of Microsoft Entra ID, which have a placeholder
// for the tenant.
func manyTenants(of *provider.Provider, issuer string) bool {
	return of.ProviderCode == "microsoft" && strings.HasPrefix(issuer, "https://login.microsoftonline.com/")
}

// cas asks the server to validate a ticket that cannot exist (CAS Protocol 3.0 §2.5).
func (r *run) cas() {
	server := strings.TrimSuffix(r.config.text("ServerUrl", ""), "/")
	path := "/p3/serviceValidate"
	if r.config.text("Version", "3.0") == "2.0" {
		path = "/serviceValidate"
	}
	r.step("ticket validation", func(ctx context.Context) (string, error) {
		text, err := r.get(ctx, server+path+"?ticket=ST-0-test&service=https%3A%2F%2Fidplatform.invalid%2F",
			"application/xml")
		if err != nil {
			return "", err
		}
		var answer struct {
			XMLName xml.Name `xml:"http://www.yale.edu/tp/cas serviceResponse"`
			Failure *struct {
				Code string `xml:"code,attr"`
			} `xml:"authenticationFailure"`
		}
		if err := xml.Unmarshal(text, &answer); err != nil || answer.Failure == nil {
			return "", errors.Join(fault("the server does not answer as CAS does; check that the address is the "+
				"prefix of /login"), err)
		}
		return "the server validates tickets", nil
	})
}
