package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/gateway"
	"github.com/idplatform/idplatform/pkg/service"
	"github.com/idplatform/idplatform/pkg/telemetry"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
)

const metricsIntro = `# Metrics

<!-- Made from the code by TestMetricsGolden; "make generate" writes it. -->

Every program serves these at ` + "`/metrics`" + ` of its admin listener (` + "`IDP_ADMIN_LISTEN`" + `). What a histogram
measures is in ` + "`…_bucket`, `…_sum` and `…_count`" + `. In the one program, the metrics of a service have the further
label ` + "`service`" + `; where services are processes, [prometheus.yml](monitoring/prometheus.yml) gives it to each target.

`

// metric is a row of the table.
type metric struct {
	name, help, kind string
	labels           []string
}

// recorder is a registry that keeps what is registered with it, also metrics that have no series yet.
type recorder struct {
	*prometheus.Registry
	metrics map[string]metric // by name
}

func newRecorder() *recorder { return &recorder{prometheus.NewRegistry(), map[string]metric{}} }

func (r *recorder) Register(c prometheus.Collector) error {
	if err := r.Registry.Register(c); err != nil {
		return err
	}
	r.note(c)
	return nil
}

func (r *recorder) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

func (r *recorder) note(c prometheus.Collector) {
	for _, desc := range descriptions(c) {
		m := parseDescription(desc)
		switch c.(type) {
		case *prometheus.CounterVec:
			m.kind = "counter"
		case *prometheus.GaugeVec:
			m.kind = "gauge"
		case *prometheus.HistogramVec:
			m.kind = "histogram"
		default:
			m.kind = kindOf(c, desc)
		}
		r.metrics[m.name] = m
	}
}

func descriptions(c prometheus.Collector) (all []*prometheus.Desc) {
	sent := make(chan *prometheus.Desc)
	go func() { c.Describe(sent); close(sent) }()
	for desc := range sent {
		all = append(all, desc)
	}
	return all
}

// description is the form in which a Desc, which has no accessors, prints itself.
var description = regexp.MustCompile(
	`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), .*constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)

func parseDescription(desc *prometheus.Desc) (m metric) {
	parts := description.FindStringSubmatch(desc.String())
	m.name, _ = strconv.Unquote(parts[1])
	m.help, _ = strconv.Unquote(parts[2])
	if parts[3] != "" {
		m.labels = strings.Split(parts[3], ",")
	}
	return m
}

// kindOf finds out what a collector that is no vector makes for a description.
func kindOf(c prometheus.Collector, desc *prometheus.Desc) (kind string) {
	sent := make(chan prometheus.Metric)
	go func() { c.Collect(sent); close(sent) }()
	for m := range sent {
		var value dto.Metric
		if m.Desc() != desc || m.Write(&value) != nil {
			continue
		}
		switch {
		case value.Counter != nil:
			kind = "counter"
		case value.Gauge != nil:
			kind = "gauge"
		case value.Histogram != nil:
			kind = "histogram"
		case value.Summary != nil:
			kind = "summary"
		}
	}
	return kind
}

// registered starts every service and the gateway, and returns what each has registered.
func registered(t *testing.T) map[string]*recorder {
	t.Helper()
	all := map[string]*recorder{"every program": newRecorder(), "gateway": newRecorder()}
	for _, c := range runtimeCollectors(t) {
		all["every program"].metrics[c.name] = c
	}
	for _, spec := range specs(defaults()) {
		r := newRecorder()
		service.Answers{MiB: 128}.Budget(r)
		testkit.Start(t, spec, testkit.Options{Metrics: r})
		all[spec.Name] = r
	}
	g, err := gateway.New(gateway.DefaultConfig(), nil,
		gateway.Deps{Log: slog.New(slog.DiscardHandler), Metrics: all["gateway"]})
	require.NoError(t, err)
	g.Close()
	return all
}

// runtimeCollectors are the metrics that every program has from its start.
func runtimeCollectors(t *testing.T) (all []metric) {
	t.Helper()
	families, err := telemetry.NewRegistry().Gather()
	require.NoError(t, err)
	for _, f := range families {
		m := metric{name: f.GetName(), help: f.GetHelp(), kind: strings.ToLower(f.GetType().String())}
		for _, label := range f.GetMetric()[0].GetLabel() {
			m.labels = append(m.labels, label.GetName())
		}
		all = append(all, m)
	}
	return all
}

func TestMetricsGolden(t *testing.T) {
	t.Parallel()
	all := registered(t)
	rows, programs := map[string]metric{}, map[string][]string{}
	for _, program := range slices.Sorted(maps.Keys(all)) {
		for name, m := range all[program].metrics {
			require.NotEmpty(t, m.kind, name)
			require.NotEmpty(t, m.help, name)
			if former, ok := rows[name]; ok {
				require.Equal(t, former, m, "%s is registered in two ways", name)
			}
			rows[name], programs[name] = m, append(programs[name], program)
		}
	}
	text := bytes.NewBufferString(metricsIntro)
	fmt.Fprint(text, "| metric | type | labels | of | what it says |\n|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		m, of := rows[name], strings.Join(programs[name], ", ")
		if len(programs[name]) == len(specs(defaults())) {
			of = "every service"
		}
		fmt.Fprintf(text, "| `%s` | %s | %s | %s | %s |\n",
			m.name, m.kind, strings.Join(m.labels, ", "), of, strings.ReplaceAll(m.help, "|", `\|`))
	}
	basic.Golden(t, "../metrics.md", text.Bytes())
}
