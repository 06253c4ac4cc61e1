package oidc_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/oidc"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// tv is a program on a device.
func (w *world) tv() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.apps["tv"] = questions.Client{
		AppID: "2003", ClientID: "tv", Category: "3", Enabled: true,
		OIDC: &questions.OIDCSettings{SignatureAlgorithm: "ES256"},
	}
}

func ofTV(pairs ...string) oidc.TokenRequest {
	return oidc.TokenRequest{Form: form(url.Values{"client_id": {"tv"}}, pairs...)}
}

func byDevice(code string) oidc.TokenRequest {
	return ofTV("grant_type", "urn:ietf:params:oauth:grant-type:device_code", "device_code", code)
}

func TestDevice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tv()
	begun, err := w.Device(w.ctx(), issuer, ofTV("scope", "openid email unknown"))
	require.NoError(t, err)
	require.Regexp(t, regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`), begun.UserCode)
	require.Equal(t, issuer+"/device", begun.URI)
	require.Equal(t, issuer+"/device?user_code="+begun.UserCode, begun.Complete)
	require.Equal(t, []int64{600, 5}, []int64{begun.ExpiresIn, begun.Interval})

	poll := func(status int, code string) {
		t.Helper()
		_, err := w.Token(w.ctx(), issuer, byDevice(begun.DeviceCode))
		refusedAs(t, err, status, code)
	}
	poll(400, "authorization_pending")
	poll(400, "slow_down")
	w.clock.Advance(5 * time.Second)
	poll(400, "authorization_pending")

	for _, wrong := range []string{"", "BCDF", "BCDF-GHJK", begun.UserCode + "B", strings.Repeat("B", 20000)} {
		_, err := w.DeviceRequest(w.ctx(), wrong)
		require.Equal(t, apperr.NotFound, apperr.KindOf(err))
	}
	typed := " " + strings.ToLower(strings.ReplaceAll(begun.UserCode, "-", " ")) + "\n"
	r, err := w.DeviceRequest(w.ctx(), typed)
	require.NoError(t, err)
	require.Equal(t, "2003", r.AppID)
	require.True(t, r.AskConsent, "the person sees which application gets what")
	require.Equal(t, []string{"email"}, r.Consents)
	answer, err := w.Grant(w.ctx(), issuer, r, w.person)
	require.NoError(t, err)
	require.Equal(t, protocol.Answer{URL: issuer + "/device?done=1"}, answer)
	_, err = w.DeviceRequest(w.ctx(), typed)
	require.Equal(t, apperr.NotFound, apperr.KindOf(err), "it was answered")
	var page *protocol.PageError
	_, err = w.Grant(w.ctx(), issuer, r, w.person)
	require.ErrorAs(t, err, &page)

	other := byDevice(begun.DeviceCode)
	other.Authorization, other.Form = shopAuth(), form(other.Form, "client_id", "")
	_, err = w.Token(w.ctx(), issuer, other)
	refusedAs(t, err, 400, "invalid_grant")
	w.refused = apperr.New(apperr.Forbidden, "locked")
	poll(400, "invalid_grant")
	w.refused = nil
	good := together(t, 4, func(int) (oidc.TokenAnswer, error) {
		return w.Token(w.ctx(), issuer, byDevice(begun.DeviceCode))
	})
	require.Len(t, good, 1)
	_, claims := claimsOf(t, good[0].IDToken)
	require.Equal(t, []any{"1001", "tv", "li@acme.test"}, []any{claims["sub"], claims["aud"], claims["email"]})
	poll(400, "invalid_grant")
	w.tokens(refresh(nil, good[0].RefreshToken, "client_id", "tv"))
}

func TestDeviceRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tv()
	begin := func() (oidc.DeviceAnswer, protocol.Request) {
		begun, err := w.Device(w.ctx(), issuer, ofTV())
		require.NoError(t, err)
		r, err := w.DeviceRequest(w.ctx(), begun.UserCode)
		require.NoError(t, err)
		return begun, r
	}
	begun, r := begin()
	answer, err := w.Refuse(w.ctx(), issuer, r, protocol.AccessDenied)
	require.NoError(t, err)
	require.Equal(t, issuer+"/device?done=0", answer.URL)
	_, err = w.Token(w.ctx(), issuer, byDevice(begun.DeviceCode))
	refusedAs(t, err, 400, "access_denied")
	late, r := begin()
	w.clock.Advance(10 * time.Minute)
	_, err = w.Token(w.ctx(), issuer, byDevice(late.DeviceCode))
	refusedAs(t, err, 400, "expired_token")
	_, err = w.DeviceRequest(w.ctx(), late.UserCode)
	require.Equal(t, apperr.NotFound, apperr.KindOf(err))
	var page *protocol.PageError
	_, err = w.Grant(w.ctx(), issuer, r, w.person)
	require.ErrorAs(t, err, &page)

	_, err = w.Device(w.ctx(), issuer, oidc.TokenRequest{Form: form(nil, "client_id", "spa")})
	refusedAs(t, err, 400, "unauthorized_client")
	_, err = w.Device(w.ctx(), issuer, oidc.TokenRequest{Authorization: shopAuth()})
	refusedAs(t, err, 400, "unauthorized_client")
	_, err = w.Device(w.ctx(), issuer, ofTV("resource", "https://api.test"))
	refusedAs(t, err, 400, "invalid_target")
	_, err = w.Device(w.ctx(), issuer, ofTV("client_id", "nobody"))
	refusedAs(t, err, 401, "invalid_client")
	fresh, _ := begin()
	w.change("tv", func(c *questions.Client) { c.Enabled = false })
	_, err = w.DeviceRequest(w.ctx(), fresh.UserCode)
	require.Equal(t, apperr.NotFound, apperr.KindOf(err))
}

// Anybody can ask for device codes, and push requests of applications without a secret. They do not fill the store.
func TestRequestsWithoutASecretAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tv()
	device := func(address string) error {
		_, err := w.Device(w.ctx(), issuer, oidc.TokenRequest{Form: ofTV().Form, Address: address})
		return err
	}
	push := func(address string, r oidc.TokenRequest) error {
		r.Address = address
		_, err := w.Push(w.ctx(), issuer, r)
		return err
	}
	refused := func(try func() error) {
		for range 1000 { // far more than there is room for, however slowly they come
			if err := try(); err != nil {
				refusedAs(t, err, 429, "temporarily_unavailable")
				return
			}
		}
		require.Fail(t, "nothing is refused")
	}
	refused(func() error { return device("2001:db8::1") })
	refused(func() error { return push("203.0.113.9", oidc.TokenRequest{Form: ofSPA()}) })
	require.NoError(t, device("2001:db8:0:1::1"))
	require.NoError(t, device("127.0.0.1"))
	withSecret := oidc.TokenRequest{Form: ofShop(), Authorization: []string{basicAuth("shop", "shop secret")}}
	require.NoError(t, push("203.0.113.9", withSecret))
}
