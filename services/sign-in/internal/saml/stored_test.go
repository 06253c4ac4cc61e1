package saml_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

// TestStoredDocuments: during an upgrade, replicas of two versions read each other's documents.
func TestStoredDocuments(t *testing.T) {
	t.Parallel()
	if os.Getenv("IDP_TEST_MONGO_URI") != "" {
		t.Skip("looks at documents as SQLite has them")
	}
	w := newWorld(t)
	w.grant(w.sso(post(w.authn("", policy(persistent)))), nil)
	type anything struct{ docstore.Meta }
	hexadecimal := regexp.MustCompile(`[0-9a-f]{40,64}`)
	certificate := regexp.MustCompile(`-----BEGIN[^"]*`)
	fingerprint := regexp.MustCompile(`([0-9A-F]{2}:){31}[0-9A-F]{2}`)
	years := regexp.MustCompile(`start \+ \d{6}h[^"]*`) // leap days depend on the day of the test
	for _, name := range []string{"saml_keys", "saml_participants", "saml_messages"} {
		all := docstore.Define(docstore.Schema[anything]{Name: name})
		doc, err := all.First(w.ctx, w.store, docstore.Filter{})
		require.NoError(t, err)
		body, err := doc.JSON()
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, json.Indent(&text, basic.Since(t, w.clock.Now(), body), "", "  "))
		text.WriteByte('\n')
		masked := certificate.ReplaceAll(hexadecimal.ReplaceAll(text.Bytes(), []byte("<hash>")), []byte("<PEM>"))
		masked = years.ReplaceAll(fingerprint.ReplaceAll(masked, []byte("<SHA-256>")), []byte("start + 20 years"))
		basic.Golden(t, "testdata/"+name+".json.golden", masked)
	}
}
