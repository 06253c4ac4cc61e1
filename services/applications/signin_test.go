package applications_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/services/questions"
)

func TestAnswerClient(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	made := c.Post("/v1/applications", object{
		"name": "Shop", "redirect_url": "https://shop.example.com/a, https://shop.example.com/b",
		"logout_url": "https://shop.example.com/bye", "login_url": "https://shop.example.com",
		"config_prop": object{"allowed_login_method": object{"name": "strong"}, "mfa_enabled": "1"},
	}).Object()
	id, clientID, secret := made["id"].(string), made["client_id"].(string), made["client_secret"].(string)
	of := func(tenant string, name questions.ClientName) (questions.Client, error) {
		return questions.ClientOf.Ask(request.System(t.Context(), tenant), s.Deps.Bus, name)
	}
	sum := sha256.Sum256([]byte(secret))
	want := questions.Client{
		AppID: id, ClientID: clientID, Name: "Shop", Category: "1", Enabled: true, SSO: true, MFA: true,
		LoginURL: "https://shop.example.com", LogoutURL: "https://shop.example.com/bye", LoginTemplate: "strong",
		RedirectURLs: []string{"https://shop.example.com/a", "https://shop.example.com/b"},
		OIDC:         &questions.OIDCSettings{SignatureAlgorithm: "RS256", LifetimeInSeconds: 3600},
		Secrets:      []questions.HashedSecret{{SHA256: hex.EncodeToString(sum[:])}},
	}
	for _, name := range []questions.ClientName{{ClientID: clientID}, {AppID: id}} {
		found, err := of("acme", name)
		require.NoError(t, err)
		require.Equal(t, want, found)
		_, err = of("globex", name)
		require.Equal(t, apperr.NotFound, apperr.KindOf(err), "another tenant's")
	}
	_, err := of("acme", questions.ClientName{ClientID: "unknown"})
	require.Equal(t, apperr.NotFound, apperr.KindOf(err))

	for channels, refused := range map[string]bool{
		`["mail","sms"]`: false, `["sms"]`: true, `[]`: true, `null`: false,
	} {
		c.Patch("/v1/applications/"+id+"/configs", object{
			"access_policy": object{"forget_password": json.RawMessage(channels)},
		}).OK(nil)
		found, err := of("acme", questions.ClientName{AppID: id})
		require.NoError(t, err)
		require.Equal(t, refused, found.NoMailRecovery, channels)
	}
	for config, want := range map[string]map[string]bool{
		`null`: nil, `{}`: nil, `{"google": 1, "github": 0}`: {"google": true, "github": false},
	} {
		for _, value := range []any{nil, json.RawMessage(config)} {
			c.Patch("/v1/applications/"+id+"/configs", object{"allowed_social_login_provider": value}).OK(nil)
		}
		found, err := of("acme", questions.ClientName{AppID: id})
		require.NoError(t, err)
		require.Equal(t, want, found.SocialProviders, config)
	}
	c.Patch("/v1/applications/"+id+"/configs", object{"default_login_method": "corp"}).OK(nil)
	client, err := of("acme", questions.ClientName{AppID: id})
	require.NoError(t, err)
	require.Equal(t, "corp", client.FirstMethod)
	for config, want := range map[string]questions.Client{
		`{}`: {}, `{"methods": [], "enrol": "offer", "remember_days": 0}`: {},
		`{"methods": ["otp"], "enrol": "demand", "more": 1}`: {MFAMethods: []string{"otp"}},
		`{"enrol": "off"}`: {MFANoSetUp: true},
	} {
		c.Patch("/v1/applications/"+id+"/configs", object{"mfa_config": nil}).OK(nil)
		c.Patch("/v1/applications/"+id+"/configs", object{"mfa_config": json.RawMessage(config)}).OK(nil)
		found, err := of("acme", questions.ClientName{AppID: id})
		require.NoError(t, err)
		require.Len(t, found.MFAMethods, len(want.MFAMethods), config)
		require.Subset(t, found.MFAMethods, want.MFAMethods, config)
		require.Equal(t, want.MFANoSetUp, found.MFANoSetUp, config)
	}
	for config, location := range map[string]string{
		`{"methods": ["password"]}`: "methods[0]", `{"enrol": "perhaps"}`: "enrol", `{"remember_days": 30}`: "remember_days",
	} {
		c.Patch("/v1/applications/"+id+"/configs", object{"mfa_config": json.RawMessage(config)}).
			Problem(400, "invalid_parameters", "body.mfa_config."+location)
	}
	c.Post("/v1/applications/"+id+"/protocols/oidc/disable", nil).OK(nil)
	c.Patch("/v1/applications/"+id, object{"category": "2"}).OK(nil)
	c.Post("/v1/applications/"+id+"/idp", object{"config_id": "31"}).OK(nil)
	public, err := of("acme", questions.ClientName{AppID: id})
	require.NoError(t, err)
	require.Nil(t, public.OIDC, "the protocol is disabled")
	require.Empty(t, public.Secrets, "a public client has no secret to prove who it is")
	require.Equal(t, []string{"31"}, public.Sources)
}

