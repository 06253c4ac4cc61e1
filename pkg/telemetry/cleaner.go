package telemetry

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// harmless lists the attributes that spans may have: names from OpenTelemetry's semantic conventions whose values
// hold no text of a client, and the platform's own names under idp. It lists what is allowed rather than what is not,
// because instrumentation libraries add attributes from version to version (url.full contains query strings). A name
// that ends with a dot allows all names below it.
var harmless = []string{
	"idp.", "network.", "server.", "messaging.", "rpc.",
	"http.request.method", "http.response.status_code", "http.route", "http.request.body.size",
	"http.response.body.size",
	"url.scheme", "error.type", "exception.type", "db.system.name", "db.collection.name", "db.operation.name",
}

// cleaner removes all attributes that are not harmless before spans leave the process.
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
	return sdktrace.Status{Code: s.ReadOnlySpan.Status().Code} // without the description, which is the text of an error
}

func cleanAttributes(all []attribute.KeyValue) []attribute.KeyValue {
	return slices.DeleteFunc(slices.Clone(all), func(kv attribute.KeyValue) bool {
		return !slices.ContainsFunc(harmless, func(name string) bool {
			return string(kv.Key) == name || strings.HasSuffix(name, ".") && strings.HasPrefix(string(kv.Key), name)
		})
	})
}
