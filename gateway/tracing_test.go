package gateway

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestTracingContinuesTheCallersTrace(t *testing.T) {
	t.Parallel()
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	spans := tracetest.NewSpanRecorder()
	var got string
	service := func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Traceparent")
		_, _ = io.Copy(w, r.Body)
		_ = http.NewResponseController(w).Flush()
	}
	g, err := New(DefaultConfig(), map[string]Upstream{Users: local(service), Events: remote(t, service)}, Deps{
		Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
	})
	require.NoError(t, err)
	defer g.Close()
	for i, target := range []string{"/v1/users/1048577", "/v1/event-types"} {
		w := get(g, target, "Traceparent", "00-"+trace+"-"+parent+"-01")
		require.Equal(t, 200, w.Code)
		span := spans.Ended()[i]
		require.Equal(t, []string{"GET users", "GET events"}[i], span.Name(), "names must not contain ids")
		require.Equal(t, trace, span.SpanContext().TraceID().String())
		require.Equal(t, parent, span.Parent().SpanID().String())
		require.Equal(t, "00-"+trace+"-"+span.SpanContext().SpanID().String()+"-01", got,
			"the service's span must be a child of the gateway's")
	}
	get(g, "/readyz")
	require.Len(t, spans.Ended(), 2)

	// With tracing, imports still flow in both directions.
	resp, err := http.Post(listen(t, g).URL+"/v1/users/import", "", &zeros{left: 1 << 20})
	require.NoError(t, err)
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, n)

	w := httptest.NewRecorder()
	g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/users", nil))
	require.Regexp(t, "^00-[0-9a-f]{32}-[0-9a-f]{16}-01$", got, "without a trace of the caller, the gateway starts one")
}
