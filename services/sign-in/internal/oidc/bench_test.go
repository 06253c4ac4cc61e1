package oidc_test

import (
	"testing"

	"github.com/idplatform/idplatform/services/questions"
)

// BenchmarkTokenByCode is the exchange of a code, with the ID token signed by each of the usual algorithms.
func BenchmarkTokenByCode(b *testing.B) {
	for _, algorithm := range []string{"RS256", "ES256"} {
		b.Run(algorithm, func(b *testing.B) {
			w := newWorld(b)
			w.change("shop", func(c *questions.Client) { c.OIDC.SignatureAlgorithm = algorithm })
			w.tokens(byCode(w.code(ofShop()))) // makes the keys
			codes := make([]string, b.N)
			for i := range codes {
				codes[i] = w.code(ofShop())
			}
			b.ResetTimer()
			for _, code := range codes {
				w.tokens(byCode(code))
			}
		})
	}
}

// BenchmarkTokenByCodeAtOnce is the same from many applications at once, which share the store's commits.
func BenchmarkTokenByCodeAtOnce(b *testing.B) {
	for _, algorithm := range []string{"RS256", "ES256"} {
		b.Run(algorithm, func(b *testing.B) {
			w := newWorld(b)
			w.change("shop", func(c *questions.Client) { c.OIDC.SignatureAlgorithm = algorithm })
			w.tokens(byCode(w.code(ofShop())))
			codes := make(chan string, b.N)
			for range b.N {
				codes <- w.code(ofShop())
			}
			b.SetParallelism(16)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := w.Token(w.ctx(), issuer, byCode(<-codes)); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

func BenchmarkUserInfo(b *testing.B) {
	w := newWorld(b)
	token := w.tokens(byCode(w.code(ofShop()))).AccessToken
	for b.Loop() {
		if _, err := w.UserInfo(w.ctx(), issuer, token); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAuthorize(b *testing.B) {
	w := newWorld(b)
	v := ofShop()
	for b.Loop() {
		if _, err := w.Authorize(w.ctx(), issuer, v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefresh(b *testing.B) {
	w := newWorld(b)
	token := w.tokens(byCode(w.code(ofShop()))).RefreshToken
	for b.Loop() {
		w.tokens(refresh(shopAuth(), token))
	}
}
