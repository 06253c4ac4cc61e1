package main

import (
	"fmt"
	"strings"
)

// dashboard is a Grafana dashboard.
type dashboard struct {
	title, help string
	panels      []panel
}

// panel is a graph of a dashboard.
type panel struct {
	title, help, unit string
	lines             []graph
}

// graph is a query in PromQL, and what its series are called.
type graph struct{ query, legend string }

// perSecond is a graph of how fast a counter rises, by some labels. $service is chosen at the dashboard's top.
func perSecond(counter, by string) graph {
	return graph{fmt.Sprintf(`sum by (%s) (rate(%s[$__rate_interval]))`, by, selected(counter)), legend(by)}
}

// shareOf is a graph of the part of a counter that has a label's value.
func shareOf(counter, value, by string) graph {
	return graph{fmt.Sprintf(`sum by (%s) (rate(%s[$__rate_interval])) / sum by (%s) (rate(%s[$__rate_interval]))`,
		by, selected(counter, value), by, selected(counter)), legend(by)}
}

// quantile is a graph of a quantile of a histogram.
func quantile(q, histogram, by string, values ...string) graph {
	return graph{fmt.Sprintf(`histogram_quantile(%s, sum by (le, %s) (rate(%s[$__rate_interval])))`, q, by,
		selected(histogram+"_bucket", values...)), legend(by) + " p" + strings.TrimPrefix(q, "0.")}
}

// now is a graph of a gauge, added up over replicas.
func now(gauge, by string) graph {
	return graph{fmt.Sprintf(`sum by (%s) (%s)`, by, selected(gauge)), legend(by)}
}

// highest is a graph of a gauge's highest value of all replicas.
func highest(gauge, by string) graph {
	return graph{fmt.Sprintf(`max by (%s) (%s)`, by, selected(gauge)), legend(by)}
}

// selected is the metric of the chosen services. The one program has some without a service.
func selected(metric string, values ...string) string {
	return metric + `{` + strings.Join(append([]string{`service=~"$service|"`}, values...), ",") + `}`
}

func legend(by string) string {
	return "{{" + strings.ReplaceAll(by, ", ", "}} {{") + "}}"
}

const (
	atGateway = "idp_gateway_request_duration_seconds"
	requests  = "idp_http_request_duration_seconds"
	answers   = "idp_http_requests_total"
	isCheck   = `operation=~"check-auth|evaluate-access|evaluate-accesses"`
	isSearch  = `operation=~"list-auth-check-.*|search-.*"`
)

