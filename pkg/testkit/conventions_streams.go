package testkit

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/idplatform/idplatform/pkg/request"
)

// eventStreams: every event stream begins at once, ends cleanly when the service drains, and ends when its client
// disconnects.
func eventStreams(t *testing.T, s *Service) {
	for _, o := range s.operations() {
		if !o.documents("200", request.EventStreamType) {
			continue
		}
		assert.Equal(t, "GET", o.Method, o.OperationID)
		c := s.As("acme", o.scopes()...)
		stream := c.Events(o.url())
		assert.Equal(t, "no-store", stream.Header.Get("Cache-Control"), o.OperationID)
		assert.NotEmpty(t, stream.Header.Get("X-Request-Id"), o.OperationID)
		stream.Drain()
		c.Events(o.url()).Leave()
	}
}