// signInProp has every member that can be set.
func signInProp(t *testing.T) object {
	_, cert := rsaPair(t)
	return object{
		"consent": "1", "audiences": []any{"https://api.shop.test", "urn:shop:api"},
		"post_logout_urls":       []any{"https://shop.test/bye", "http://localhost:8080/bye"},
		"backchannel_logout_url": "https://shop.test/back", "frontchannel_logout_url": "https://shop.test/front",
		"slo_url": "https://shop.test/slo", "slo_binding": "post", "slo_soap_url": "https://shop.test/soap",
		"acs_urls": []any{"https://shop.test/acs2"}, "sp_certs": []any{cert},
		"signed_requests": "1", "idp_initiated": "0",
	}
}

func TestSignInProp(t *testing.T) {
	t.Parallel()
	_, c := acme(t)
	prop := signInProp(t)
	app := addApp(t, c, "Shop", object{"sign_in_prop": prop})
	require.Equal(t, prop, app["sign_in_prop"])
	require.Equal(t, prop, c.Get(path(app)).Object()["sign_in_prop"])
	changed := c.Patch(path(app), object{"sign_in_prop": object{"consent": "0", "sp_certs": nil}}).Object()
	require.Equal(t, "0", changed["sign_in_prop"].(object)["consent"])
	require.NotContains(t, changed["sign_in_prop"], "sp_certs")
	require.Equal(t, prop["audiences"], changed["sign_in_prop"].(object)["audiences"])
	require.NotContains(t, addApp(t, c, "Other"), "sign_in_prop", "all of it is optional")

	_, curve, _ := keyPair(t, ecKey(t))
	many := make([]any, 21)
	for i := range many {
		many[i] = "https://shop.test/" + strings.Repeat("a", i)
	}
	for name, row := range map[string]struct {
		prop     object
		location string
	}{
		"a flag":                {object{"consent": "yes"}, "consent"},
		"an http URL":           {object{"backchannel_logout_url": "http://shop.test/"}, "backchannel_logout_url"},
		"a relative URL":        {object{"frontchannel_logout_url": "/front"}, "frontchannel_logout_url"},
		"a fragment":            {object{"slo_url": "https://shop.test/#a"}, "slo_url"},
		"a binding":             {object{"slo_binding": "soap"}, "slo_binding"},
		"an http SOAP URL":      {object{"slo_soap_url": "http://shop.test/soap"}, "slo_soap_url"},
		"a relative audience":   {object{"audiences": []any{"api"}}, "audiences[0]"},
		"a repeated audience":   {object{"audiences": []any{"urn:a", "urn:a"}}, "audiences[1]"},
		"an empty URL":          {object{"post_logout_urls": []any{""}}, "post_logout_urls[0]"},
		"an http ACS":           {object{"acs_urls": []any{"http://shop.test/acs"}}, "acs_urls[0]"},
		"too many":              {object{"post_logout_urls": many}, "post_logout_urls"},
		"no certificate":        {object{"sp_certs": []any{"-----BEGIN"}}, "sp_certs[0]"},
		"not of RSA":            {object{"sp_certs": []any{curve}}, "sp_certs[0]"},
		"an unknown member":     {object{"slo": "1"}, "slo"},
		"a flag that is a bool": {object{"signed_requests": true}, "signed_requests"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Patch(path(app), object{"sign_in_prop": row.prop}).
				Problem(http.StatusBadRequest, "invalid_parameters", "body.sign_in_prop."+row.location)
		})
	}
}

