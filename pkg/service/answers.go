package service

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idplatform/idplatform/pkg/rest"
)

// minAnswers is the least memory that a program needs for answers, in MiB: a tenant's quarter holds a batch's answer.
const minAnswers = 32

// Answers says how much memory answers may take while their clients read them; see rest.Budget.
type Answers struct {
	MiB int `mapstructure:"mib" doc:"Memory that the answers of this program may take together while their clients read them, in MiB; what is over it is answered 503"`
}

// Check refuses a budget of less than 32 MiB.
func (a Answers) Check() error {
	if a.MiB < minAnswers {
		return fmt.Errorf("answer_memory.mib must be at least %d", minAnswers)
	}
	return nil
}

// Budget makes the budget of a program, with its metrics.
func (a Answers) Budget(metrics prometheus.Registerer) *rest.Budget {
	b := rest.NewBudget(int64(a.MiB) << 20)
	metrics.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "idp_answers_held_bytes",
			Help: "What answers hold in memory while their clients read them.",
		}, func() float64 { return float64(b.Held()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "idp_answers_refused_total",
			Help: "Requests answered 503 because too many answers wait for slow clients.",
		}, func() float64 { return float64(b.Refused()) }),
	)
	return b
}
