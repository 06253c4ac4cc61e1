package patch_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/patch"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// FuzzPatch: a request is refused for what is wrong with it, or gives a resource in canonical form and says truly
// whether it differs; the resource before stays as it was.
func FuzzPatch(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.json")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		o := decode(f, string(text))
		f.Add([]byte(toJSON(o["request"])))
	}
	f.Add([]byte(`{"Operations":[{"op":"add","path":"urn:example:acme:a[b eq 1].c","value":{"x":[null,{}]}}]}`))
	before := `{"userName":"a","name":{"givenName":"b"},"emails":[{"value":"c","type":"work","primary":true},{"value":"d"}],
		"urn:example:acme":{"list":[1,{"value":2}],"o":{"p":null}},"` + e + `":{"manager":{"value":"7"}}}`
	kind := schema.User.With("urn:example:acme")
	f.Fuzz(func(t *testing.T, body []byte) {
		operations, err := patch.Parse(body)
		if err != nil {
			require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
			return
		}
		r := decode(t, before)
		after, differs, err := patch.User(kind, r, operations, &resource.Ignored{})
		require.Equal(t, decode(t, before), r)
		if err != nil {
			require.Equal(t, apperr.InvalidParameters, apperr.KindOf(err))
		} else {
			require.Equal(t, !reflect.DeepEqual(r, after), differs)
			var ignored resource.Ignored
			again, err := resource.Read(kind, after, &ignored)
			require.NoError(t, err)
			require.Empty(t, ignored.Names())
			require.Equal(t, again, after)
		}
		group := resource.Object{"displayName": "g"}
		_, _, change, err := patch.Group(schema.Group, group, operations, &resource.Ignored{})
		if err == nil {
			for _, id := range change.Remove {
				require.NotContains(t, change.Add, id)
				require.False(t, change.All)
			}
		}
	})
}
