package problem_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

// golden has the document of every kind, as the contract's conventions list them.
var golden = map[apperr.Kind]string{
	apperr.InvalidParameters:    document("invalid_parameters", "Invalid parameters", 400, "why"),
	apperr.Unauthenticated:      document("unauthenticated", "Unauthenticated", 401, "why"),
	apperr.Forbidden:            document("forbidden", "Forbidden", 403, "why"),
	apperr.NotFound:             document("not_found", "Not found", 404, "why"),
	apperr.MethodNotAllowed:     document("method_not_allowed", "Method not allowed", 405, "why"),
	apperr.AlreadyExists:        document("already_exists", "Already exists", 409, "why"),
	apperr.HasChildren:          document("has_children", "Has children", 409, "why"),
	apperr.ManagedElsewhere:     document("managed_elsewhere", "Managed elsewhere", 409, "why"),
	apperr.InUse:                document("in_use", "In use", 409, "why"),
	apperr.InvalidState:         document("invalid_state", "Invalid state", 409, "why"),
	apperr.RequestInProgress:    document("request_in_progress", "Request in progress", 409, "why"),
	apperr.VersionMismatch:      document("version_mismatch", "Version mismatch", 412, "why"),
	apperr.TooLarge:             document("too_large", "Too large", 413, "why"),
	apperr.UnsupportedMediaType: document("unsupported_media_type", "Unsupported media type", 415, "why"),
	apperr.IdempotencyKeyReused: document("idempotency_key_reused", "Idempotency key reused", 422, "why"),
	apperr.RateLimited:          document("rate_limited", "Rate limited", 429, "why"),
	apperr.Internal: document("internal", "Internal", 500,
		"something went wrong on our side; the request id finds it in the logs"),
	apperr.OutcomeUnknown: document("outcome_unknown", "Outcome unknown", 502, "why"),
	apperr.Unavailable:    document("unavailable", "Unavailable", 503, "why"),
}

func document(code, title string, status int, detail string) string {
	return fmt.Sprintf(`{"type":"urn:idp:problem:%s","title":"%s","status":%d,"detail":"%s","code":"%s",`+
		`"request_id":"r-1"}`, code, title, status, detail, code)
}
func write(err error) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	w.Header().Set("X-Request-Id", "r-1")
	problem.Write(w, err)
	return w
}

func TestEveryKindHasItsDocument(t *testing.T) {
	t.Parallel()
	kinds := declaredKinds(t)
	require.Len(t, golden, len(kinds), "every kind must be in the table")
	for _, kind := range kinds {
		want, ok := golden[kind]
		require.True(t, ok, kind)
		w := write(fmt.Errorf("somewhere: %w", apperr.New(kind, "why").Because(errors.New("the cause"))))
		require.Equal(t, want+"\n", w.Body.String())
		require.Equal(t, w.Code, problem.Status(kind))
		require.True(t, problem.Known(kind))
		require.Contains(t, want, `"status":`+strconv.Itoa(w.Code)+",")
		require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	}
}

// declaredKinds reads the kinds from the source of apperr, so that the table cannot miss one.
func declaredKinds(t *testing.T) []apperr.Kind {
	file, err := parser.ParseFile(token.NewFileSet(), "../apperr/apperr.go", nil, 0)
	require.NoError(t, err)
	var kinds []apperr.Kind
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Kind" {
				text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				kinds = append(kinds, apperr.Kind(text))
			}
		}
		return true
	})
	require.NotEmpty(t, kinds)
	return kinds
}

func TestForeignErrorsAreHidden(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"foreign":      errors.New("pq: password authentication failed for user secret"),
		"internal":     apperr.New(apperr.Internal, "secret"),
		"unknown kind": apperr.New("no_such_kind", "secret"),
		"nil":          nil,
	} {
		require.Equal(t, golden[apperr.Internal]+"\n", write(err).Body.String(), name)
		require.Equal(t, http.StatusInternalServerError, write(err).Code, name)
	}
	require.False(t, problem.Known("no_such_kind"))
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	after := func(kind apperr.Kind, d time.Duration) error { return &apperr.Error{Kind: kind, RetryAfter: d} }
	for want, errs := range map[string][]error{
		"": {io.EOF, apperr.Missing("user"), after(apperr.InvalidState, 0)},
		"1": {
			after(apperr.Unavailable, 0), after(apperr.RateLimited, 0), after(apperr.RequestInProgress, 0),
			after(apperr.RateLimited, time.Nanosecond),
		},
		"2": {
			apperr.Away("the store", nil), after(apperr.RateLimited, 1001*time.Millisecond),
			after(apperr.InvalidState, 2*time.Second),
		},
		"120": {fmt.Errorf("wrapped: %w", after(apperr.RateLimited, 2*time.Minute))},
	} {
		for _, err := range errs {
			require.Equal(t, want, write(err).Header().Get("Retry-After"), "%v", err)
			require.Empty(t, write(err).Header().Get("WWW-Authenticate"))
		}
	}
	require.Equal(t, "Bearer", write(apperr.New(apperr.Unauthenticated, "who?")).Header().Get("WWW-Authenticate"))
}

func TestFaultsAreListed(t *testing.T) {
	t.Parallel()
	body := write(apperr.Taken("body.email", "body.mobile")).Body.String()
	require.Contains(t, body, `"errors":[{"location":"body.email","message":"is taken"},`+
		`{"location":"body.mobile","message":"is taken"}]`)
}
