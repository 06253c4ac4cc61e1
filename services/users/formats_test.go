package users_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// stored are a tenant's documents of a collection as they are stored, by id.
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

var unsteady = regexp.MustCompile(`"(password|id_number|etag|bytes)": "[^"]+"|"\$argon2id[^"]+"`)

// Every later version must be able to read what is stored: a change here needs a way to read existing documents.
func TestGoldenDocuments(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	began := s.Clock.Now()
	user := addUser(t, c, "li.wei", object{
		"display_name": "李伟 <&>", "email": "li.wei@acme.test", "mobile": "+8613800000000", "employee_number": "A-17",
		"locale": "zh-CN", "zoneinfo": "Asia/Shanghai",
		"password": password, "sys_ext_props": object{"a": 1}, "free_ext_props": object{"键": []any{"值"}},
	})
	s.Clock.Advance(time.Second)
	putAvatar(t, c, user).OK(nil)
	c.Post(path(user, "change-password"), object{"old_password": password, "new_password": "a new Passw0rd"}).OK(nil)
	require.True(t, signsIn(c, "li.wei", "a new Passw0rd"))
	require.False(t, signsIn(c, "li.wei", "wrong"))
	c.Post(path(user, "real-name-verification"), object{"real_name": "李伟", "id_number": residentID}).OK(nil)
	c.Post(path(user, "resign"), object{"effective_time": s.Clock.Now().Add(time.Hour), "reason": "retired",
		"successor_id": addUser(t, c, "successor")["id"]}).OK(nil)
	c.Post(path(user, "lock"), object{"reason": "on leave", "until": s.Clock.Now().Add(time.Hour)}).OK(nil)
	credential := c.Post(credentials, object{"user_id": number(user), "provider_code": "wechat", "id1": "1", "id2": "2",
		"metadata": "m", "username": "lw", "display_name": "李"}).ID()

	for name, document := range map[string]struct{ collection, id string }{
		"user": {"users", user["id"].(string)}, "account": {"accounts", user["id"].(string)},
		"avatar": {"avatars", user["id"].(string)}, "credential": {"credentials", credential},
	} {
		var text bytes.Buffer
		require.NoError(t, json.Indent(&text, []byte(stored(t, s, "acme", document.collection)[document.id]), "", "  "))
		text.WriteByte('\n')
		steady := unsteady.ReplaceAllFunc(testkit.Since(t, began, text.Bytes()), func(b []byte) []byte {
			if member, _, ok := bytes.Cut(b, []byte(": ")); ok {
				return append(member, `: "…"`...)
			}
			return []byte(`"…"`)
		})
		testkit.Golden(t, "testdata/"+name+".json.golden", steady)
	}
}

// Records are stored in the form of answers, which other types describe: the two must agree.
func TestSchemasAgreeWithRecords(t *testing.T) {
	t.Parallel()
	s, c := acme(t)
	user := addUser(t, c, "li.wei")
	credential := c.Post(credentials, credentialOf(user, "wechat", "1")).Object()
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Type     any
					ReadOnly bool
				}
				Required []string
			}
		}
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Content map[string]struct{ Example json.RawMessage }
			}
		}
	}
	s.Stranger().Get("/openapi.json").OK(&doc)
	sorted := func(names ...string) []string { slices.Sort(names); return names }
	for name, record := range map[string]object{"User": user, "Credential": credential} {
		schema, input, patch := doc.Components.Schemas[name], doc.Components.Schemas[name+"Input"],
			doc.Components.Schemas[name+"Patch"]
		have := slices.Sorted(maps.Keys(record))
		require.Equal(t, have, slices.Sorted(maps.Keys(schema.Properties)), name)
		require.Equal(t, have, sorted(schema.Required...), "%s: every member is always there", name)
		require.Equal(t, have, slices.Sorted(maps.Keys(patch.Properties)), name)
		if name == "User" {
			input = doc.Components.Schemas["NewUser"]
			have = sorted(append(have, "password")...)
		}
		require.Equal(t, have, slices.Sorted(maps.Keys(input.Properties)), name)
		for member, property := range schema.Properties {
			require.Equal(t, property.ReadOnly, patch.Properties[member].ReadOnly, "%s.%s", name, member)
		}
	}
	for url, record := range map[string]object{"/v1/users/{id}": user, "/v1/user-stored-credentials/{id}": credential} {
		example := members(t, doc.Paths[url]["get"].Responses["200"].Content["application/json"].Example)
		require.Equal(t, slices.Sorted(maps.Keys(record)), slices.Sorted(maps.Keys(example)), url)
	}
}
