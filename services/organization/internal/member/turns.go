package member

import (
	"context"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// mostTurns is of how many nodes a change waits for other changes.
const mostTurns = 100

// ofNodes makes changes of the members of the same nodes wait for one another, because they all change the nodes'
// counts.
func ofNodes(ctx context.Context, nodes ...string) context.Context {
	nodes = slices.Compact(slices.Sorted(slices.Values(nodes)))
	if len(nodes) > mostTurns {
		return ctx
	}
	for i, id := range nodes {
		nodes[i] = "members " + id
	}
	return docstore.InTurn(ctx, nodes...)
}

// ofMemberships is ofNodes for the nodes of memberships. It looks for them before the transaction that changes them,
// which reads them again.
func (s *Members) ofMemberships(ctx context.Context, f docstore.Filter) (context.Context, error) {
	texts, err := members.Texts(ctx, s.Store, byOrder, f, mostOfUser)
	if err != nil {
		return nil, err
	}
	nodes := make([]string, len(texts))
	for i, t := range texts {
		nodes[i], _, _ = strings.Cut(t.Text, "/")
	}
	return ofNodes(ctx, nodes...), nil
}
