package mapping_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
)

// BenchmarkAnswer makes the answer of a full user: the example of RFC 7643 §8.3.
func BenchmarkAnswer(b *testing.B) {
	text, err := os.ReadFile("testdata/rfc7643-8.3.record.json.golden")
	require.NoError(b, err)
	var u mapping.User
	require.NoError(b, json.Unmarshal(text, &u))
	for _, c := range []struct {
		name       string
		projection resource.Projection
	}{
		{"whole", resource.Projection{}},
		{"three attributes", resource.Project(kind, []string{"userName,emails.value,active"}, nil)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := mapping.FromUser(kind, &u, mapping.UserView{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := json.Marshal(c.projection.Of(kind, r)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