// The sign-in service gets the settings of each enabled protocol, and finds applications by what protocols name.
// People can open an application from a list if its sign-in begins at its login URL, or at the platform.
func TestAnswerLaunchable(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	makeApp := func(name string, members object) string {
		app := object{"name": name, "login_url": "https://app.example.com/" + name}
		maps.Copy(app, members)
		return c.Post("/v1/applications", app).Object()["id"].(string)
	}
	saml := object{
		"login_url": "", "protocol_type": "saml", "sign_in_prop": object{"idp_initiated": "1"},
		"protocol_prop": object{"acs_url": "https://app.example.com/acs", "sp_entity": "https://app.example.com"},
	}
	web, page := makeApp("web", nil), makeApp("page", object{"category": "2"})
	makeApp("backend", object{"category": "4"})
	makeApp("nowhere", object{"login_url": ""})
	off := makeApp("off", nil)
	c.Post("/v1/applications/"+off+"/disable", nil).OK(nil)
	here := makeApp("here", saml)
	var found []questions.Launchable
	q := questions.RecordsPage{Limit: 2}
	for more := true; more; more = q.After != "" {
		answer, err := questions.LaunchableApplications.Ask(request.System(t.Context(), "acme"), s.Deps.Bus, q)
		require.NoError(t, err)
		found, q.After = append(found, answer.Applications...), answer.Next
	}
	require.Equal(t, []questions.Launchable{
		{ID: web, Name: "web", LoginURL: "https://app.example.com/web"},
		{ID: page, Name: "page", LoginURL: "https://app.example.com/page"},
		{ID: here, Name: "here"},
	}, found)
	for tenant, limit := range map[string]int{"globex": 200, "acme": 201} {
		answer, err := questions.LaunchableApplications.Ask(request.System(t.Context(), tenant), s.Deps.Bus,
			questions.RecordsPage{Limit: limit})
		require.Empty(t, answer.Applications)
		require.Equal(t, tenant == "acme", apperr.KindOf(err) == apperr.InvalidParameters)
	}
}

func TestAnswerClientOfEachProtocol(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	of := func(name questions.ClientName) (questions.Client, error) {
		return questions.ClientOf.Ask(request.System(t.Context(), "acme"), s.Deps.Bus, name)
	}
	key, cert := rsaPair(t)
	prop := signInProp(t)
	app := addApp(t, c, "Shop", object{
		"protocol_type": "saml", "sign_in_prop": prop, "scopes": []any{"applications:read"},
		"jwks_uri":     "https://shop.test/jwks",
		"redirect_url": "https://shop.test/cas/, https://shop.test/other?x=1",
		"protocol_prop": object{
			"acs_url": "https://shop.test/acs", "sp_entity": "https://shop.test", signingKey: key, signingCert: cert,
			"name_identifier_format": "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent", "lifetime_in_seconds": 600,
			"response_attr": []any{object{"value": "email", "attribute": "mail", "nameFormat": "urn:x"}},
		},
	})
	found, err := of(questions.ClientName{SPEntity: "https://shop.test"})
	require.NoError(t, err)
	require.Equal(t, app["id"], found.AppID)
	require.Equal(t, &questions.SAMLSettings{
		ACSURL: "https://shop.test/acs", SPEntity: "https://shop.test", LifetimeInSeconds: 600,
		NameIDFormat:       "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
		ResponseAttributes: []questions.Attribute{{Value: "email", Attribute: "mail", NameFormat: "urn:x"}},
		SigningCert:        cert,
	}, found.SAML)
	require.Nil(t, found.OIDC)
	require.Nil(t, found.CAS)
	require.Equal(t, []string{"applications:read"}, found.Scopes)
	require.Equal(t, "https://shop.test/jwks", found.JWKSURI)
	require.Equal(t, questions.SignInSettings{
		Consent: true, Audiences: []string{"https://api.shop.test", "urn:shop:api"},
		PostLogoutURLs:       []string{"https://shop.test/bye", "http://localhost:8080/bye"},
		BackchannelLogoutURL: "https://shop.test/back", FrontchannelLogoutURL: "https://shop.test/front",
		SLOURL: "https://shop.test/slo", SLOByPost: true, SLOSOAPURL: "https://shop.test/soap",
		ACSURLs: []string{"https://shop.test/acs2"},
		SPCerts: []string{prop["sp_certs"].([]any)[0].(string)}, SignedRequests: true,
	}, found.SignIn)

	_, err = of(questions.ClientName{Service: "https://shop.test/cas/login"})
	require.Equal(t, apperr.NotFound, apperr.KindOf(err), "it does not use CAS")
	c.Do(http.MethodPut, path(app, "protocols/cas"), object{}).OK(nil)
	c.Post(path(app, "protocols/cas/enable"), nil).OK(nil)
	for service, good := range map[string]bool{
		"https://shop.test/cas": true, "https://shop.test/cas/": true, "https://shop.test/cas/a/b?ticket=1#x": true,
		"HTTPS://SHOP.test:443/cas/a": true,
		"https://shop.test/cast":      false, "https://shop.test/": false, "https://shop.test.evil.test/cas": false,
		"https://shop.test/cas/../admin": false, "https://shop.test/cas/%2e%2e/admin": false,
		"https://shop.test/cas/..%2fadmin": false, `https://shop.test/cas\..\admin`: false,
		"https://shop.test@evil.test/cas": false, "http://shop.test/cas": false, "https://shop.test:444/cas": false,
		"https://shop.test/other": false, "https://shop.test/other?x=1": false, "/cas": false, "https:///cas": false,
	} {
		found, err := of(questions.ClientName{Service: service})
		if !good {
			require.Equal(t, apperr.NotFound, apperr.KindOf(err), service)
			continue
		}
		require.NoError(t, err, service)
		require.Equal(t, app["id"], found.AppID, service)
		require.NotNil(t, found.CAS)
	}
}

