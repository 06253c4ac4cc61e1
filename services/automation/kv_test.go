package automation_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/pkg/testkit"
)

const (
	bucketsPath = "/v1/kv/buckets"
	boxPath     = bucketsPath + "/box"
	objectsPath = boxPath + "/objects"
)

// kvOf is a client of a tenant that may read and write objects.
func kvOf(s *testkit.Service, tenant string) *testkit.Client {
	return s.As(tenant, auth.KVRead, auth.KVWrite)
}

func put(c *testkit.Client, path string, body any) *testkit.Answer {
	return c.Do(http.MethodPut, path, body)
}

func at(key string) string { return objectsPath + "/" + key }

func TestObjects(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := kvOf(s, "acme")
	answer := c.Post(objectsPath, object{"key": "console/theme", "value": object{"dark": true}})
	made := answer.Object()
	require.Equal(t, `"1"`, answer.Header.Get("ETag"))
	require.Equal(t, "box", made["bucket"])
	require.Equal(t, 13.0, made["size"])
	require.Equal(t, object{"dark": true}, made["value"])
	require.Nil(t, made["time_expires"])
	require.Equal(t, made, c.Get(at("console/theme")).Object())
	require.Equal(t, made, c.Get(at("console%2Ftheme")).Object(), "the slash may be encoded")
	require.Equal(t, made, put(c, at("console/theme"), made).Object(), "a record may be sent back as it is")
	c.Post(objectsPath, object{"key": "console/theme", "value": 1}).
		Problem(http.StatusConflict, "already_exists", "body.key")

	s.Clock.Advance(time.Second)
	changed := put(c, at("console/theme"), object{"value": []any{1}, "content_type": "text/x"}).Object()
	require.Equal(t, 2.0, changed["version"])
	require.Equal(t, made["time_created"], changed["time_created"])
	require.NotEqual(t, made["time_modified"], changed["time_modified"])
	require.Equal(t, changed, c.Get(at("console/theme")).Object())

	require.Equal(t, made["id"], c.Delete(at("console/theme"), nil).ID())
	c.Get(at("console/theme")).Problem(http.StatusNotFound, "not_found")
	c.Delete(at("console/theme"), nil).Problem(http.StatusNotFound, "not_found")
	require.NotEqual(t, made["id"], put(c, at("console/theme"), object{"value": nil}).ID())
}

// Every JSON value comes back exactly as it was sent, small or large.
func TestValuesAreKeptExactly(t *testing.T) {
	t.Parallel()
	c := kvOf(start(t), "acme")
	for i, value := range []string{
		`null`, `true`, `0`, `-0.0`, `12345678901234567890123`, `1e400`, `""`, `"<&>   \u0000 微信"`, `[]`, `{}`,
		`{"z":1,"a":{"time_expires":null}}`, `{"value":{"value":null}}`,
		`"` + strings.Repeat("x", 16<<10-2) + `"`, `"` + strings.Repeat("x", 16<<10-1) + `"`,
		`"` + strings.Repeat("<", 1<<20-100) + `"`,
	} {
		path := at(fmt.Sprint("value-", i))
		var record struct{ Value json.RawMessage }
		put(c, path, `{"value":`+value+`}`).OK(&record)
		require.Equal(t, value, string(record.Value))
		c.Get(path).OK(&record)
		require.Equal(t, value, string(record.Value))
	}
	put(c, at("too-large"), object{"value": strings.Repeat("x", 1<<20)}).
		Problem(http.StatusRequestEntityTooLarge, "too_large")
}

// A value is stored in the record or in a document of its own, depending on its size, which can change.
func TestAValueGrowsAndShrinks(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := kvOf(s, "acme")
	put(c, boxPath, object{"history": 10}).OK(nil)
	var want []any
	for _, size := range []int{1, 20_000, 30_000, 30_000, 2, 20_000} {
		value := strings.Repeat("x", size)
		if len(want) == 3 {
			value = strings.Repeat("y", size) // a change that keeps the size
		}
		want = append([]any{value}, want...)
		put(c, at("k"), object{"value": value}).OK(nil)
		require.Equal(t, value, c.Get(at("k")).Object()["value"])
	}
	require.Equal(t, want[1:], c.Items(at("k/history"), "value"))
	c.Delete(at("k"), nil).OK(nil)
	put(c, boxPath, object{"description": "empty"}).OK(nil)
	c.Delete(boxPath, nil).OK(nil)
	require.NoError(t, s.Deps.Store.Check(t.Context()))
}

