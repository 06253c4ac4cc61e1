package telemetry

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// harmless is what spans may say: names of OpenTelemetry's semantic conventions that hold no client's text, and our own under idp.
// Instrumentation of libraries adds others from version to version (url.full has query strings), so this is a list of what may
// leave, not of what may not. A name that ends with a dot stands for all below it.
var harmless = []string{
	"idp.", "network.", "server.", "messaging.", "rpc.",
	"http.request.method", "http.response.status_code", "http.route", "http.request.body.size", "http.response.body.size",
	"url.scheme", "error.type", "exception.type", "db.system.name", "db.collection.name", "db.operation.name",
}

// cleaner keeps what is not harmless from leaving the process.
type cleaner struct{ sdktrace.SpanExporter }

func (c *cleaner) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	clean := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		clean[i] = cleanSpan{s}
	}
	return c.SpanExporter.ExportSpans(ctx, clean)
}

type cleanSpan struct{ sdktrace.ReadOnlySpan }

func (s cleanSpan) Attributes() []attribute.KeyValue {
	return cleanAttributes(s.ReadOnlySpan.Attributes())
}

func (s cleanSpan) Events() []sdktrace.Event {
	events := slices.Clone(s.ReadOnlySpan.Events())
	for i := range events {
		events[i].Attributes = cleanAttributes(events[i].Attributes)
	}
	return events
}

func (s cleanSpan) Links() []sdktrace.Link {
	links := slices.Clone(s.ReadOnlySpan.Links())
	for i := range links {
		links[i].Attributes = cleanAttributes(links[i].Attributes)
	}
	return links
}

func (s cleanSpan) Status() sdktrace.Status {
	return sdktrace.Status{Code: s.ReadOnlySpan.Status().Code} // the description is an error's text
}

func cleanAttributes(all []attribute.KeyValue) []attribute.KeyValue {
	return slices.DeleteFunc(slices.Clone(all), func(kv attribute.KeyValue) bool {
		return !slices.ContainsFunc(harmless, func(name string) bool {
			return string(kv.Key) == name || strings.HasSuffix(name, ".") && strings.HasPrefix(string(kv.Key), name)
		})
	})
}
