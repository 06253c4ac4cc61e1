package fair

import "github.com/idplatform/idplatform/pkg/docstore"

const (
	TurnID     = turnID
	LookAgain  = lookAgain
	RetryAfter = retryAfter
)

func (r *TenantQueue) Turns() *docstore.Collection[turn] { return r.turns }