func TestRefusedObjects(t *testing.T) {
	t.Parallel()
	c := kvOf(start(t), "acme")
	put(c, boxPath, object{"max_object_bytes": 10}).OK(nil)
	for _, key := range []string{
		"", "/a", "a/", "a//b", ".", "a/..", "./a", `a\b`, "a\x00", "a\nb", "a/history", strings.Repeat("k", 1025),
		strings.Repeat("é", 513),
	} {
		c.Post(objectsPath, object{"key": key, "value": 1}).
			Problem(http.StatusBadRequest, "invalid_parameters", "body.key")
	}
	for location, body := range map[string]object{
		"body.value":        {"value": "12345678901"},
		"body.content_type": {"value": 1, "content_type": strings.Repeat("x", 129)},
		"body.ttl_seconds":  {"value": 1, "ttl_seconds": -1},
		"body.other":        {"value": 1, "other": 1},
	} {
		put(c, at("k"), body).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
	put(c, at("k"), object{}).Problem(http.StatusBadRequest, "invalid_parameters", "body.value")
	put(c, bucketsPath+"/-/objects/k", object{"value": 1}).
		Problem(http.StatusBadRequest, "invalid_parameters", "path.bucket")
	c.Get(objectsPath).OK(nil)
	c.Get(bucketsPath+"/other/objects").Problem(http.StatusNotFound, "not_found")
	c.Get(at("k/history")).Problem(http.StatusNotFound, "not_found")
	c.Post(at("k"), object{"value": 1}).Problem(http.StatusMethodNotAllowed, "method_not_allowed")
}

func TestCompareAndSet(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := kvOf(s, "acme")
	stale := func(answer *testkit.Answer) { answer.Problem(http.StatusPreconditionFailed, "version_mismatch") }
	stale(put(c.With("If-Match", "*"), at("k"), object{"value": 1}))
	stale(put(c.With("If-Match", `"1"`), at("k"), object{"value": 1}))
	put(c.With("If-None-Match", "*"), at("k"), object{"value": 1}).OK(nil)
	stale(put(c.With("If-None-Match", "*"), at("k"), object{"value": 2}))
	stale(put(c.With("If-Match", `"2"`), at("k"), object{"value": 2}))
	stale(c.With("If-Match", `"2"`).Delete(at("k"), nil))
	put(c.With("If-Match", `"1"`), at("k"), object{"value": 2}).OK(nil)
	require.Equal(t, http.StatusNotModified, c.With("If-None-Match", `"2"`).Get(at("k")).Status)
	put(c.With("If-None-Match", `"2"`), at("k"), object{"value": 3}).
		Problem(http.StatusBadRequest, "invalid_parameters", "header.If-None-Match")
	require.Equal(t, 2.0, c.Get(at("k")).Object()["value"])
	c.With("If-Match", `"2"`).Delete(at("k"), nil).OK(nil)

	// An ETag from before a deletion does not match the next object with the same key.
	require.Equal(t, 3.0, put(c, at("k"), object{"value": 4}).Object()["version"])
	stale(put(c.With("If-Match", `"2"`), at("k"), object{"value": 5}))
	stale(put(c.With("If-Match", `"1"`), at("k"), object{"value": 5}))
	c.With("If-Match", `"3"`).Delete(at("k"), nil).OK(nil)
	c.Delete(boxPath+"?force=true", nil).OK(nil)
	require.Equal(t, 4.0, put(c, at("k"), object{"value": 6}).Object()["version"])
	c.Delete(at("k"), nil).OK(nil)
	s.Clock.Advance(24 * time.Hour)
	s.RunTask("forget removed objects")
	c = kvOf(s, "acme") // the token has expired
	require.Equal(t, 1.0, put(c, at("k"), object{"value": 7}).Object()["version"])

	// Many clients increment a number by compare-and-set at the same time. No increment is lost.
	put(c, at("n"), object{"value": 0}).OK(nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				for {
					read := c.Get(at("n"))
					var n struct{ Value int }
					read.OK(&n)
					set := put(c.With("If-Match", read.Header.Get("ETag")), at("n"), object{"value": n.Value + 1})
					if set.Status == http.StatusOK {
						break
					}
					stale(set)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, 80.0, c.Get(at("n")).Object()["value"])
}

// An expired object is not found, also before the task has removed it.
func TestExpiry(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := kvOf(s, "acme")
	put(c, boxPath, object{"ttl_seconds": 60, "history": 5}).OK(nil)
	end := s.Clock.Now().Add(time.Minute).String()
	require.Equal(t, end, put(c, at("as-the-bucket"), object{"value": 1}).Object()["time_expires"])
	put(c, at("as-the-bucket"), object{"value": 2}).OK(nil)
	put(c, at("forever"), object{"value": 1, "ttl_seconds": 0}).OK(nil)
	put(c, at("longer"), object{"value": 1, "ttl_seconds": 120}).OK(nil)
	s.Clock.Advance(time.Minute - time.Millisecond)
	c.Get(at("as-the-bucket")).OK(nil)
	s.Clock.Advance(time.Millisecond)
	gone := func() {
		c.Get(at("as-the-bucket")).Problem(http.StatusNotFound, "not_found")
		c.Get(at("as-the-bucket/history")).Problem(http.StatusNotFound, "not_found")
		c.Delete(at("as-the-bucket"), nil).Problem(http.StatusNotFound, "not_found")
		put(c.With("If-Match", "*"), at("as-the-bucket"), object{"value": 1}).
			Problem(http.StatusPreconditionFailed, "version_mismatch")
		list := c.Get(objectsPath).Object()
		require.Equal(t, 2.0, list["total"])
		require.Len(t, list["items"], 2)
	}
	gone()
	s.RunTask("expire objects")
	gone()
	expired := s.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.kv_object.expired" })
	require.Contains(t, string(expired[len(expired)-1].Data), "as-the-bucket")

	put(c, at("longer"), object{"value": 2}).OK(nil)
	s.Clock.Advance(time.Minute)
	fresh := c.Post(objectsPath, object{"key": "longer", "value": 3}).Object()
	require.Equal(t, 3.0, fresh["version"], "its versions continue from the expired object")
	s.Clock.Advance(time.Minute)
	put(c, at("forever"), object{"value": 1, "ttl_seconds": 1}).OK(nil)
	s.Clock.Advance(time.Second)
	c.Delete(boxPath, nil).OK(nil)
	c.Get(boxPath).Problem(http.StatusNotFound, "not_found")
}

func TestHistory(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := kvOf(s, "acme")
	values := func() []any { return c.Items(at("k/history"), "value") }
	put(c, at("k"), object{"value": 1}).OK(nil)
	put(c, at("k"), object{"value": 2}).OK(nil)
	require.Empty(t, values(), "history is 0 by default")
	put(c, boxPath, object{"history": 3}).OK(nil)
	for n := 3; n <= 7; n++ {
		require.EqualValues(t, min(n-2, 3), put(c, at("k"), object{"value": n}).Object()["kept_versions"])
		put(c, at("k"), object{"value": n}).OK(nil) // no change
	}
	require.Equal(t, []any{6.0, 5.0, 4.0}, values())
	page := c.Get(at("k/history?page_size=1&page_sort=version")).Object()
	require.EqualValues(t, 3, page["total"])
	item := page["items"].([]any)[0].(object)
	require.Equal(t, 4.0, item["version"])
	require.Equal(t, "application/json", item["content_type"])
	put(c, boxPath, object{"history": 1}).OK(nil)
	require.Len(t, values(), 3, "until the next change")
	put(c, at("k"), object{"value": 8}).OK(nil)
	require.Equal(t, []any{7.0}, values())
	put(c, boxPath, object{}).OK(nil)
	require.EqualValues(t, 0, put(c, at("k"), object{"value": 9}).Object()["kept_versions"])
	require.Empty(t, values())
}

func TestListsOfObjects(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := kvOf(s, "acme")
	keys := []any{"a", "a.b", "a/1", "a/2", "b", "é", "微"}
	for i := range keys { // in another order
		put(c, objectsPath+"/"+strings.ReplaceAll(keys[(i*3)%len(keys)].(string), "é", "%C3%A9"),
			object{"value": i}).OK(nil)
	}
	put(c, bucketsPath+"/box2/objects/a", object{"value": 1}).OK(nil)
	put(kvOf(s, "globex"), at("a"), object{"value": 1}).OK(nil)
	require.Equal(t, keys, c.Items(objectsPath, "key"))
	require.Equal(t, keys[2:4], c.Items(objectsPath+"?prefix=a/", "key"))
	require.Equal(t, keys[:4], c.Items(objectsPath+"?prefix=a", "key"))
	require.NotContains(t, string(c.Get(objectsPath).Body), `"value"`)
	require.Len(t, c.Items(objectsPath+"?include_values=true&prefix=a/", "value"), 2)
	var walked []any
	for token := ""; ; {
		page := c.Get(objectsPath + "?page_size=2&page_token=" + token).Object()
		for _, item := range page["items"].([]any) {
			walked = append(walked, item.(object)["key"])
		}
		s.Clock.Advance(time.Second) // the filter changes with the time, and the token stays valid
		if token, _ = page["next_page_token"].(string); token == "" {
			break
		}
	}
	require.Equal(t, keys, walked)
	c.Get(objectsPath+"?page_sort=value").Problem(http.StatusBadRequest, "invalid_parameters", "query.page_sort")

	// A page has at most 4 MiB of values.
	large := strings.Repeat("x", 900_000)
	for n := range 6 {
		put(c, bucketsPath+"/large/objects/"+fmt.Sprint(n), object{"value": large}).OK(nil)
	}
	page := c.Get(bucketsPath + "/large/objects?include_values=true").Object()
	require.Len(t, page["items"], 4)
	rest := c.Get(bucketsPath + "/large/objects?include_values=true&page_token=" + page["next_page_token"].(string))
	require.Len(t, rest.Object()["items"], 2)
}

func TestBuckets(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := kvOf(s, "acme")
	made := put(c, boxPath, object{"description": "Boxes", "history": 2}).Object()
	require.Equal(t, 1.0, made["version"])
	require.Equal(t, "active", made["state"])
	require.EqualValues(t, 1<<20, made["max_object_bytes"])
	require.Equal(t, made, c.Get(boxPath).Object())
	require.Equal(t, made, put(c, boxPath, made).Object())
	put(c.With("If-Match", `"2"`), boxPath, object{}).Problem(http.StatusPreconditionFailed, "version_mismatch")
	put(c.With("If-Match", `"1"`), bucketsPath+"/other", object{}).
		Problem(http.StatusPreconditionFailed, "version_mismatch")
	put(c.With("If-Match", `"1"`), boxPath, object{}).OK(nil)
	for location, body := range map[string]object{
		"body.description":      {"description": strings.Repeat("x", 1025)},
		"body.ttl_seconds":      {"ttl_seconds": -1},
		"body.history":          {"history": 101},
		"body.max_object_bytes": {"max_object_bytes": 1<<20 + 1},
	} {
		put(c, boxPath, body).Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
	put(c, bucketsPath+"/.box", object{}).Problem(http.StatusBadRequest, "invalid_parameters", "path.bucket")
	put(c, at("k"), object{"value": 1}).OK(nil)
	put(c, bucketsPath+"/appears/objects/k", object{"value": 1}).OK(nil)
	require.Equal(t, []any{"appears", "box"}, c.Items(bucketsPath+"?page_sort=name", "name"))
	require.Empty(t, kvOf(s, "globex").Items(bucketsPath, "name"))
	kvOf(s, "globex").Get(boxPath).Problem(http.StatusNotFound, "not_found")

	c.Delete(boxPath, nil).Problem(http.StatusConflict, "in_use", "objects")
	c.Delete(boxPath+"?force=true&dry_run=true", nil).OK(nil)
	c.Get(at("k")).OK(nil)
	require.Equal(t, made["id"], c.Delete(boxPath+"?force=true", nil).ID())
	c.Get(at("k")).Problem(http.StatusNotFound, "not_found")
	c.Delete(boxPath, nil).Problem(http.StatusNotFound, "not_found")
	put(c, boxPath, object{}).OK(nil)
	c.Delete(boxPath, nil).OK(nil)
}

// A bucket is deleted while objects are written to it. In the end it is deleted with all objects, or a later object has
// created it again.
func TestABucketIsDeletedWhileItIsWritten(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := kvOf(s, "acme")
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := range 50 {
				answer := put(c, at(fmt.Sprintf("w%d/%d", w, n)), object{"value": n})
				if answer.Status != http.StatusOK {
					answer.Problem(http.StatusConflict, "invalid_state")
				}
			}
		})
	}
	for range 5 {
		answer := c.Delete(boxPath+"?force=true", nil)
		if answer.Status != http.StatusOK {
			answer.Problem(http.StatusNotFound, "not_found")
		}
	}
	writers.Wait()
	if c.Delete(boxPath+"?force=true", nil).Status == http.StatusOK {
		c.Get(boxPath).Problem(http.StatusNotFound, "not_found")
	}
	put(c, boxPath, object{}).OK(nil)
	require.Empty(t, c.Items(objectsPath, "key"))
}

