// Package telemetry provides a process's logs (slog), metrics (Prometheus), traces (OpenTelemetry) and the admin
// listener that serves them. Nothing here shows a body, a header, a query string or a credential.
package telemetry
