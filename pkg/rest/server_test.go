package rest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/pkg/service"
)

type named struct {
	Thing string `json:"thing"`
	Part  string `json:"part"`
}

// get registers an operation that only reads.
func get[B any](s *rest.Server, path string, fn func(context.Context) (B, error)) {
	rest.Handle(s, rest.Op{ID: "read" + strings.ReplaceAll(path, "/", "-"), Method: http.MethodGet, Path: path,
		Scope: auth.UsersRead, Summary: "Read"},
		func(ctx context.Context, _ *struct{}) (B, error) { return fn(ctx) })
}

// Long work rests after a request, so that the next ones need not wait for it. It is not parallel, because requests are
// noted for the whole process, also those of tests with a clock of another year. On a busy machine a request may be too
// long ago when the work looks.
func TestRequestsSlowLongWorkDown(t *testing.T) {
	c := newWorld(t).client()
	rests := func() bool {
		c.Get("/v1/things/7")
		began, pace := time.Now(), fair.Throttle{}
		pace.Worked(t.Context(), 20*time.Millisecond)
		return time.Since(began) >= 100*time.Millisecond
	}
	for range 100 {
		if rests() {
			return
		}
	}
	require.Fail(t, "no request was noted")
}

// Gin panics if the wildcard in one position has two names; /v1/things/{id} is registered already.
func TestWildcardsMayDifferInName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *rest.Server, _ service.Deps) {
		type input struct {
			ThingID string `path:"thing_id"`
			PartID  string `path:"id"`
		}
		rest.Handle(s, rest.Op{ID: "get-part", Method: http.MethodGet, Path: "/v1/things/{thing_id}/parts/{id}",
			Scope: auth.UsersRead, Summary: "Get a part"},
			func(_ context.Context, in *input) (named, error) { return named{in.ThingID, in.PartID}, nil })
		get(s, "/v1/things/special", func(context.Context) (named, error) { return named{Thing: "special"}, nil })
	})
	c := w.client()
	for path, want := range map[string]named{
		"/v1/things/7/parts/9":             {"7", "9"},
		"/v1/things/a%2Fb/parts/%E6%9D%8E": {"a/b", "李"},
		"/v1/things/special":               {Thing: "special"},
	} {
		var got named
		c.Get(path).OK(&got)
		require.Equal(t, want, got, path)
	}
	c.Get("/v1/things/specials").Problem(http.StatusNotFound, "not_found")
	id := c.Post("/v1/things", map[string]any{"name": "one"}).ID()
	require.Equal(t, id, c.Get("/v1/things/"+id).ID())
	body := string(w.Stranger().Get("/openapi.json").OK(nil).Body)
	require.Contains(t, body, `"/v1/things/{thing_id}/parts/{id}"`,
		"the document has the names of parameters, not their positions")
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	c := newWorld(t).client()
	for _, path := range []string{"/", "/v1", "/v1/things/", "/v1//things", "/v1/Things", "/v1/things/1/parts"} {
		c.Get(path).Problem(http.StatusNotFound, "not_found")
	}
	for method, allowed := range map[string][]string{
		http.MethodPut: {"GET", "POST", "HEAD"}, http.MethodOptions: {"GET", "POST"}, http.MethodTrace: {"GET"},
		"BREW": {"GET"},
	} {
		answer := c.Do(method, "/v1/things", nil)
		answer.Problem(http.StatusMethodNotAllowed, "method_not_allowed")
		require.NotContains(t, string(answer.Body), "BREW")
		for _, m := range allowed {
			require.Contains(t, answer.Header.Get("Allow"), m, method)
		}
	}
}

func TestHeadIsGetWithoutABody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := httptest.NewServer(w.Handler)
	defer server.Close()
	id := w.client().Post("/v1/things", map[string]any{"name": "one"}).ID()
	ask := func(method string) *http.Response {
		r, err := http.NewRequest(method, server.URL+"/v1/things/"+id, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+w.Token("acme", auth.UsersRead))
		response, err := server.Client().Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		return response
	}
	get, head := ask(http.MethodGet), ask(http.MethodHead)
	require.Equal(t, http.StatusOK, head.StatusCode)
	require.Equal(t, get.Header.Get("ETag"), head.Header.Get("ETag"))
	require.Equal(t, get.ContentLength, head.ContentLength)
	require.Positive(t, head.ContentLength)
	w.Stranger().Do(http.MethodHead, "/v1/things/"+id, nil).Problem(http.StatusUnauthorized, "unauthenticated")
}

