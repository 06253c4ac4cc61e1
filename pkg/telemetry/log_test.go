package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/idplatform/idplatform/pkg/request"
)

func served() context.Context {
	ctx := request.With(context.Background(),
		request.Info{ID: "r1", Tenant: "7", Actor: "not-logged", Operation: "get-user"})
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
	}))
}

const (
	traceID = "01000000000000000000000000000000"
	spanID  = "0200000000000000"
)

func TestLinesCarryTheRequest(t *testing.T) {
	t.Parallel()
	of := func(more map[string]any) map[string]any {
		line := map[string]any{
			"level": "INFO", "msg": "m", "request_id": "r1", "tenant": "7", "operation": "get-user",
			"trace_id": traceID, "span_id": spanID,
		}
		for k, v := range more {
			line[k] = v
		}
		return line
	}
	for name, tt := range map[string]struct {
		ctx  context.Context
		log  func(ctx context.Context, log *slog.Logger)
		want map[string]any
	}{
		"plain": {served(), func(ctx context.Context, l *slog.Logger) {
			l.InfoContext(ctx, "m", "a", 1)
		}, of(map[string]any{"a": 1.0})},
		"with": {served(), func(ctx context.Context, l *slog.Logger) {
			l.With("w", 2).InfoContext(ctx, "m", "a", 1)
		}, of(map[string]any{"w": 2.0, "a": 1.0})},
		"in a group": {served(), func(ctx context.Context, l *slog.Logger) {
			l.With("w", 2).WithGroup("g").With("x", 3).WithGroup("h").InfoContext(ctx, "m", "a", 1)
		}, of(map[string]any{"w": 2.0, "g": map[string]any{"x": 3.0, "h": map[string]any{"a": 1.0}}})},
		"empty group and attributes": {served(), func(ctx context.Context, l *slog.Logger) {
			l.WithGroup("").With().InfoContext(ctx, "m")
		}, of(nil)},
		"no request": {context.Background(), func(ctx context.Context, l *slog.Logger) {
			l.InfoContext(ctx, "m")
		}, map[string]any{"level": "INFO", "msg": "m"}},
		"no request, in a group": {context.Background(), func(ctx context.Context, l *slog.Logger) {
			l.WithGroup("g").InfoContext(ctx, "m", "a", 1)
		}, map[string]any{"level": "INFO", "msg": "m", "g": map[string]any{"a": 1.0}}},
		"only the tenant": {request.System(context.Background(), "9"), func(ctx context.Context, l *slog.Logger) {
			l.InfoContext(ctx, "m")
		}, map[string]any{"level": "INFO", "msg": "m", "tenant": "9"}},
		"no context": {nil, func(ctx context.Context, l *slog.Logger) {
			l.InfoContext(ctx, "m")
		}, map[string]any{"level": "INFO", "msg": "m"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			tt.log(tt.ctx, NewLogger(&out, slog.LevelInfo, JSON))
			var line map[string]any
			require.NoError(t, json.Unmarshal(out.Bytes(), &line))
			require.NotEmpty(t, line["time"])
			delete(line, "time")
			require.Equal(t, tt.want, line)
		})
	}
}

// Two loggers made from one with open groups do not overwrite each other's attributes.
func TestSiblingLoggers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	parent := NewLogger(&out, slog.LevelInfo, Text).WithGroup("g").With("a", 1).With("b", 2)
	first, second := parent.With("first", 1), parent.With("second", 2)
	first.InfoContext(served(), "m")
	require.Contains(t, out.String(), "g.a=1 g.b=2 g.first=1")
	out.Reset()
	second.InfoContext(served(), "m")
	require.Contains(t, out.String(), "g.a=1 g.b=2 g.second=2")
}

func TestLevelAndFormat(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := NewLogger(&out, slog.LevelWarn, Text)
	log.Info("no")
	log.WithGroup("g").Info("no")
	require.Empty(t, out.String())
	log.Warn("yes")
	require.Contains(t, out.String(), "level=WARN msg=yes")

	for format, line := range map[Format]string{Text: "took=4ms", JSON: `"took":0.004}`} {
		out.Reset()
		NewLogger(&out, slog.LevelInfo, format).Info("done", "took", 4*time.Millisecond)
		require.Contains(t, out.String(), line, format)
	}

	var f Format
	require.NoError(t, f.UnmarshalText([]byte("text")))
	require.Equal(t, Text, f)
	require.EqualError(t, f.UnmarshalText([]byte("xml")), "must be auto, json or text")
	require.Equal(t, Text, f)
}

func BenchmarkLog(b *testing.B) {
	log, ctx := NewLogger(io.Discard, slog.LevelInfo, JSON), served()
	b.ReportAllocs()
	for b.Loop() {
		log.InfoContext(ctx, "m", "status", 200)
	}
}

func TestCredentialsInURLs(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]func(io.Writer) *slog.Logger{
		"JSON": func(w io.Writer) *slog.Logger { return NewLogger(w, slog.LevelInfo, JSON) },
		"text": func(w io.Writer) *slog.Logger { return NewLogger(w, slog.LevelInfo, Text) },
		"people": func(w io.Writer) *slog.Logger {
			return slog.New(WithContext(forPeople(w, options(slog.LevelInfo))))
		},
	} {
		var out bytes.Buffer
		log := made(&out).With("nats", "nats://li:hush@h1,nats://li:hush@h2").WithGroup("g")
		address, err := url.Parse("https://li:hush@h/?token=hush")
		require.NoError(t, err)
		log.Info("dial mongodb://li:hush@h", "error", fmt.Errorf("parse %q", "mongodb://li:hush@h"), "url", address,
			slog.Group("more", "list", []string{"https://li:hush@h"}))
		require.NotContains(t, out.String(), "hush", name)
		require.Contains(t, out.String(), "nats://******@h1", name)
	}
}

// Who reads a file or a pipe gets JSON, and people get lines with the time of day.
func TestLinesForPeople(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	NewLogger(&out, slog.LevelInfo, Auto).Info("m")
	require.Contains(t, out.String(), `"msg":"m"`)
	out.Reset()
	slog.New(WithContext(forPeople(&out, options(slog.LevelWarn)))).WarnContext(served(), "it is full", "limit", 3)
	plain := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(out.String(), "")
	require.Regexp(t, `^\d\d:\d\d:\d\d WRN it is full limit=3 request_id=r1 tenant=7 `, plain)
}
