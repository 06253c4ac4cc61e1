package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// postForm makes a POST request with a form body and client_secret_basic.
func postForm(path, id, secret, body string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Basic %s\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		path, base64.StdEncoding.EncodeToString([]byte(id+":"+secret)), len(body), body)
}

// BenchmarkTokens measures what machine clients do most: 20 of them get tokens, and resource servers ask about tokens.
func BenchmarkTokens(b *testing.B) {
	yard := startYardstick(b)
	c := startPlatform(b, b.TempDir())
	admin := c.token("--tenant", "acme")
	const machines = 20
	requests := make([][]byte, machines)
	introspections := make([][]byte, machines)
	bearer := make([][]byte, machines)
	for i := range requests {
		var made struct {
			ClientID     string `json:"client_id"`
			ClientSecret string `json:"client_secret"`
		}
		body := fmt.Sprintf(`{"name":"Machine %d","category":"4","scopes":["users:read"]}`, i)
		r, err := http.NewRequest(http.MethodPost, "http://"+c.Addr+"/v1/applications", strings.NewReader(body))
		require.NoError(b, err)
		r.Header.Set("Authorization", "Bearer "+admin)
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(r)
		require.NoError(b, err)
		require.NoError(b, json.NewDecoder(response.Body).Decode(&made))
		require.NoError(b, response.Body.Close())
		require.NotEmpty(b, made.ClientSecret)
		requests[i] = postForm("/v1/oauth2/token", made.ClientID, made.ClientSecret, "grant_type=client_credentials")
		introspections[i] = postForm("/v1/oauth2/introspect", made.ClientID, made.ClientSecret, "token="+admin)
		bearer[i] = fmt.Appendf(nil,
			"POST /v1/oauth2/introspect HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n"+
				"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\ntoken=%s",
			admin, len(admin)+6, admin)
	}
	for name, all := range map[string][][]byte{"token": requests, "introspect by basic": introspections,
		"introspect by bearer": bearer} {
		b.Run(name, func(b *testing.B) {
			share(b, yard, c, func(worker, n int) []byte { return all[(worker+n)%machines] })
		})
	}
}
