package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// This is the only test that uses the process's globals, so it does not run in parallel.
func TestTracingSendsToTheCollector(t *testing.T) {
	var mu sync.Mutex
	received := map[string]string{}
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(r.Body)
		}
		content, _ := io.ReadAll(body)
		mu.Lock()
		defer mu.Unlock()
		received[r.URL.Path] += string(content)
	}))
	defer collector.Close()

	var logged bytes.Buffer
	provider, shutdown, err := Tracing(t.Context(), TracingConfig{Endpoint: collector.URL, SampleRatio: 1}, "idp-test",
		NewLogger(&logged, slog.LevelInfo, JSON))
	require.NoError(t, err)
	_, span := provider.Tracer("x").Start(t.Context(), "get-user")
	span.SetAttributes(attribute.String("http.route", "/v1/users/{id}"),
		attribute.String("url.full", "https://x/?token=s3cret"))
	span.End()
	_, global := otel.Tracer("y").Start(t.Context(), "through-the-global")
	global.End()
	require.NoError(t, shutdown(t.Context()))

	require.Len(t, received, 1)
	sent := received["/v1/traces"]
	for _, want := range []string{"idp-test", "get-user", "/v1/users/{id}", "through-the-global"} {
		require.Contains(t, sent, want)
	}
	require.NotContains(t, sent, "s3cret")
	require.Equal(t, []string{"traceparent", "tracestate"}, otel.GetTextMapPropagator().Fields())
	otel.Handle(errors.New("the collector is away"))
	require.Contains(t, logged.String(), "the collector is away")
}

func TestTracingOffOrRefused(t *testing.T) {
	t.Parallel()
	provider, shutdown, err := Tracing(t.Context(), TracingConfig{SampleRatio: 1}, "idp-test", nil)
	require.NoError(t, err)
	require.Nil(t, provider)
	require.NoError(t, shutdown(t.Context()))
	for _, endpoint := range []string{"collector:4318", "ftp://collector", "http://", "://", "http://a b"} {
		_, _, err := Tracing(t.Context(), TracingConfig{Endpoint: endpoint}, "idp-test", nil)
		require.Error(t, err, endpoint)
	}
}

func record(t *testing.T, share float64, run func(trace.Tracer)) tracetest.SpanStubs {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := newProvider(share, "idp-test", &cleaner{exporter})
	run(provider.Tracer("x"))
	require.NoError(t, provider.ForceFlush(t.Context()))
	spans := exporter.GetSpans()
	require.NoError(t, provider.Shutdown(t.Context()))
	return spans
}

func TestOnlyHarmlessAttributesLeave(t *testing.T) {
	t.Parallel()
	var dangerous []attribute.KeyValue
	for _, name := range []string{
		"url.full", "url.query", "url.path", "http.url", "http.target", "http.request.header.authorization",
		"user_agent.original", "db.query.text", "client.address", "http.request.methods3cret", "body",
	} {
		dangerous = append(dangerous, attribute.String(name, "s3cret"))
	}
	kept := []attribute.KeyValue{
		attribute.String("idp.operation", "get-user"), attribute.Int("http.response.status_code", 200),
		attribute.String("server.address", "x"),
	}
	spans := record(t, 1, func(tracer trace.Tracer) {
		all := append(append([]attribute.KeyValue{}, dangerous...), kept...)
		linked := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}})
		_, span := tracer.Start(context.Background(), "op", trace.WithAttributes(all...),
			trace.WithLinks(trace.Link{SpanContext: linked, Attributes: all}))
		span.RecordError(errors.New("s3cret"), trace.WithStackTrace(true))
		span.AddEvent("e", trace.WithAttributes(all...))
		span.SetStatus(codes.Error, "s3cret")
		span.End()
	})
	require.Len(t, spans, 1)
	require.Equal(t, kept, spans[0].Attributes)
	require.Equal(t, kept, spans[0].Events[1].Attributes)
	require.Equal(t, kept, spans[0].Links[0].Attributes)
	require.Len(t, spans[0].Events[0].Attributes, 1)
	require.Equal(t, attribute.Key("exception.type"), spans[0].Events[0].Attributes[0].Key)
	require.Equal(t, sdktrace.Status{Code: codes.Error}, spans[0].Status)
}

// A client's sampled flag does not have more traces sent. All services decide alike.
func TestSampling(t *testing.T) {
	t.Parallel()
	const (
		low  = "00-00000000000000000000000000000001-0000000000000001-01"
		high = "00-ffffffffffffffffffffffffffffffff-0000000000000001-01"
	)
	for _, tt := range []struct {
		ratio  float64
		parent string
		want   int
	}{
		{1, "", 2}, {0, "", 0}, {1, high, 2}, {0, high, 0}, {0, low, 0}, {.5, low, 2}, {.5, high, 0},
		{1, high[:53] + "00", 0}, // the sender's flag says not to sample
	} {
		spans := record(t, tt.ratio, func(tracer trace.Tracer) {
			ctx := propagation.TraceContext{}.Extract(context.Background(),
				propagation.MapCarrier{"traceparent": tt.parent})
			ctx, outer := tracer.Start(ctx, "outer")
			_, inner := tracer.Start(ctx, "inner")
			inner.End()
			outer.End()
		})
		require.Len(t, spans, tt.want, "%v", tt)
	}
}
