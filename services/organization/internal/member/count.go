package member

import (
	"context"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// count counts the query's users. more reports that there are others.
func (l *listing) count(ctx context.Context) (total int64, more bool, err error) {
	switch {
	case l.Recursive && l.node.ChildCount > 0 && l.Role == "":
		return l.countBelow(ctx)
	case l.Recursive && l.node.ChildCount > 0:
		return l.countRead(ctx, MaxCounted)
	case l.Role == "":
		return l.node.MemberCount, false, nil
	}
	n, err := members.CountTo(ctx, l.Store, docstore.Prefix(byRole, l.prefix(l.node.ID)), MaxCounted)
	return n.N, n.More, err
}

// countBelow counts the users of a node and all below. A user has at most one primary membership in a tree. So the
// number is that of the primary memberships, which the store keeps for each node, and of the users who have only others
// there. These others are looked up if they are few; otherwise all memberships are read, up to a limit.
func (l *listing) countBelow(ctx context.Context) (total int64, more bool, err error) {
	const few = 300 // reading so many memberships costs less than adding up
	if total, more, err := l.countRead(ctx, few); err != nil || !more {
		return total, false, err
	}
	var primaries, others int64
	within := map[string]bool{} // the nodes with members
	var mixed []string          // those whose members are not all primary
	for behind, ahead := "", 32; others <= MaxCounted; ahead = min(2*ahead, chunk) {
		nodes, err := tree.Populated(ctx, l.Store, l.node.Path, behind, ahead)
		if err != nil {
			return 0, false, err
		}
		ids := make([]string, len(nodes))
		for i, n := range nodes {
			ids[i], within[n.ID], behind = n.ID, true, n.Text
		}
		p, o, err := l.countIn(ctx, ids)
		if err != nil {
			return 0, false, err
		}
		if primaries += p; primaries > MaxCounted {
			return MaxCounted, true, nil
		}
		if others += o; o > 0 {
			mixed = append(mixed, ids...)
		}
		if len(nodes) < ahead {
			break
		}
	}
	const lookup = 5 // looking up a user costs as much as reading so many memberships
	if others > MaxCounted {
		return l.countRead(ctx, MaxCounted)
	}
	if lookup*others > primaries {
		return l.countRead(ctx, 2*MaxCounted)
	}
	users, err := l.withoutPrimary(ctx, mixed, within)
	return primaries + users, false, err
}

// countIn counts the primary memberships in nodes, and the others.
func (l *listing) countIn(ctx context.Context, nodes []string) (primaries, others int64, err error) {
	var n [2]docstore.Total
	for i, isPrimary := range []string{"1", "0"} {
		if len(nodes) > 0 && err == nil {
			n[i], err = members.CountTo(ctx, l.Store, inNodes(nodes, isPrimary), MaxCounted)
		}
	}
	return atLeast(n[0]), atLeast(n[1]), err
}

// atLeast is a number that is exact up to MaxCounted, and greater beyond it.
func atLeast(t docstore.Total) int64 {
	if t.More {
		return t.N + 1
	}
	return t.N
}

// countRead counts the users by reading memberships, at most as many as a limit says.
func (l *listing) countRead(ctx context.Context, limit int) (total int64, more bool, err error) {
	ids, all, err := l.userIDs(ctx, limit)
	return int64(len(ids)), !all, err
}

// withoutPrimary counts the users of nodes whose primary membership is not within others.
func (l *listing) withoutPrimary(ctx context.Context, nodes []string, within map[string]bool) (int64, error) {
	var users []docstore.Value
	for part := range slices.Chunk(nodes, chunk) {
		texts, err := members.Texts(ctx, l.Store, byOrder, inNodes(part, "0"), 2*MaxCounted)
		if err != nil {
			return 0, err
		}
		for _, t := range texts {
			s, _ := l.entry(t)
			users = append(users, docstore.Text(primary(l.node.ObjectCode, s.user)))
		}
	}
	slices.SortFunc(users, func(a, b docstore.Value) int { return strings.Compare(a.Text, b.Text) })
	users = slices.Compact(users)
	without := int64(len(users))
	for part := range slices.Chunk(users, chunk) {
		texts, err := members.Texts(ctx, l.Store, byNode, docstore.In(byPrimary, part...), len(part))
		if err != nil {
			return 0, err
		}
		for _, t := range texts {
			if node, _, _ := strings.Cut(t.Text, "/"); within[node] {
				without--
			}
		}
	}
	return without, nil
}

// inNodes selects the memberships in nodes that are primary ("1") or not ("0").
func inNodes(nodes []string, isPrimary string) docstore.Filter {
	values := make([]docstore.Value, len(nodes))
	for i, id := range nodes {
		values[i] = docstore.Text(standing(id, isPrimary))
	}
	return docstore.In(byNode, values...)
}

// userIDs returns the sorted ids of the query's users. all is false if they are only those of the first memberships, as
// many as the limit says.
func (l *listing) userIDs(ctx context.Context, limit int) (ids []string, all bool, err error) {
	ids, all = []string{}, true
	nodes, behind := l.self(), l.node.PathText()
	for more := l.Recursive; ; {
		if len(nodes) > 0 {
			texts, err := l.textsOf(ctx, nodes, limit+1-len(ids))
			if err != nil {
				return nil, false, err
			}
			for _, t := range texts {
				s, _ := l.entry(t)
				ids = append(ids, s.user)
			}
		}
		if len(ids) > limit {
			ids, all = ids[:limit], false
			break
		}
		if !more {
			break
		}
		if nodes, err = tree.Populated(ctx, l.Store, l.node.Path, behind, chunk); err != nil {
			return nil, false, err
		}
		if more = len(nodes) == chunk; len(nodes) > 0 {
			behind = nodes[len(nodes)-1].Text
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), all, nil
}
