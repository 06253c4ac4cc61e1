package telemetry

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/idplatform/idplatform/pkg/weburl"
)

// TracingConfig says where spans are sent and how many.
type TracingConfig struct {
	Endpoint string `mapstructure:"endpoint" doc:"OTLP/HTTP collector, such as http://collector:4318; empty: no tracing"`
	// SampleRatio: the trace's id decides, so that all services decide alike; a client's sampled flag cannot have more
	// traces sent.
	SampleRatio float64 `mapstructure:"sample_ratio" doc:"Share of the traces that are kept, 0 to 1"`
}

// Tracing starts sending the spans of a service (service.name). Without an endpoint it returns a nil provider: then
// there is nothing to trace and callers should wrap nothing. The provider also becomes OpenTelemetry's global one, so a
// process calls Tracing once. The returned function sends the remaining spans and stops, at the latest when its context
// ends.
//
// Before spans leave the process they lose the texts of errors and every attribute that is not on a short list.
func Tracing(ctx context.Context, cfg TracingConfig, service string, log *slog.Logger) (
	trace.TracerProvider, func(context.Context) error, error,
) {
	if cfg.Endpoint == "" {
		return nil, func(context.Context) error { return nil }, nil
	}
	endpoint, err := weburl.HTTP(cfg.Endpoint)
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: the endpoint %w, such as http://collector:4318", err)
	}
	if endpoint.Path == "" || endpoint.Path == "/" {
		endpoint.Path = "/v1/traces"
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint.String()))
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: %w", err)
	}
	provider := newProvider(cfg.SampleRatio, service, &cleaner{exporter})
	otel.SetTracerProvider(provider)
	// Baggage is left out: it would carry any client's text through all services.
	otel.SetTextMapPropagator(propagation.TraceContext{})
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("tracing", "error", err) }))
	return provider, provider.Shutdown, nil
}

func newProvider(share float64, service string, exporter sdktrace.SpanExporter) *sdktrace.TracerProvider {
	ratio := sdktrace.TraceIDRatioBased(share)
	return sdktrace.NewTracerProvider(
		// The queue is bounded. If it is full, spans are dropped; requests never wait for it.
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(ratio, sdktrace.WithRemoteParentSampled(ratio))),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service))),
	)
}
