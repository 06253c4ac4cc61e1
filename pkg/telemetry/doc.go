// Package telemetry is what a process tells about itself: logs (slog), metrics (Prometheus), traces (OpenTelemetry) and the admin
// listener that serves them. Nothing here shows a body, a header, a query string or a credential.
package telemetry
