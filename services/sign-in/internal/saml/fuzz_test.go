package saml_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
)

// FuzzMessage reads any bytes as a message in both bindings. Without the right signature nothing is believed.
func FuzzMessage(f *testing.F) {
	w := signed(f)
	f.Add([]byte(w.authn("", "")))
	f.Add([]byte(w.logout("", "li.wei", "session-1")))
	genuine := w.signedPost(nil)
	f.Add([]byte(genuine))
	for _, message := range wrappings(f, genuine, w.authn(`ForceAuthn="true"`, "")) {
		f.Add([]byte(message))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		in := post(string(message))
		if r, err := w.provider.SSO(w.ctx, issuer, in); err == nil {
			require.False(t, r.Fresh, "only the genuine request can be read, and it does not ask for that")
		}
		_, err := w.slo(in)
		require.Error(t, err)
		_ = saml.Parse(message)
	})
}

// FuzzQuery reads any raw query.
func FuzzQuery(f *testing.F) {
	w := signed(f)
	in, _ := w.redirect(w.sp(signing), "state")
	f.Add(in.Query)
	f.Add("SAMLRequest=%zz&RelayState=")
	f.Add("SAMLRequest=" + base64.URLEncoding.EncodeToString([]byte("x")) + "&SigAlg=&Signature=AA")
	f.Fuzz(func(t *testing.T, query string) {
		if r, err := w.provider.SSO(w.ctx, issuer, saml.Inbound{Query: query}); err == nil {
			require.Equal(t, "2001", r.AppID)
		}
	})
}
