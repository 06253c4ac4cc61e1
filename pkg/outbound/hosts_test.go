package outbound

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// A host answers one tenant's requests slowly. Another tenant's request to it does not wait.
func TestASlowHostDelaysItsTenantOnly(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	finish := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(finish)
	server, asked := neighbour(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-goOn
		}
	})
	c := client(t, Config{AllowPrivate: true, Timeout: time.Minute})
	ask := func(ctx context.Context, tenant, path string) error {
		r, err := http.NewRequestWithContext(request.System(ctx, tenant), http.MethodGet, server.URL+path, nil)
		if err != nil {
			return err
		}
		resp, err := c.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		return err
	}
	results := make(chan error)
	for range 2 * perTenant {
		go func() { results <- ask(t.Context(), "slow", "/slow") }()
	}
	wait.Until(t, func() bool { return asked.Load() == perTenant })
	require.NoError(t, ask(t.Context(), "quick", "/"))
	require.EqualValues(t, perTenant+1, asked.Load())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := ask(ctx, "slow", "/")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, ErrBusy)
	require.Equal(t, "too many requests to the host are in progress", Explain(err))
	finish()
	for range 2 * perTenant {
		require.NoError(t, <-results)
	}
	require.Empty(t, c.Transport.(*transport).hosts.gates)
}
