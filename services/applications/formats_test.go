package applications_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

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
	require.NoError(t, any.Each(request.System(t.Context(), tenant), s.Deps.Store, docstore.Filter{},
		func(doc docstore.Doc[anything]) error {
			body, err := doc.JSON()
			docs[doc.ID] = string(body)
			return err
		}))
	return docs
}

// What is in the store must be readable for every later version: a change here needs a way for what is already stored.
func TestGoldenDocuments(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	began := s.Clock.Now()
	app := addApp(t, c, "费用 <&>", object{
		"domain_sn": "expenses", "login_url": "https://a.test/login", "redirect_url": "https://a.test/cb",
		"protocol_type": "saml",
		"protocol_prop": object{"acs_url": "https://a.test/acs", "sp_entity": "sp",
			"response_attr": []any{object{"value": "email", "attribute": "mail"}}},
		"config_prop": object{"access_policy": object{"forget_password": []any{"mail"}},
			"allowed_social_login_provider": object{"wechat_scan_qr": 31}},
		"sys_ext_props": object{"a": 1}, "free_ext_props": object{"键": []any{"值"}}, "jwks_uri": "https://a.test/jwks",
	})
	s.Clock.Advance(time.Second)
	c.Post(path(app, "secrets?grace_seconds=60"), nil).OK(nil)
	c.Post(path(app, "idp"), object{"config_id": "31"}).OK(nil)
	c.Post(path(app, "protocols/saml/secret"), nil).OK(nil)
	account := addAccount(t, c, app, "7", "li.wei", object{"display_name": "李伟", "password": "form fill"})

	one := func(collection string) string {
		for id := range stored(t, s, "acme", collection) {
			return id
		}
		return ""
	}
	for name, document := range map[string]struct{ collection, id string }{
		"application": {"applications", app["id"].(string)}, "secret_hashes": {"secret_hashes", app["id"].(string)},
		"protocol": {"protocols", one("protocols")}, "account": {"accounts", account["id"].(string)},
		"account_holder": {"account_holders", one("account_holders")},
	} {
		var text bytes.Buffer
		require.NoError(t, json.Indent(&text, []byte(stored(t, s, "acme", document.collection)[document.id]), "", "  "))
		text.WriteByte('\n')
		testkit.Golden(t, "testdata/"+name+".json.golden", steady(testkit.Since(t, began, text.Bytes())))
	}
}

// Records are stored in the form that is answered, and described by types of their own: the two must agree.
func TestSchemasAgreeWithRecords(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	app := addApp(t, c, "GitLab", object{
		"template_id": "gitlab", "template_params": object{"params": object{"base_url": "https://gitlab.test"}},
		"jwks_uri": "https://a.test",
	})
	app["jwks"] = nil // either of the two
	account := addAccount(t, c, app, "7", "a")
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ ReadOnly bool }
				Required   []string
			}
		}
	}
	s.Stranger().Get("/openapi.json").OK(&doc)
	schemas := doc.Components.Schemas
	names := func(schema string) []string { return slices.Sorted(maps.Keys(schemas[schema].Properties)) }
	for name, record := range map[string]object{
		"Application": app, "Protocol": c.Get(path(app, "protocols/saml")).Object(), "Account": account,
	} {
		have := slices.Sorted(maps.Keys(record))
		require.Equal(t, have, names(name), name)
		always := slices.DeleteFunc(slices.Clone(have), func(member string) bool {
			return slices.Contains([]string{"jwks", "jwks_uri", "template_params"}, member)
		})
		require.Equal(t, always, slices.Sorted(slices.Values(schemas[name].Required)), name)
		input := names(name + "Input")
		if name == "Application" {
			require.Equal(t, input, names("ApplicationPatch"))
			input = slices.DeleteFunc(input, func(member string) bool { return member == "client_secret" })
		}
		require.Equal(t, have, input, name)
	}
	require.Equal(t, slices.Sorted(slices.Values(append(names("Application"), "client_secret"))),
		names("NewApplication"))
}
