package identitysources_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
)

// appSecret is the secret of wechat.
const appSecret = "0123456789abcdef0123456789abcdef"

// put replaces a connection, and returns the only record of the answer.
func put(t *testing.T, c *testkit.Client, made, body object) object {
	t.Helper()
	var list []object
	c.Do(http.MethodPut, one(made), body).OK(&list)
	require.Len(t, list, 1)
	return list[0]
}

// listed are all connections.
func listed(c *testkit.Client) (all []object) {
	c.Get(connectionsPath).OK(&all)
	return all
}

// Lists and PUTs of connections are answered with arrays, which testkit.Conventions does not know. These are its checks
// for them.
func TestConnectionsKeepTheConventions(t *testing.T) {
	t.Parallel()
	renamed := wechat(object{"display_name": "Another name"})
	t.Run("conditional requests", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		others(s, 0, 0)
		c := in(s, "acme")
		answer := c.Post(connectionsPath, wechat())
		made := answer.Object()
		require.Equal(t, `"1"`, answer.Header.Get("ETag"))
		require.Equal(t, http.StatusNotModified, c.With("If-None-Match", `"1"`).Get(one(made)).Status)
		stale := c.With("If-Match", `"2"`)
		stale.Do(http.MethodPut, one(made), renamed).Problem(http.StatusPreconditionFailed, "version_mismatch")
		stale.Post(one(made)+"/disable", nil).Problem(http.StatusPreconditionFailed, "version_mismatch")
		stale.Delete(one(made), nil).Problem(http.StatusPreconditionFailed, "version_mismatch")
		require.Equal(t, made, c.Get(one(made)).Object())
		changed := put(t, c.With("If-Match", `"1"`), made, renamed)
		require.Equal(t, 2.0, changed["version"])
		require.Equal(t, changed, put(t, c, made, changed), "a record may be sent back as it is")
		require.Equal(t, changed, c.Get(one(made)).Object())
		require.Equal(t, object{"id": made["id"]}, c.With("If-Match", `"2"`).Delete(one(made), nil).Object())
	})
	t.Run("dry run", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		others(s, 0, 0)
		c := in(s, "acme")
		would := c.Post(connectionsPath+"?dry_run=true", wechat())
		require.Equal(t, "true", would.Header.Get("Dry-Run"))
		require.Len(t, listed(c), 1, "only the native database")
		made := c.Post(connectionsPath, wechat()).Object()
		before := stored(t, s)
		c.Do(http.MethodPut, one(made)+"?dry_run=true", wechat(object{"config_fields": object{
			"AppId": "wx0000000000000000", "AppSecret": strings.Repeat("f", 32),
		}})).OK(nil)
		c.Post(one(made)+"/disable?dry_run=true", nil).OK(nil)
		c.Delete(one(made)+"?dry_run=true", nil).OK(nil)
		require.Equal(t, before, stored(t, s), "records and sealed values")
	})
	t.Run("idempotency", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		c := in(s, "acme").With("Idempotency-Key", "key-1")
		first, again := c.Post(connectionsPath, wechat()), c.Post(connectionsPath, wechat())
		require.JSONEq(t, string(first.Body), string(again.Body))
		require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
		c.Post(connectionsPath, renamed).Problem(http.StatusUnprocessableEntity, "idempotency_key_reused")
		require.Len(t, listed(in(s, "acme")), 2)
	})
	t.Run("tenants", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		others(s, 0, 0)
		made := in(s, "acme").Post(connectionsPath, wechat()).Object()
		globex := in(s, "globex")
		for _, answer := range []*testkit.Answer{
			globex.Get(one(made)), globex.Do(http.MethodPut, one(made), renamed), globex.Delete(one(made), nil),
			globex.Post(one(made)+"/disable", nil), globex.Post(one(made)+"/test", nil),
		} {
			answer.Problem(http.StatusNotFound, "not_found")
		}
		require.Len(t, listed(globex), 1)
		require.Equal(t, made, in(s, "acme").Get(one(made)).Object())
	})
	t.Run("secrets", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		c := in(s, "acme")
		answer := c.Post(connectionsPath, wechat())
		made := answer.Object()
		shown := [][]byte{answer.Body, c.Get(one(made)).OK(nil).Body, c.Get(connectionsPath).OK(nil).Body}
		shown = append(shown, c.Do(http.MethodPut, one(made), renamed).OK(nil).Body,
			c.Post(one(made)+"/test", nil).Body)
		s.EventsUntil(func(e stream.Event) bool {
			shown = append(shown, e.Data)
			return e.Type == "idp.connection.updated"
		})
		for _, body := range shown {
			require.NotContains(t, string(body), appSecret)
			require.True(t, json.Valid(body))
		}
	})
}

// A connection is deleted while a method adds it: either the connection remains, or the method does not have it.
func TestRaceOfADeletedConnection(t *testing.T) {
	t.Parallel()
	s := start(t)
	others(s, 0, 0)
	c := in(s, "acme")
	for range 30 {
		made := c.Post(connectionsPath, wechat()).Object()
		method := c.Post(methodsPath, object{"code": "m" + id(made), "name": "M", "type": "social"}).Object()
		var deletion, addition *testkit.Answer
		var both sync.WaitGroup
		both.Go(func() { deletion = c.Delete(one(made), nil) })
		both.Go(func() {
			addition = c.Patch(methodsPath+"/"+id(method), object{"connection_ids": []any{made["id"]}})
		})
		both.Wait()
		if deletion.Status == http.StatusOK {
			addition.Problem(http.StatusBadRequest, "invalid_parameters", "body.connection_ids[0]")
			c.Get(one(made)).Problem(http.StatusNotFound, "not_found")
		} else {
			deletion.Problem(http.StatusConflict, "in_use", "auth_methods")
			addition.OK(nil)
			c.Get(one(made)).OK(nil)
		}
	}
}
