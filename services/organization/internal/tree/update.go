package tree

import (
	"cmp"
	"context"
	"errors"
	"reflect"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/questions"
)

// Update applies edit to the profile. If edit changes ParentID, the node moves with all nodes below it. The error is
// apperr.NotFound, InvalidParameters, AlreadyExists (code), InUse (a target of pointers made a pointer), InvalidState
// (a node with members made dynamic), VersionMismatch, or one of MayJoin's.
func (s *Trees) Update(ctx context.Context, id string, edit func(*Node) error) (Doc, error) {
	write := func(ctx context.Context) (Doc, error) {
		return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
			n, err := nodes.Load(ctx, tx, id)
			if err != nil {
				return Doc{}, err
			}
			proposal := *n
			if err := edit(&proposal); err != nil {
				return Doc{}, err
			}
			return s.update(ctx, tx, n, &proposal)
		})
	}
	for tries := 1; ; tries++ {
		doc, err := write(ctx)
		lacks, ok := errors.AsType[*lacksError](err)
		if !ok || tries == maxTries {
			return doc, err
		}
		if lacks.turn != "" {
			ctx = inTurn(ctx, lacks.turn)
		}
		if len(lacks.joins) > 0 {
			if err := MayJoin(ctx, s.Store, s.Bus, lacks.joins...); err != nil {
				return Doc{}, err
			}
			ctx = withJoined(ctx, lacks.joins)
		}
	}
}

// maxTries bounds how often an update is repeated because others change the node at the same time.
const maxTries = 5

// lacksError reports that an update must be repeated with what it lacks.
type lacksError struct {
	turn  string   // it moves a node, and needs the turn of this tree
	joins []string // people come to these nodes or below, and MayJoin must allow it
}

func (e *lacksError) Error() string { return "the update lacks a turn or a permission" }

// ready returns a lacksError if the update of a node, which moves it below the node to, must be repeated.
func ready(ctx context.Context, n, was *Node, to string) error {
	lacks := lacksError{joins: unchecked(ctx, n.joins(was, to))}
	if to != was.ParentID && len(docstore.Turns(ctx)) == 0 {
		lacks.turn = n.ObjectCode
	}
	if lacks.turn != "" || len(lacks.joins) > 0 {
		return &lacks
	}
	return nil
}

// joins are the nodes whose rules reach other people after a change of a node: its parent to, if that is another one,
// and itself if it stands for another node or has another condition.
func (n *Node) joins(was *Node, to string) (ids []string) {
	if to != was.ParentID {
		ids = append(ids, to)
	}
	points := n.IsPointer == "1" && (was.IsPointer != "1" || n.PointerID != was.PointerID)
	if points || n.Dynamic() && (!was.Dynamic() || n.Condition != was.Condition) {
		ids = append(ids, n.ID)
	}
	return ids
}

func (s *Trees) update(ctx context.Context, tx *docstore.Tx, n, proposal *Node) (Doc, error) {
	var faults apperr.Faults
	faults.Check(proposal.ObjectCode == n.ObjectCode, "object_code", "cannot change: a node stays in its tree")
	faults.Check(proposal.Code != "", "code", "must have 1…%d visible characters, no spaces", maxCode)
	proposal.Profile.check(&faults)
	to := proposal.ParentID
	if n.Depth == 0 {
		faults.Check(to == "", "parent_id", "must not be given: a root has no parent")
	} else {
		to = cmp.Or(to, n.Path[0])
	}
	if err := faults.Err(); err != nil {
		return Doc{}, err
	}
	if err := checkName(ctx, tx, n, proposal); err != nil {
		return Doc{}, err
	}
	was := *n
	n.Profile = proposal.Profile
	moves, edited := to != was.ParentID, !reflect.DeepEqual(n.Profile, was.Profile)
	if moves || edited {
		n.OperatorID = request.From(ctx).Actor
	}
	if err := ready(ctx, n, &was, to); err != nil {
		return Doc{}, err
	}
	if moves {
		if err := move(ctx, tx, n, to); err != nil {
			return Doc{}, err
		}
	}
	if err := checkKind(ctx, tx, n, &was); err != nil {
		return Doc{}, err
	}
	doc, err := nodes.Replace(ctx, tx, n)
	if err != nil || !doc.Changed() {
		return doc, err
	}
	if err := s.recharge(ctx, tx, n, &was); err != nil {
		return Doc{}, err
	}
	if edited {
		if err := emit(ctx, tx, "updated", &doc, nil); err != nil {
			return Doc{}, err
		}
	}
	if !moves {
		return doc, nil
	}
	below, err := moveBelow(ctx, tx, n, was.Path)
	if err != nil {
		return Doc{}, err
	}
	return doc, emit(ctx, tx, "moved", &doc, map[string]any{"old_path": was.Path, "new_path": n.Path,
		"nodes_below": below})
}

// recharge charges for a new condition, and applies it.
func (s *Trees) recharge(ctx context.Context, tx *docstore.Tx, n, was *Node) error {
	if n.Dynamic() == was.Dynamic() && (!n.Dynamic() || n.Condition == was.Condition) {
		return nil
	}
	location := func(int) string { return "condition" }
	if err := charge(ctx, tx, []*Node{n}, []int64{Estimate(n.Condition)}, location); err != nil {
		return err
	}
	return s.OnCondition(ctx, tx, n)
}

// checkName returns apperr.ManagedElsewhere for a new name of a node whose name a connection owns.
func checkName(ctx context.Context, tx *docstore.Tx, n, proposal *Node) error {
	if proposal.Name == n.Name {
		return nil
	}
	return CheckOwned(ctx, tx.Peek(), n.ObjectCode, questions.OwnedNames, "name")
}

// checkKind refuses to make a pointer or a dynamic node from a node that cannot be one.
func checkKind(ctx context.Context, tx *docstore.Tx, n, was *Node) error {
	if n.IsPointer == "1" && (was.IsPointer != "1" || n.PointerID != was.PointerID) {
		if err := checkPointer(ctx, tx, n, ""); err != nil {
			return err
		}
		if err := checkPointedAt(ctx, tx, n.ID); err != nil {
			return err
		}
	}
	if n.IsPointer == "1" && was.IsPointer != "1" && n.MemberCount > 0 {
		return apperr.New(apperr.InvalidState, "the node has %d members, which the list of a pointer would hide; "+
			"remove them, or move them to another node, before it becomes a pointer", n.MemberCount)
	}
	if n.Dynamic() && !was.Dynamic() && n.MemberCount > 0 {
		return apperr.New(apperr.InvalidState,
			"the node has %d members; a node with members cannot become dynamic", n.MemberCount)
	}
	return nil
}

// checkPointedAt returns apperr.InUse if pointers lead to the node.
func checkPointedAt(ctx context.Context, tx *docstore.Tx, id string) error {
	count, err := nodes.Count(ctx, tx, docstore.Eq(byPointer, docstore.Text(id)))
	if err != nil {
		return err
	}
	return apperr.InUseBy("pointers lead to the node", apperr.Use{What: "tree_nodes.pointer_id", Count: count})
}