// By default huma adds $schema members and Link headers, and answers 204 without a body.
func TestAnswersAreOnlyWhatIsMeant(t *testing.T) {
	t.Parallel()
	loads := 0
	w := newWorld(t, func(s *rest.Server, _ service.Deps) {
		get(s, "/v1/empty", func(context.Context) (rest.Empty, error) { return rest.Empty{}, nil })
		get(s, "/v1/array", func(context.Context) ([]named, error) { return []named{{"<a>", "&"}}, nil })
		get(s, "/v1/none", func(context.Context) ([]named, error) { return []named{}, nil })
		get(s, "/v1/image", func(context.Context) (rest.Image, error) {
			return rest.Image{ETag: "abc", Load: func(context.Context) (string, []byte, error) {
				loads++
				return "image/png", []byte{1, 0, 2}, nil
			}}, nil
		})
	})
	c := w.client()
	for path, want := range map[string]string{"/v1/empty": "{}", "/v1/array": `[{"thing":"<a>","part":"&"}]`,
		"/v1/none": "[]"} {
		for _, accept := range []string{"", "*/*", "text/html", "application/xml;q=1", "application/problem+json"} {
			answer := c.With("Accept", accept).Get(path)
			answer.OK(nil)
			require.Equal(t, want, strings.TrimSpace(string(answer.Body)))
			require.Equal(t, "application/json; charset=utf-8", answer.Header.Get("Content-Type"))
			require.Equal(t, "no-store", answer.Header.Get("Cache-Control"))
			require.Empty(t, answer.Header.Get("Link"))
		}
	}
	unchanged := c.With("If-None-Match", `"abc"`).Get("/v1/image")
	require.Equal(t, http.StatusNotModified, unchanged.Status)
	require.Zero(t, loads, "a client that has the image causes no work")
	image := c.Get("/v1/image")
	require.Equal(t, []byte{1, 0, 2}, image.Body)
	require.Equal(t, "image/png", image.Header.Get("Content-Type"))
	require.Equal(t, `"abc"`, image.Header.Get("ETag"))
	require.Equal(t, "private", image.Header.Get("Cache-Control"))
	kept := c.With("If-None-Match", `"x", W/"abc"`).Get("/v1/image")
	require.Equal(t, http.StatusNotModified, kept.Status)
	require.Equal(t, "private", kept.Header.Get("Cache-Control"))
	require.Empty(t, kept.Body)
	record := c.Post("/v1/things", map[string]any{"name": "one"})
	require.NotContains(t, string(record.Body), "$schema")
	refused := c.With("Accept", "text/html").Post("/v1/things", map[string]any{})
	refused.Problem(http.StatusBadRequest, "invalid_parameters", "body.name")
	require.NotContains(t, string(refused.Body), "$schema")
	require.Empty(t, refused.Header.Get("Link"))
}

func TestAPanicTellsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *rest.Server, _ service.Deps) {
		get(s, "/v1/panic", func(context.Context) (named, error) { panic("password=hunter2") })
	})
	answer := w.client().With("X-Request-Id", "mine-42").Get("/v1/panic")
	doc := answer.Problem(http.StatusInternalServerError, "internal")
	require.Equal(t, "mine-42", doc.RequestID)
	require.NotContains(t, string(answer.Body), "hunter2")
	require.NotContains(t, string(answer.Body), "goroutine")
	lines := w.logs.with("hunter2")
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "mine-42", "the request id leads to it")
	require.Contains(t, lines[0], "server_test.go", "and tells where it happened")
	require.EqualValues(t, 1, w.requests(t, "read-v1-panic", "500"), "a panic is counted, too")
	w.client().Get("/v1/things").OK(nil)
}

func TestForeignErrorsTellNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *rest.Server, _ service.Deps) {
		get(s, "/v1/fail", func(context.Context) (named, error) {
			return named{}, errors.New("dial mongodb://root:hunter2@db")
		})
	})
	answer := w.client().Get("/v1/fail")
	answer.Problem(http.StatusInternalServerError, "internal")
	require.NotContains(t, string(answer.Body), "mongodb")
	require.Len(t, w.logs.with("request failed"), 1)
	require.EqualValues(t, 1, w.requests(t, "read-v1-fail", "500"))
}

func TestAnOperationThatTakesTooLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *rest.Server, _ service.Deps) {
		rest.Handle(s, rest.Op{ID: "slow", Method: http.MethodGet, Path: "/v1/slow", Scope: auth.UsersRead,
			Summary: "Wait", Timeout: 20 * time.Millisecond},
			func(ctx context.Context, _ *struct{}) (named, error) {
				<-ctx.Done()
				return named{}, ctx.Err()
			})
	})
	answer := w.client().Get("/v1/slow")
	answer.Problem(http.StatusServiceUnavailable, "unavailable")
	require.NotEmpty(t, answer.Header.Get("Retry-After"))
	require.EqualValues(t, 1, w.requests(t, "slow", "503"))
}

func TestAClientThatLeavesIsNoFaultOfOurs(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(context.Background())
	w := newWorld(t, func(s *rest.Server, _ service.Deps) {
		get(s, "/v1/wait", func(ctx context.Context) (named, error) {
			leave()
			<-ctx.Done()
			return named{}, ctx.Err()
		})
	})
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/wait", nil)
	r.Header.Set("Authorization", "Bearer "+w.Token("acme", auth.UsersRead))
	w.Handler.ServeHTTP(httptest.NewRecorder(), r)
	require.EqualValues(t, 1, w.requests(t, "read-v1-wait", "499"))
	require.Empty(t, w.logs.with(`"level":"ERROR"`))
}

func TestRefusedAndAnsweredRequestsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	id := c.Post("/v1/things", map[string]any{"name": "one"}).ID()
	c.Post("/v1/things", map[string]any{"name": "one"}).Problem(http.StatusConflict, "already_exists", "body.name")
	c.Post("/v1/things", map[string]any{}).Problem(http.StatusBadRequest, "invalid_parameters")
	c.Post("/v1/things", "{").Problem(http.StatusBadRequest, "invalid_parameters")
	w.Stranger().Post("/v1/things", map[string]any{}).Problem(http.StatusUnauthorized, "unauthenticated")
	c.With("If-None-Match", "*").Get("/v1/things/" + id)
	for code, want := range map[string]float64{"200": 1, "409": 1, "400": 2, "401": 1, "500": 0} {
		require.InDelta(t, want, w.requests(t, "create-thing", code), 0, code)
	}
	require.EqualValues(t, 1, w.requests(t, "get-thing", "304"))
	line := w.logs.with(`"status":409`)
	require.Len(t, line, 1)
	require.Contains(t, line[0], `"operation":"create-thing"`)
	require.Equal(t, 1, strings.Count(line[0], `"operation"`))
	require.Contains(t, line[0], `"tenant":"acme"`)
	for _, refused := range []string{`"status":400`, `"status":401`} {
		for _, line := range w.logs.with(refused) {
			require.Contains(t, line, `"request_id"`, "a refused request can be found, too")
		}
	}
}

// A request for a dry run must not become a real one because its query is malformed.
func TestQueriesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for query, location := range map[string]string{
		"dry_run=true;x=1": "query", "dry_run=%zz": "query", "x=%": "query",
		"dry_run=yes": "query.dry_run", "dry_run=TRUE": "query.dry_run", "dry_run=false&dry_run=true": "query.dry_run",
	} {
		w.client().Post("/v1/things?"+query, map[string]any{"name": "one"}).
			Problem(http.StatusBadRequest, "invalid_parameters", location)
	}
	require.Zero(t, w.count())
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer := w.client().With("Idempotency-Key", "k").Post("/v1/things?dry_run=1", map[string]any{"name": "one"})
	require.Equal(t, "one", answer.Object()["name"])
	require.Equal(t, "true", answer.Header.Get("Dry-Run"))
	require.Zero(t, w.count())
	again := w.client().With("Idempotency-Key", "k").Post("/v1/things", map[string]any{"name": "one"})
	require.Empty(t, again.OK(nil).Header.Get("Idempotent-Replayed"), "a dry run does not use up the key")
	require.Empty(t, again.Header.Get("Dry-Run"))
	w.client().Post("/v1/things?dry_run=true", map[string]any{"name": "one"}).
		Problem(http.StatusConflict, "already_exists")
	w.client().Get("/v1/things?dry_run=nonsense").OK(nil)
	require.Equal(t, 1, w.count())
}

