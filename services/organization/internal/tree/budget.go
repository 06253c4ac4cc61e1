package tree

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// MaxConditions is the estimated cost that all conditions of a tenant may have together for one user, in the units of
// condition.MaxCost: five at the limit of one condition, or a thousand ordinary ones. That takes about ten
// milliseconds.
const MaxConditions = 1_000_000

// budget is the estimated cost of the conditions of a tenant's dynamic nodes. Every change of such a node changes it,
// so that two changes that do not fit together cannot both pass.
type budget struct {
	docstore.Meta        // the id is budgetID
	Costs         []cost `json:"costs"`
}

type cost struct {
	NodeID string `json:"node_id"`
	Cost   int64  `json:"cost"`
}

const budgetID = "conditions"

var budgets = docstore.Define(docstore.Schema[budget]{Name: "condition_budgets", Noun: "budget", NoIfMatch: true})

func (b *budget) total() (sum int64) {
	for _, c := range b.Costs {
		sum += c.Cost
	}
	return sum
}

func (b *budget) remove(nodeID string) {
	b.Costs = slices.DeleteFunc(b.Costs, func(c cost) bool { return c.NodeID == nodeID })
}

// Estimate is the estimated cost of a stored condition for a user, in the units of condition.MaxCost. A condition that
// no longer compiles costs the minimum.
func Estimate(condition string) int64 {
	const least = 10 // the node itself is read for every change of a user
	if condition == "" {
		return least
	}
	program, err := Conditions.Cached(condition)
	if err != nil {
		return least
	}
	return least + program.Cost()
}

// ConditionCost returns the estimated cost of the tenant's conditions for one user; 0 if there are none.
func ConditionCost(ctx context.Context, r docstore.Reader) (int64, error) {
	doc, err := budgets.Find(ctx, r, budgetID)
	if apperr.IsNotFound(err) { // the tenant has had no dynamic node yet
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	b, err := doc.Value()
	if err != nil {
		return 0, err
	}
	return b.total(), nil
}

// charge adds nodes, whose condition has just been stored or removed, to the tenant's budget. It refuses the node with
// which the total becomes too much and more than before. at returns the location of a node's condition in the request.
func charge(ctx context.Context, tx *docstore.Tx, changed []*Node, costs []int64, at func(i int) string) error {
	found, err := budgets.LoadMany(ctx, tx, []string{budgetID})
	if err != nil {
		return err
	}
	b := &budget{Meta: docstore.Meta{ID: budgetID}}
	if len(found) > 0 {
		b = found[0]
	}
	before := b.total()
	for i, n := range changed {
		b.remove(n.ID)
		if !n.Dynamic() {
			continue
		}
		others, own := b.total(), costs[i]
		b.Costs = append(b.Costs, cost{n.ID, own})
		if now := others + own; now > MaxConditions && now > before {
			return apperr.Invalid(at(i),
				"costs too much: it is estimated at %d, all other conditions of the tenant at %d, "+
					"and together they may have %d", own, others, MaxConditions)
		}
		if len(b.Costs) > MaxDynamic {
			return apperr.New(apperr.InvalidState, "a tenant has at most %d dynamic nodes", MaxDynamic)
		}
	}
	if len(found) == 0 {
		_, err = budgets.Insert(ctx, tx, b)
	} else {
		_, err = budgets.Replace(ctx, tx, b)
	}
	return err
}

// chargeNew is charge for those of the new nodes that are dynamic.
func chargeNew(ctx context.Context, tx *docstore.Tx, added []*Node, costs []int64, at func(i int) string) error {
	var dynamic []*Node
	var own []int64
	var places []int
	for i, n := range added {
		if n.Dynamic() {
			dynamic, own, places = append(dynamic, n), append(own, costs[i]), append(places, i)
		}
	}
	if len(dynamic) == 0 {
		return nil
	}
	return charge(ctx, tx, dynamic, own, func(i int) string { return apperr.Below(at(places[i]), "condition") })
}

// discharge removes a node that is being deleted from the budget.
func discharge(ctx context.Context, tx *docstore.Tx, n *Node) error {
	found, err := budgets.LoadMany(ctx, tx, []string{budgetID})
	if err != nil || len(found) == 0 {
		return err
	}
	found[0].remove(n.ID)
	_, err = budgets.Replace(ctx, tx, found[0])
	return err
}
