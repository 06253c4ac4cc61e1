package testkit

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
)

// Secret describes the sealed members of a collection to Conventions.
type Secret struct {
	// NotSent says that all of them are docstore.NotSent. Reroutes are not needed then, and Make only if clients send
	// them.
	NotSent bool
	// Make creates a record whose sealed members have values, and returns its path.
	Make func(c *Client) string
	// Reroutes are changes of where the secrets are sent, or of how they are protected on the way, with masks or
	// nothing in place of the secrets.
	Reroutes []Reroute
}

// Reroute is such a change. The locations are those of all the secrets that must be given again.
type Reroute struct {
	Method    string
	Body      any
	Locations []string
}

// rerouted: a secret is not kept while its receiver changes. Every collection with sealed members must be described.
func rerouted(t *testing.T, s *Service, r Resource) {
	for _, def := range s.collections {
		if _, known := r.Secrets[def.Name]; def.Seals {
			assert.True(t, known, "Resource.Secrets must describe %s", def.Name)
		}
	}
	c := s.As("acme", auth.PlatformAdmin)
	for name, secret := range r.Secrets {
		if secret.NotSent {
			continue
		}
		require.NotEmpty(t, secret.Reroutes, name)
		path := secret.Make(c)
		before := c.Get(path).Object()
		for _, change := range secret.Reroutes {
			c.Do(change.Method, path, change.Body).
				Problem(http.StatusBadRequest, "invalid_parameters", change.Locations...)
			assert.Equal(t, before, c.Get(path).Object(), "a refused change must change nothing")
		}
	}
}