func TestConditions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client()
	id := c.Post("/v1/things", map[string]any{"name": "one"}).ID()
	other := c.Post("/v1/things", map[string]any{"name": "two"}).ID()
	for _, tag := range []string{`"2"`, `1`, `"1`, `1"`, `""1""`, `"+1"`, `"01"`, `"1" "2"`, `W/"1"`, `'1'`, ``,
		`"１"`} {
		c.With("If-Match", tag+" ").Patch("/v1/things/"+id, map[string]any{"count": 1}).
			Problem(http.StatusPreconditionFailed, "version_mismatch")
	}
	require.EqualValues(t, 2, c.With("If-Match", `"7" , "1"`).Patch("/v1/things/"+id, map[string]any{"count": 1}).
		Object()["version"])
	require.EqualValues(t, 2, c.With("If-Match", `*`).Patch("/v1/things/"+other, map[string]any{"count": 1}).
		Object()["version"])
	c.With("If-Match", `"2"`).Patch("/v1/things/1", map[string]any{"count": 1}).
		Problem(http.StatusNotFound, "not_found")
	c.With("If-None-Match", "*").Post("/v1/things", map[string]any{"name": "three"}).OK(nil)
}

// Admission comes before all reading: the body of a caller that is not admitted is not parsed.
func TestStrangersBodiesAreNotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := &unread{}
	w.Stranger().With("Content-Type", "application/json").With("Idempotency-Key", "k").Post("/v1/things", body).
		Problem(http.StatusUnauthorized, "unauthenticated")
	w.As("acme", auth.UsersRead).With("Content-Type", "application/json").Post("/v1/things", body).
		Problem(http.StatusForbidden, "forbidden")
	require.False(t, body.read)
}

type unread struct{ read bool }

func (u *unread) Read([]byte) (int, error) { u.read = true; return 0, errors.New("read") }

func TestKindsInsideOfOperations(t *testing.T) {
	t.Parallel()
	for kind, status := range map[apperr.Kind]int{
		apperr.InvalidState: 409, apperr.RateLimited: 429, apperr.Unavailable: 503, apperr.NotFound: 404,
		apperr.Forbidden: 403,
	} {
		w := newWorld(t, func(s *rest.Server, _ service.Deps) {
			get(s, "/v1/fail", func(context.Context) (named, error) { return named{}, apperr.New(kind, "because") })
		})
		answer := w.client().Get("/v1/fail")
		require.Equal(t, "because", answer.Problem(status, string(kind)).Detail)
		require.Equal(t, status == 429 || status == 503, answer.Header.Get("Retry-After") != "", kind)
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/v1/things", "/no/such/path"} {
		require.Equal(t, "mine-42", w.client().With("X-Request-Id", "mine-42").Get(path).Header.Get("X-Request-Id"))
		for _, insane := range []string{"", "a b", "a\x00", strings.Repeat("x", 129), "<script>"} {
			require.Regexp(t, "^[0-9a-z]{26}$", w.client().With("X-Request-Id", insane).
				Get(path).Header.Get("X-Request-Id"))
		}
	}
}

// Skipped rows are read, so page numbers must not lead to any depth. Page tokens may, at no cost.
func TestPagesHaveALimit(t *testing.T) {
	t.Parallel()
	c := newWorld(t).client()
	for _, query := range []string{"page_num=10000001", "page_num=500002&page_size=20",
		"page_num=9223372036854775807&page_size=200", "page_num=92233720368547759&page_size=200"} {
		c.Get("/v1/things?"+query).Problem(http.StatusBadRequest, "invalid_parameters", "query.page_num")
	}
	c.Get("/v1/things?page_num=500001").OK(nil)
}