// Of several applications with the same entity id the oldest gets the sign-ins; of several places the nearest.
func TestAnswerClientAmongSeveral(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	of := func(name questions.ClientName) string {
		t.Helper()
		found, err := questions.ClientOf.Ask(request.System(t.Context(), "acme"), s.Deps.Bus, name)
		if apperr.IsNotFound(err) {
			return ""
		}
		require.NoError(t, err)
		return found.AppID
	}
	saml := func(name string) object {
		s.Clock.Advance(1000)
		return addApp(t, c, name, object{"protocol_type": "saml",
			"protocol_prop": object{"acs_url": "https://a.test/acs", "sp_entity": "sp"}})
	}
	first, second := saml("First"), saml("Second")
	sp := questions.ClientName{SPEntity: "sp"}
	require.Equal(t, first["id"], of(sp))
	c.Post(path(first, "disable"), nil).OK(nil)
	require.Equal(t, second["id"], of(sp))
	c.Post(path(second, "protocols/saml/disable"), nil).OK(nil)
	require.Empty(t, of(sp))
	require.Empty(t, of(questions.ClientName{}))

	cas := func(name, url string) object {
		return addApp(t, c, name, object{"protocol_type": "cas", "redirect_url": url})
	}
	portal, wiki := cas("Portal", "https://a.test"), cas("Wiki", "https://a.test/wiki")
	require.Equal(t, portal["id"], of(questions.ClientName{Service: "https://a.test/wikis"}))
	require.Equal(t, wiki["id"], of(questions.ClientName{Service: "https://a.test/wiki/page"}))
	c.Post(path(wiki, "disable"), nil).OK(nil)
	require.Equal(t, portal["id"], of(questions.ClientName{Service: "https://a.test/wiki/page"}))
	c.Patch(path(portal), object{"redirect_url": "https://b.test"}).OK(nil)
	require.Empty(t, of(questions.ClientName{Service: "https://a.test/wiki/page"}))

	oidc := func(name, urls string) object {
		s.Clock.Advance(1000)
		return addApp(t, c, name, object{"protocol_type": "oidc", "redirect_url": urls})
	}
	spa := oidc("SPA", "https://Spa.test:443/callback?a=b, http://localhost:5173/")
	later := oidc("Later", "https://spa.test/other")
	for origin, want := range map[string]any{
		"https://spa.test": spa["id"], "http://localhost:5173": spa["id"], "http://localhost:5174": "",
		"https://spa.test.evil.test": "", "http://spa.test": "", "https://b.test": "",
	} {
		require.Equal(t, want, of(questions.ClientName{Origin: origin}), origin)
	}
	plain := oidc("Plain", "https://plain.test/")
	c.Do("PUT", path(plain, "protocols/oauth2"), object{"protocol_prop": object{}}).OK(nil)
	c.Post(path(plain, "protocols/oidc/disable"), nil).OK(nil)
	require.Empty(t, of(questions.ClientName{Origin: "https://plain.test"}))
	c.Post(path(plain, "protocols/oauth2/enable"), nil).OK(nil)
	require.Equal(t, plain["id"], of(questions.ClientName{Origin: "https://plain.test"}))
	c.Post(path(spa, "disable"), nil).OK(nil)
	require.Equal(t, later["id"], of(questions.ClientName{Origin: "https://spa.test"}))
	c.Post(path(later, "protocols/oidc/disable"), nil).OK(nil)
	require.Empty(t, of(questions.ClientName{Origin: "https://spa.test"}))
}