// A task finishes a deletion that is too large for the request.
func TestTheTaskFinishesADeletion(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := kvOf(s, "acme")
	for n := range 2100 {
		put(c, at(fmt.Sprint(n)), object{"value": n}).OK(nil)
	}
	c.Delete(boxPath+"?force=true", nil).OK(nil)
	require.Equal(t, "deleting", c.Get(boxPath).Object()["state"])
	put(c, boxPath, object{}).Problem(http.StatusConflict, "invalid_state")
	put(c, at("k"), object{"value": 1}).Problem(http.StatusConflict, "invalid_state")
	s.RunTask("delete buckets")
	c.Get(boxPath).Problem(http.StatusNotFound, "not_found")
	put(c, boxPath, object{}).OK(nil)
	require.Empty(t, c.Items(objectsPath, "key"))
}

func TestKVKeepsTheConventions(t *testing.T) {
	t.Parallel()
	t.Run("scopes and tenants", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		put(kvOf(s, "acme"), at("k"), object{"value": 1}).OK(nil)
		put(s.As("acme", auth.KVRead), at("k"), object{"value": 2}).Problem(http.StatusForbidden, "forbidden")
		s.As("acme", auth.KVWrite).Get(at("k")).Problem(http.StatusForbidden, "forbidden")
		s.Stranger().Get(at("k")).Problem(http.StatusUnauthorized, "unauthenticated")
		kvOf(s, "globex").Get(at("k")).Problem(http.StatusNotFound, "not_found")
		kvOf(s, "globex").Delete(at("k"), nil).Problem(http.StatusNotFound, "not_found")
	})
	t.Run("dry run", func(t *testing.T) {
		t.Parallel()
		s := start(t)
		c := kvOf(s, "acme")
		require.Equal(t, "true", put(c, at("k?dry_run=true"), object{"value": 1}).OK(nil).Header.Get("Dry-Run"))
		c.Get(boxPath).Problem(http.StatusNotFound, "not_found")
		put(c, at("k"), object{"value": 1}).OK(nil)
		put(c, at("k?dry_run=true"), object{"value": 2}).OK(nil)
		c.Delete(at("k?dry_run=true"), nil).OK(nil)
		require.Equal(t, 1.0, c.Get(at("k")).Object()["value"])
		require.Len(t, s.Events(2), 2, "the bucket and the object")
	})
	t.Run("idempotency", func(t *testing.T) {
		t.Parallel()
		c := kvOf(start(t), "acme").With("Idempotency-Key", "key-1")
		body := object{"key": "k", "value": strings.Repeat("<", 20_000)}
		first, again := c.Post(objectsPath, body).OK(nil), c.Post(objectsPath, body)
		require.JSONEq(t, string(first.Body), string(again.Body))
		require.Equal(t, "true", again.Header.Get("Idempotent-Replayed"))
		require.Equal(t, first.Header.Get("ETag"), again.Header.Get("ETag"))
		c.Post(objectsPath, object{"key": "k", "value": 2}).
			Problem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	})
}

// Who orders the deletion of a bucket with its objects is told at once, because the platform does the rest.
func TestWhoOrdersADeletionIsTold(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := kvOf(s, "acme")
	put(c, at("k"), object{"value": 1}).OK(nil)
	c.Delete(boxPath+"?force=true", nil).OK(nil)
	all := s.EventsUntil(func(e stream.Event) bool { return e.Type == "idp.kv_bucket.deleted" })
	ordered := slices.IndexFunc(all, func(e stream.Event) bool { return e.Type == "idp.kv_bucket.updated" })
	require.GreaterOrEqual(t, ordered, 0)
	require.Equal(t, "test#tester", all[ordered].Actor)
	require.Contains(t, string(all[ordered].Data), `"deleting"`)
}
