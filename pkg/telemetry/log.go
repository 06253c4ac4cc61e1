package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"
	"go.opentelemetry.io/otel/trace"

	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/secret"
)

// Format is the format of log lines.
type Format string

// The log formats. The zero Format is JSON.
const (
	Auto Format = "auto" // short lines for people on a terminal, JSON elsewhere
	JSON Format = "json"
	Text Format = "text" // logfmt
)

// UnmarshalText reads a configured format.
func (f *Format) UnmarshalText(text []byte) error {
	switch format := Format(text); format {
	case Auto, JSON, Text:
		*f = format
		return nil
	}
	return errors.New("must be auto, json or text")
}

// LogConfig says what is logged, and how.
type LogConfig struct {
	Level  slog.Level `mapstructure:"level" doc:"debug (every request), info, warn or error"`
	Format Format     `mapstructure:"format" doc:"json, text (logfmt), or auto: lines for people on a terminal, JSON elsewhere"`
}

// DefaultLog is how programs log unless they are told otherwise.
func DefaultLog() LogConfig { return LogConfig{Level: slog.LevelInfo, Format: Auto} }

// Logger returns the logger of a service that writes to w.
func (c LogConfig) Logger(w io.Writer, service string) *slog.Logger {
	return NewLogger(w, c.Level, c.Format).With("service", service)
}

// NewLogger returns a logger that writes to w. Lines that are logged with a context carry the request's id, tenant
// and operation and the ids of its trace and span, as far as the context has them. Credentials in URLs are masked in
// messages, texts and errors, because drivers repeat the URLs that they were given. In JSON, durations are seconds.
func NewLogger(w io.Writer, level slog.Level, format Format) *slog.Logger {
	switch {
	case format == Text:
		return slog.New(WithContext(slog.NewTextHandler(w, options(level))))
	case format == Auto && isTerminal(w):
		return slog.New(WithContext(forPeople(w, options(level))))
	}
	inJSON := options(level)
	inJSON.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			return slog.Float64(a.Key, a.Value.Duration().Seconds())
		}
		return maskURLs(groups, a)
	}
	return slog.New(WithContext(slog.NewJSONHandler(w, inJSON)))
}

func options(level slog.Level) *slog.HandlerOptions {
	return &slog.HandlerOptions{Level: level, ReplaceAttr: maskURLs}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// forPeople writes the time of day, the level, the message and the members, with colours unless NO_COLOR is set.
func forPeople(w io.Writer, options *slog.HandlerOptions) slog.Handler {
	return tint.NewTextHandler(w, &tint.Options{
		Level: options.Level, ReplaceAttr: options.ReplaceAttr, TimeFormat: time.TimeOnly,
		NoColor: os.Getenv("NO_COLOR") != "",
	})
}

func maskURLs(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(secret.MaskURLs(a.Value.String()))
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case error:
			a.Value = slog.StringValue(secret.MaskURLs(v.Error()))
		case *url.URL:
			a.Value = slog.StringValue(secret.MaskURLs(v.String()))
		case []string:
			safe := make([]string, len(v))
			for i := range v {
				safe[i] = secret.MaskURLs(v[i])
			}
			a.Value = slog.AnyValue(safe)
		}
	}
	return a
}

// WithContext adds to the lines of any handler what NewLogger describes: the request and the trace of the context.
func WithContext(h slog.Handler) slog.Handler { return &handler{Handler: h, root: h} }

// handler adds the context's attributes at the top level of each line, even if the logger has open groups. To do so
// it adds them to root, the handler before the first group, and then repeats the changes that came after.
type handler struct {
	slog.Handler
	root  slog.Handler
	later []func(slog.Handler) slog.Handler // the changes since the first group, in order
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	var buffer [5]slog.Attr
	attrs := contextAttrs(ctx, buffer[:0])
	if len(h.later) == 0 {
		r = r.Clone()
		r.AddAttrs(attrs...)
		return h.Handler.Handle(ctx, r)
	}
	if len(attrs) == 0 {
		return h.Handler.Handle(ctx, r)
	}
	full := h.root.WithAttrs(attrs)
	for _, again := range h.later {
		full = again(full)
	}
	return full.Handle(ctx, r)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	return h.with(func(inner slog.Handler) slog.Handler { return inner.WithAttrs(attrs) }, len(h.later) > 0)
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(func(inner slog.Handler) slog.Handler { return inner.WithGroup(name) }, true)
}

func (h *handler) with(change func(slog.Handler) slog.Handler, inGroup bool) slog.Handler {
	if !inGroup {
		return WithContext(change(h.Handler))
	}
	later := append(h.later[:len(h.later):len(h.later)], change)
	return &handler{change(h.Handler), h.root, later}
}

func contextAttrs(ctx context.Context, attrs []slog.Attr) []slog.Attr {
	if ctx == nil {
		return attrs
	}
	info := request.From(ctx)
	for _, a := range [...]struct{ key, value string }{
		{"request_id", info.ID}, {"tenant", info.Tenant}, {"operation", info.Operation},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.key, a.value))
		}
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		attrs = append(attrs,
			slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return attrs
}
