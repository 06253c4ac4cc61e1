package saml_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/saml"
)

// BenchmarkResponse is a signed assertion in a signed response for a signed request.
func BenchmarkResponse(b *testing.B) {
	w := signed(b)
	w.client.SAML.ResponseAttributes = []questions.Attribute{
		{Attribute: "email", Value: "email"}, {Attribute: "groups", Value: "groups"},
	}
	r, err := w.provider.Start(w.ctx, "2001", "")
	require.NoError(b, err)
	p := w.person()
	for b.Loop() {
		if _, err := w.provider.Grant(w.ctx, issuer, r, p); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRequest reads a request that is signed in its query, and one that is signed by itself.
func BenchmarkRequest(b *testing.B) {
	w := signed(b)
	in, _ := w.redirect(w.sp(signing), "state")
	inForm := post(w.signedPost(nil))
	for name, in := range map[string]saml.Inbound{"query": in, "message": inForm} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := w.provider.SSO(w.ctx, issuer, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
