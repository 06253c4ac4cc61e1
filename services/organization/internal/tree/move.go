package tree

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// MaxMoved is how many nodes can be moved, enabled or disabled together: one transaction writes them all.
const MaxMoved = 50_000

// move puts a loaded node below another parent of its tree. moveBelow then moves the nodes below it.
func move(ctx context.Context, tx *docstore.Tx, n *Node, to string) error {
	const at = "parent_id"
	if n.ID == to {
		return apperr.Invalid(at, "must not be the node itself or one below it")
	}
	if err := Hold(ctx, tx, n.ObjectCode); err != nil {
		return err
	}
	parents, err := nodes.LoadMany(ctx, tx, []string{n.ParentID, to})
	if err != nil {
		return err
	}
	var from, parent *Node
	for _, p := range parents {
		if p.ID == to {
			parent = p
		} else {
			from = p
		}
	}
	switch {
	case parent == nil || parent.Path[0] != n.Path[0]:
		return apperr.Invalid(at, "is not a node of this tree")
	case slices.Contains(parent.Path, n.ID):
		return apperr.Invalid(at, "must not be the node itself or one below it")
	case parent.Depth == MaxDepth:
		return errTooDeep
	}
	if err := checkCycles(ctx, tx, n, parent); err != nil {
		return err
	}
	from.ChildCount--
	parent.ChildCount++
	for _, p := range parents {
		if _, err := nodes.Replace(ctx, tx, p); err != nil {
			return err
		}
	}
	n.place(parent)
	return nil
}

// checkCycles refuses a move that would put a pointer (the node, or one below it) below its target.
func checkCycles(ctx context.Context, tx *docstore.Tx, n, parent *Node) error {
	cycle := n.IsPointer == "1" && slices.Contains(parent.Path, n.PointerID)
	if !cycle && n.ChildCount > 0 {
		targets := make([]docstore.Value, len(parent.Path))
		for i, id := range parent.Path {
			targets[i] = docstore.Text(id)
		}
		pointers, err := nodes.Count(ctx, tx, docstore.And(
			docstore.In(byPointer, targets...), docstore.Prefix(byPath, n.PathText()),
			docstore.Above(byPath, n.PathText())))
		if err != nil {
			return err
		}
		cycle = pointers > 0
	}
	if cycle {
		return apperr.Invalid("parent_id", "would put a pointer below the node that it leads to")
	}
	return nil
}

var errTooDeep = apperr.Invalid("parent_id", "is too deep: a node's depth is at most %d", MaxDepth)

// moveBelow changes the paths of the nodes below a moved node, and returns their number.
func moveBelow(ctx context.Context, tx *docstore.Tx, n *Node, from []string) (int, error) {
	if n.ChildCount == 0 {
		return 0, nil
	}
	return each(ctx, tx, from, MaxMoved, func(below *Node) error {
		below.Path = slices.Concat(n.Path, below.Path[len(from):])
		below.Depth = len(below.Path) - 1
		if below.Depth > MaxDepth {
			return errTooDeep
		}
		_, err := nodes.Touch(ctx, tx, below) // its path has changed, so there is nothing to compare
		return err
	})
}

// each loads every node whose path has a prefix, in the order of paths, for fn, which may change the path. The error is
// apperr.InvalidParameters if there are more than limit.
func each(ctx context.Context, tx *docstore.Tx, path []string, limit int, fn func(*Node) error) (count int, err error) {
	const chunk = 2000
	prefix := pathText(path)
	filter := docstore.Prefix(byPath, prefix)
	for {
		loaded, err := nodes.LoadWhere(ctx, tx, filter, byPath, chunk)
		if err != nil {
			return count, err
		}
		if count += len(loaded); count > limit {
			return count, apperr.Invalid("id", "has more than %d nodes below it", limit)
		}
		last := ""
		for _, n := range loaded {
			last = n.PathText()
			if err := fn(n); err != nil {
				return count, err
			}
		}
		if len(loaded) < chunk {
			return count, nil
		}
		filter = docstore.And(docstore.Prefix(byPath, prefix), docstore.Above(byPath, last))
	}
}
