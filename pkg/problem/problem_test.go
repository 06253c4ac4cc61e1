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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/problem"
)

// golden is the conventions' table.
var golden = map[apperr.Kind]string{
	apperr.InvalidParameters:    `{"type":"urn:idp:problem:invalid_parameters","title":"Invalid parameters","status":400,"detail":"why","code":"invalid_parameters","request_id":"r-1"}`,
	apperr.Unauthenticated:      `{"type":"urn:idp:problem:unauthenticated","title":"Unauthenticated","status":401,"detail":"why","code":"unauthenticated","request_id":"r-1"}`,
	apperr.Forbidden:            `{"type":"urn:idp:problem:forbidden","title":"Forbidden","status":403,"detail":"why","code":"forbidden","request_id":"r-1"}`,
	apperr.NotFound:             `{"type":"urn:idp:problem:not_found","title":"Not found","status":404,"detail":"why","code":"not_found","request_id":"r-1"}`,
	apperr.MethodNotAllowed:     `{"type":"urn:idp:problem:method_not_allowed","title":"Method not allowed","status":405,"detail":"why","code":"method_not_allowed","request_id":"r-1"}`,
	apperr.AlreadyExists:        `{"type":"urn:idp:problem:already_exists","title":"Already exists","status":409,"detail":"why","code":"already_exists","request_id":"r-1"}`,
	apperr.HasChildren:          `{"type":"urn:idp:problem:has_children","title":"Has children","status":409,"detail":"why","code":"has_children","request_id":"r-1"}`,
	apperr.InUse:                `{"type":"urn:idp:problem:in_use","title":"In use","status":409,"detail":"why","code":"in_use","request_id":"r-1"}`,
	apperr.InvalidState:         `{"type":"urn:idp:problem:invalid_state","title":"Invalid state","status":409,"detail":"why","code":"invalid_state","request_id":"r-1"}`,
	apperr.RequestInProgress:    `{"type":"urn:idp:problem:request_in_progress","title":"Request in progress","status":409,"detail":"why","code":"request_in_progress","request_id":"r-1"}`,
	apperr.VersionMismatch:      `{"type":"urn:idp:problem:version_mismatch","title":"Version mismatch","status":412,"detail":"why","code":"version_mismatch","request_id":"r-1"}`,
	apperr.TooLarge:             `{"type":"urn:idp:problem:too_large","title":"Too large","status":413,"detail":"why","code":"too_large","request_id":"r-1"}`,
	apperr.UnsupportedMediaType: `{"type":"urn:idp:problem:unsupported_media_type","title":"Unsupported media type","status":415,"detail":"why","code":"unsupported_media_type","request_id":"r-1"}`,
	apperr.IdempotencyKeyReused: `{"type":"urn:idp:problem:idempotency_key_reused","title":"Idempotency key reused","status":422,"detail":"why","code":"idempotency_key_reused","request_id":"r-1"}`,
	apperr.RateLimited:          `{"type":"urn:idp:problem:rate_limited","title":"Rate limited","status":429,"detail":"why","code":"rate_limited","request_id":"r-1"}`,
	apperr.Internal:             `{"type":"urn:idp:problem:internal","title":"Internal","status":500,"detail":"something went wrong on our side; the request id finds it in the logs","code":"internal","request_id":"r-1"}`,
	apperr.OutcomeUnknown:       `{"type":"urn:idp:problem:outcome_unknown","title":"Outcome unknown","status":502,"detail":"why","code":"outcome_unknown","request_id":"r-1"}`,
	apperr.Unavailable:          `{"type":"urn:idp:problem:unavailable","title":"Unavailable","status":503,"detail":"why","code":"unavailable","request_id":"r-1"}`,
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

// declaredKinds reads the kinds out of the source, so that none can be forgotten here.
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

func TestNothingIsToldOfForeignErrors(t *testing.T) {
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
		"":    {io.EOF, apperr.Missing("user"), after(apperr.InvalidState, 0)},
		"1":   {after(apperr.Unavailable, 0), after(apperr.RateLimited, 0), after(apperr.RequestInProgress, 0), after(apperr.RateLimited, time.Nanosecond)},
		"2":   {apperr.Away("the store", nil), after(apperr.RateLimited, 1001*time.Millisecond), after(apperr.InvalidState, 2*time.Second)},
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
	require.True(t, strings.Contains(body, `"errors":[{"location":"body.email","message":"is taken"},{"location":"body.mobile","message":"is taken"}]`), body)
}
