package delivery

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/outbound"
	"github.com/idplatform/idplatform/services/events/internal/subscription"
)

type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// A try that was not sent, because others to the same host hang, does not count as one.
func TestATryThatWasNotSentDoesNotCount(t *testing.T) {
	t.Parallel()
	to := &subscription.Subscription{Profile: subscription.Profile{
		Delivery: subscription.Delivery{Type: subscription.Webhook, URL: "http://receiver.test/hook"},
	}}
	for _, c := range []struct {
		err  error
		away bool
	}{
		{fmt.Errorf("%w: %w", outbound.ErrBusy, context.DeadlineExceeded), true},
		{context.DeadlineExceeded, false},
	} {
		s := NewSender(&http.Client{Transport: failing{c.err}}, nil, clock.System)
		r := s.Send(t.Context(), to, subscription.Secrets{}, Message{ID: "1"})
		require.Equal(t, c.away, r.Away, "%v", c.err)
		require.NotEmpty(t, r.Error)
	}
}
