package service

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// A service that is cut off asks the applications service with the token itself as credential.
func TestIntrospector(t *testing.T) {
	t.Parallel()
	answers := map[string]func(http.ResponseWriter){
		"good":    func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"active":true,"scope":"users:read"}`)) },
		"foreign": func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"active":false}`)) },
		"ended":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
		"away":    func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"broken":  func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.FormValue("token")
		if r.URL.Path != "/v1/oauth2/introspect" || r.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("%s %s", r.URL.Path, r.Header.Get("Authorization"))
		}
		answers[token](w)
	}))
	t.Cleanup(server.Close)
	ask := introspector(server.URL+"/v1/oauth2/jwks", server.Client())
	for token, want := range map[string]struct{ active, fails bool }{
		"good": {true, false}, "foreign": {}, "ended": {}, "away": {false, true}, "broken": {false, true},
	} {
		active, err := ask(t.Context(), token)
		require.Equal(t, want.active, active, token)
		require.Equal(t, want.fails, err != nil, token)
	}
	require.Nil(t, introspector("/keys/jwks.json", server.Client()))
	require.Nil(t, introspector("https://id.example/keys", server.Client()))
}
