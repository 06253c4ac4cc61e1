package applications_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// stored are a collection's documents of a tenant as they lie in the store, by id.
func stored(t testing.TB, s *testkit.Service, tenant, collection string) map[string]string {
	t.Helper()
	if os.Getenv("IDP_TEST_MONGO_URI") != "" {
		t.Skip("looks at documents as SQLite has them")
	}
	type anything struct{ docstore.Meta }
	docs := map[string]string{}
	any := docstore.Define(docstore.Schema[anything]{Name: collection})
	require.NoError(t, any.Each(request.System(t.Context(), tenant), s.Deps.Store, docstore.Filter{}, func(doc docstore.Doc[anything]) error {
		body, err := doc.JSON()
		docs[doc.ID] = string(body)
		return err
	}))
	return docs
}
