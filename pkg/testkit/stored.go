package testkit

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

type anything struct{ docstore.Meta }

// Stored returns a tenant's documents of a collection as SQLite stores them, by id. It skips the test on MongoDB, which
// stores them in another form.
func Stored(t testing.TB, s *Service, tenant, collection string) map[string]string {
	t.Helper()
	if os.Getenv("IDP_TEST_MONGO_URI") != "" {
		t.Skip("looks at documents as SQLite has them")
	}
	docs := map[string]string{}
	all := docstore.Define(docstore.Schema[anything]{Name: collection})
	require.NoError(t, all.Each(request.System(t.Context(), tenant), s.Deps.Store, docstore.Filter{},
		func(doc docstore.Doc[anything]) error {
			body, err := doc.JSON()
			docs[doc.ID] = string(body)
			return err
		}))
	return docs
}

// GoldenDocument compares a stored document of the tenant acme with testdata/<name>.json.golden. Times are written as
// the time since began; each function of mask replaces something else that differs from run to run. The id "" stands
// for the only document of its collection.
func GoldenDocument(t testing.TB, s *Service, began clock.Time, name, collection, id string,
	mask ...func([]byte) []byte) {
	t.Helper()
	docs := Stored(t, s, "acme", collection)
	if id == "" {
		require.Len(t, docs, 1, collection)
		for id = range docs {
		}
	}
	require.Contains(t, docs, id, collection)
	var text bytes.Buffer
	require.NoError(t, json.Indent(&text, []byte(docs[id]), "", "  "))
	text.WriteByte('\n')
	golden := basic.Since(t, began, text.Bytes())
	for _, m := range mask {
		golden = m(golden)
	}
	basic.Golden(t, "testdata/"+name+".json.golden", golden)
}