// dashboards are the files in deploy/monitoring/dashboards, by name.
var dashboards = map[string]dashboard{
	"platform": {"idplatform: platform", "Is it well, and if not, which part is it?", []panel{
		{"Ready", "Replicas that have everything they need, as their /readyz says.", "short",
			[]graph{now("idp_ready", "service")}},
		{"Requests", "Through the gateway.", "reqps", []graph{perSecond(atGateway+"_count", "service")}},
		{"Errors", "The share of answers 5xx.", "percentunit",
			[]graph{shareOf(atGateway+"_count", `class="5xx"`, "service")}},
		{"Duration", "Of answers 2xx at the gateway, event streams too.", "s",
			[]graph{quantile("0.50", atGateway, "service", `class="2xx"`), quantile("0.99", atGateway, "service",
				`class="2xx"`)}},
		{"In flight", "Requests being served, and event streams.", "short", []graph{
			{"sum(idp_gateway_requests_in_flight)", "requests"}, {"sum(idp_gateway_event_streams_open)", "streams"}}},
		{"Refused by the gateway", "Answers 429.", "reqps",
			[]graph{{"sum(rate(idp_gateway_rate_limited_total[$__rate_interval]))", "too many requests"}}},
		{"Processors", "Processor time.", "short", []graph{perSecond("process_cpu_seconds_total", "service")}},
		{"Memory", "Of all replicas.", "bytes", []graph{now("process_resident_memory_bytes", "service")}},
		{"Oldest event to publish", "Above a minute, other services do not know of changes.", "s",
			[]graph{highest("idp_outbox_oldest_age_seconds", "service")}},
	}},
	"service": {"idplatform: service", "One service: what it is asked, and how it answers.", []panel{
		{"Requests", "By operation.", "reqps", []graph{perSecond(answers, "operation")}},
		{"Refusals and errors", "Answers 4xx and 5xx.", "reqps", []graph{{
			`sum by (operation, code) (rate(` + selected(answers, `code=~"[45].."`) + `[$__rate_interval]))`,
			"{{operation}} {{code}}"}}},
		{"Duration, 99 %", "By operation; event streams last as long as they are open.", "s",
			[]graph{quantile("0.99", requests, "operation")}},
		{"Duration, half", "By operation.", "s", []graph{quantile("0.50", requests, "operation")}},
		{"Refused credentials", "Writes that were refused because of the credential.", "reqps",
			[]graph{perSecond("idp_denied_writes_total", "service")}},
		{"Answers in memory", "What answers hold while their clients read them.", "bytes",
			[]graph{now("idp_answers_held_bytes", "service")}},
		{"Work postponed", "Records whose work failed and is tried again.", "short",
			[]graph{highest("idp_due_postponed", "service, task")}},
		{"Under older keys", "Records whose secrets a rotation has yet to seal again.", "short",
			[]graph{highest("idp_secrets_under_older_keys", "service")}},
		{"Goroutines", "", "short", []graph{now("go_goroutines", "service")}},
	}},
	"events": {"idplatform: events and NATS", "From the change in a store to those who hear of it.", []panel{
		{"Waiting to be published", "Events in the stores' outboxes.", "short",
			[]graph{highest("idp_outbox_backlog", "service")}},
		{"Oldest event to publish", "", "s", []graph{highest("idp_outbox_oldest_age_seconds", "service")}},
		{"Published", "Events that NATS has acknowledged.", "short",
			[]graph{perSecond("idp_outbox_published_total", "service")}},
		{"Refused by NATS", "Failed attempts; each event is tried again.", "short",
			[]graph{perSecond("idp_outbox_publish_failures_total", "service")}},
		{"Behind", "Events that wait for a consumer.", "short", []graph{highest("idp_consumer_lag", "consumer")}},
		{"Handled", "By consumer.", "short", []graph{perSecond("idp_consumer_handled_total", "consumer")}},
		{"Failed tries", "By consumer.", "short", []graph{perSecond("idp_consumer_failed_tries_total", "consumer")}},
		{"Put aside", "Parked events, and those that one replica lacks.", "short", []graph{
			perSecond("idp_consumer_parked_total", "consumer"), perSecond("idp_consumer_skipped_total", "consumer")}},
		{"Audit log behind", "Events that it lacks.", "short",
			[]graph{highest("idp_audit_log_behind_events", "service")}},
	}},
	"permissions": {"idplatform: permissions", "Checks, searches, and how current they are.", []panel{
		{"Checks", "", "reqps", []graph{{`sum by (operation) (rate(` + selected(answers, isCheck) +
			`[$__rate_interval]))`, "{{operation}}"}}},
		{"Duration of checks", "", "s", []graph{quantile("0.50", requests, "operation", isCheck),
			quantile("0.99", requests, "operation", isCheck)}},
		{"Refused checks", "Answers 4xx and 5xx; 503: the index has heard nothing for too long.", "reqps", []graph{{
			`sum by (code) (rate(` + selected(answers, isCheck, `code=~"[45].."`) + `[$__rate_interval]))`,
			"{{code}}"}}},
		{"Searches", "", "reqps", []graph{{`sum by (operation) (rate(` + selected(answers, isSearch) +
			`[$__rate_interval]))`, "{{operation}}"}}},
		{"Duration of searches", "", "s", []graph{quantile("0.99", requests, "operation", isSearch)}},
		{"Behind", "Events that wait for the index of a replica.", "short", []graph{{
			`max by (consumer) (idp_consumer_lag{consumer=~"permissions.*"})`, "{{consumer}}"}}},
		{"Left out of the index", "Events and records that it cannot read.", "short",
			[]graph{perSecond("idp_permissions_parked_events_total", "service")}},
		{"Memory", "The index is in it; the one program has all services in it.", "bytes", []graph{{
			`sum by (instance) (process_resident_memory_bytes{service=~"permissions|"})`, "{{instance}}"}}},
	}},
	"deliveries": {"idplatform: deliveries", "Webhooks and subscriptions over NATS.", []panel{
		{"Tries", "By type and outcome.", "short", []graph{perSecond("idp_delivery_tries_total", "type, outcome")}},
		{"Failures", "The share of tries.", "percentunit",
			[]graph{shareOf("idp_delivery_tries_total", `outcome="failed"`, "type")}},
		{"Active subscriptions", "", "short", []graph{now("idp_delivery_subscriptions", "service")}},
		{"Dropped", "Messages of tenants that have used up their share.", "short",
			[]graph{perSecond("idp_storage_dropped_total", "stream")}},
		{"Open event streams", "Server-Sent Events at the gateway.", "short",
			[]graph{{"sum(idp_gateway_event_streams_open)", "streams"}}},
	}},
	"jobs": {"idplatform: jobs and functions", "What the automation service runs.", []panel{
		{"Attempts", "By target and outcome.", "short",
			[]graph{perSecond("idp_job_attempts_total", "target, outcome")}},
		{"Failures", "The share of attempts.", "percentunit",
			[]graph{shareOf("idp_job_attempts_total", `outcome=~"failed|timed_out|not_begun"`, "target")}},
		{"Running", "Attempts at this moment.", "short", []graph{now("idp_job_attempts_running", "service")}},
		{"Calls of functions", "By outcome.", "short", []graph{perSecond("idp_function_calls_total", "outcome")}},
		{"Workers", "Processes that run functions.", "short", []graph{now("idp_function_workers", "service")}},
		{"Failures of due work", "By task; each is tried again.", "short",
			[]graph{perSecond("idp_due_failures_total", "task")}},
	}},
}

