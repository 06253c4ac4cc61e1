package fair

import "github.com/idplatform/idplatform/pkg/docstore"

const (
	TurnID     = turnID
	LookAgain  = lookAgain
	RetryAfter = retryAfter
)

func (r *Rota) Turns() *docstore.Collection[turn] { return r.turns }
