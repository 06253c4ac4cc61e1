package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/outbound"
)

// An explanation has neither the URL, whose path and query can hold a secret, nor the address.
func TestExplain(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-r.Context().Done()
		case "/large":
			_, _ = io.WriteString(w, "0123456789")
		default:
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	nowhere := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("there is no name server")
	}}
	for name, row := range map[string]struct {
		config    outbound.Config
		url, want string
	}{
		"private": {
			outbound.Config{}, server.URL + "/slow",
			"the address is private or of special use; IDP_OUTBOUND_ALLOW_PRIVATE permits private ones",
		},
		"too late": {
			outbound.Config{AllowPrivate: true, Timeout: 20 * time.Millisecond}, server.URL + "/slow",
			"there was no answer in time",
		},
		"too large": {
			outbound.Config{AllowPrivate: true, MaxResponseBytes: 5}, server.URL + "/large",
			"the response is too large",
		},
		"no name": {outbound.Config{Resolver: nowhere}, "http://secret.test/", "the host's name was not found"},
		"closed": {
			outbound.Config{AllowPrivate: true}, "http://127.0.0.1:1/secret",
			"the connection failed: connect: connection refused",
		},
		"broken": {outbound.Config{AllowPrivate: true}, server.URL + "/secret", "the connection failed: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := outbound.New(row.config)
			t.Cleanup(client.CloseIdleConnections)
			response, err := client.Get(row.url + "?token=secret")
			if err == nil {
				defer response.Body.Close()
				_, err = io.ReadAll(response.Body)
			}
			require.Equal(t, row.want, outbound.Explain(err))
			require.Equal(t, row.want, outbound.Explain(fmt.Errorf("wrapped: %w", err)))
		})
	}
}