// json is the dashboard as Grafana imports it.
func (d dashboard) json(name string) map[string]any {
	source := map[string]string{"type": "prometheus", "uid": "${source}"}
	const columns, width, height = 3, 8, 8
	panels := []any{}
	for i, p := range d.panels {
		targets := []any{}
		for n, g := range p.lines {
			targets = append(targets, map[string]any{
				"refId": string(rune('A' + n)), "datasource": source, "expr": g.query, "legendFormat": g.legend,
			})
		}
		panels = append(panels, map[string]any{
			"id": i + 1, "type": "timeseries", "title": p.title, "description": p.help, "datasource": source,
			"gridPos":     map[string]int{"x": i % columns * width, "y": i / columns * height, "w": width, "h": height},
			"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.unit, "min": 0}, "overrides": []any{}},
			"options": map[string]any{
				"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []any{}},
				"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
			},
			"targets": targets,
		})
	}
	return map[string]any{
		"uid": "idplatform-" + name, "title": d.title, "description": d.help, "tags": []string{"idplatform"},
		"schemaVersion": 39, "editable": true, "refresh": "30s", "time": map[string]string{"from": "now-3h", "to": "now"},
		"links": []any{map[string]any{"type": "dashboards", "title": "idplatform", "tags": []string{"idplatform"},
			"asDropdown": true, "keepTime": true, "includeVars": true, "icon": "", "url": "", "tooltip": "",
			"targetBlank": false}},
		"templating": map[string]any{"list": []any{
			map[string]any{"name": "source", "label": "Source", "type": "datasource", "query": "prometheus"},
			map[string]any{"name": "service", "label": "Service", "type": "query", "datasource": source,
				"query": "label_values(process_start_time_seconds, service)", "refresh": 2, "multi": true,
				"includeAll": true, "allValue": ".*", "sort": 1},
		}},
		"panels": panels,
	}
}
