package service_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/service"
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, service.Answers{MiB: 31}.Check(), "at least 32")
	require.NoError(t, service.Answers{MiB: 32}.Check())
	metrics := prometheus.NewRegistry()
	require.NotNil(t, service.Answers{MiB: 32}.Budget(metrics))
	require.NoError(t, testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP idp_answers_held_bytes What answers hold in memory while their clients read them.
# TYPE idp_answers_held_bytes gauge
idp_answers_held_bytes 0
# HELP idp_answers_refused_total Requests answered 503 because too many answers wait for slow clients.
# TYPE idp_answers_refused_total counter
idp_answers_refused_total 0
`)))
}
