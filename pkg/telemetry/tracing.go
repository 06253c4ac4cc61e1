package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// TracingConfig says where spans go.
type TracingConfig struct {
	Endpoint    string  // the OTLP/HTTP collector's URL, http://collector:4318; empty: no tracing
	SampleRatio float64 // of traces, 0 to 1. Decided by the trace's id, so equally in all services, whatever a client's flag says
	Service     string  // service.name
	Log         *slog.Logger
}

// Tracing starts sending spans. The provider is nil where no endpoint is set: then nothing is traced and nothing should be wrapped.
// It becomes OpenTelemetry's global one too, so a process calls this once. The function sends what is left, until its context ends.
//
// Spans lose every attribute that is not on a short list of harmless ones, and all errors' texts, before they leave.
func Tracing(ctx context.Context, cfg TracingConfig) (trace.TracerProvider, func(context.Context) error, error) {
	if cfg.Endpoint == "" {
		return nil, func(context.Context) error { return nil }, nil
	}
	endpoint, err := url.Parse(cfg.Endpoint)
	if err != nil || endpoint.Host == "" || (endpoint.Scheme != "http" && endpoint.Scheme != "https") {
		return nil, nil, errors.New("tracing: the endpoint must be a URL like http://collector:4318")
	}
	if endpoint.Path == "" || endpoint.Path == "/" {
		endpoint.Path = "/v1/traces"
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint.String()))
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: %w", err)
	}
	provider := newProvider(cfg, &cleaner{exporter})
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{}) // no baggage: it would carry any client's text through all services
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { cfg.Log.Warn("tracing", "error", err) }))
	return provider, provider.Shutdown, nil
}

func newProvider(cfg TracingConfig, exporter sdktrace.SpanExporter) *sdktrace.TracerProvider {
	ratio := sdktrace.TraceIDRatioBased(cfg.SampleRatio)
	return sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter), // a bounded queue: spans are dropped when it is full, never waited for
		sdktrace.WithSampler(sdktrace.ParentBased(ratio, sdktrace.WithRemoteParentSampled(ratio))),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", cfg.Service))),
	)
}