func TestAnswerSigningKey(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	recipient, err := secret.NewRecipient([]byte("0123456789abcdef0123456789abcdef"))
	require.NoError(t, err)
	of := func(tenant string, id any, to secret.TransitKey) (questions.SigningKey, error) {
		return questions.SigningKeyOf.Ask(request.System(t.Context(), tenant), s.Deps.Bus,
			questions.SigningKeyQuestion{AppID: id.(string), To: to})
	}
	key, cert := rsaPair(t)
	saml := func(name string, prop object) any {
		return addApp(t, c, name, object{"protocol_type": "saml", "protocol_prop": prop})["id"]
	}
	id := saml("Shop", object{signingKey: key, signingCert: cert})
	answer, err := of("acme", id, recipient.Key())
	require.NoError(t, err)
	opened, err := recipient.Open(answer.Sealed, "applications.signing-key")
	require.NoError(t, err)
	block, _ := pem.Decode([]byte(opened.Reveal()))
	require.NotNil(t, block)
	_, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	require.NoError(t, err)
	_, err = of("acme", id, secret.TransitKey{ID: "0", Public: "AAAA"})
	require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))

	elliptic, ellipticCert, _ := keyPair(t, ecKey(t))
	for name, row := range map[string]struct {
		tenant string
		id     any
	}{
		"another tenant's": {"globex", id}, "unknown": {"acme", "1"}, "no key": {"acme", saml("No key", object{})},
		"no RSA key": {"acme", saml("Elliptic", object{signingKey: elliptic, signingCert: ellipticCert})},
		"no SAML":    {"acme", addApp(t, c, "OIDC")["id"]},
	} {
		_, err := of(row.tenant, row.id, recipient.Key())
		require.Equal(t, apperr.NotFound, apperr.KindOf(err), name)
	}
}

// rsaPair makes a key in PKCS #1, as many products write it, with its certificate.
func rsaPair(t *testing.T) (key, cert string) {
	t.Helper()
	pair, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	_, cert, _ = keyPair(t, pair)
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(pair)}
	return string(pem.EncodeToMemory(block)), cert
}

func TestAnswerAccountsOfUser(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := in(s, "acme")
	app := c.Post("/v1/applications", object{"name": "Shop"}).Object()["id"].(string)
	of := func(tenant, user string) []questions.SubAccount {
		t.Helper()
		found, err := questions.AccountsOfUser.Ask(request.System(t.Context(), tenant), s.Deps.Bus,
			questions.AccountsQuestion{AppID: app, UserID: user})
		require.NoError(t, err)
		return found.Accounts
	}
	require.Empty(t, of("acme", "20"))
	accounts := "/v1/applications/" + app + "/accounts"
	c.Post("/v1/applications/"+app+"/multi-accounts/enable", nil).OK(nil)
	first := c.Post(accounts, object{"user_id": "20", "account": "liwei", "display_name": "Li"}).Object()
	off := c.Post(accounts, object{"user_id": "20", "account": "old", "status": "0"}).Object()
	c.Post(accounts, object{"user_id": "21", "account": "wang"}).OK(nil)
	require.NotEqual(t, first["id"], off["id"])
	require.Equal(t, []questions.SubAccount{
		{ID: first["id"].(string), Account: "liwei", DisplayName: "Li", IsDefault: first["is_default"] == "1"},
	}, of("acme", "20"))
	require.Empty(t, of("globex", "20"))
}
