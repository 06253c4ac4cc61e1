// Package tree is the domain of core objects and their nodes: what a tree is and how it changes.
package tree

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
)

// Deps are what Trees need. All are required.
type Deps struct {
	Store *docstore.Store
	Bus   *bus.Bus // for questions about grants

	// OnRemove ends what belongs to a node, in the transaction that has just deleted it.
	OnRemove func(ctx context.Context, tx *docstore.Tx, n *Node) error

	// OnCondition is called when a node's condition was added, changed or removed, in the transaction that does so.
	OnCondition func(ctx context.Context, tx *docstore.Tx, n *Node) error
}

// Trees are the use cases.
type Trees struct{ Deps }

// New makes the use cases.
func New(d Deps) *Trees { return &Trees{d} }

// MaxDynamic is how many dynamic nodes a tenant can have: when a user changes, all their conditions are evaluated.
const MaxDynamic = 1000

// Create adds a node below its parent, or below the root. The error is apperr.InvalidParameters, AlreadyExists (code),
// InvalidState (MaxDynamic), or one of MayJoin's.
func (s *Trees) Create(ctx context.Context, objectCode string, draft Draft) (Doc, error) {
	return create(ctx, s, objectCode, []Draft{draft}, whole, func(docs []Doc) (Doc, error) { return docs[0], nil })
}

// CreateMany adds nodes, all or nothing, and returns them in the same order, each with its Ref. A draft's parent may be
// another draft, before or after it.
func (s *Trees) CreateMany(ctx context.Context, objectCode string, drafts []Draft) (docstore.Batch, error) {
	return create(ctx, s, objectCode, drafts, item, func(docs []Doc) (docstore.Batch, error) {
		added := docstore.Batch{Items: make([]json.RawMessage, len(docs))}
		for i := range docs {
			body, err := docs[i].JSON()
			if err != nil {
				return docstore.Batch{}, err
			}
			if ref := drafts[i].Ref; ref != "" {
				member, err := json.Marshal(map[string]string{"ref": ref})
				if err != nil {
					return docstore.Batch{}, err
				}
				body = append(append(body[:len(body)-1:len(body)-1], ','), member[1:]...)
			}
			added.Items[i] = body
		}
		return added, nil
	})
}

// whole and item return the location of a draft in a request: the draft is the body, or one of its items.
func whole(int) string  { return "" }
func item(i int) string { return apperr.Item("items", i) }

// create adds nodes. at returns the location of a draft in the request; answer makes the result of the transaction from
// the nodes.
func create[R any](ctx context.Context, s *Trees, objectCode string, drafts []Draft, at func(int) string,
	answer func([]Doc) (R, error)) (R, error) {
	var none R
	var faults apperr.Faults
	for i := range drafts {
		drafts[i].check(faults.Within(at(i)))
	}
	order, parents := arrange(drafts, &faults, at)
	if err := faults.Err(); err != nil {
		return none, err
	}
	if err := s.mayCreate(ctx, objectCode, drafts); err != nil {
		return none, err
	}
	costs := make([]int64, len(drafts)) // outside the transaction, because compiling takes too long
	for i := range drafts {
		costs[i] = Estimate(drafts[i].Condition)
	}
	ids, err := s.Store.NewIDs(ctx, len(drafts))
	if err != nil {
		return none, err
	}
	return docstore.Write(inTurn(ctx, objectCode), s.Store, func(tx *docstore.Tx) (R, error) {
		o, err := countNodes(ctx, tx, objectCode, int64(len(drafts)))
		if apperr.IsNotFound(err) {
			return none, apperr.Invalid("object_code", "is not a core object's code")
		}
		if err != nil {
			return none, err
		}
		there, err := loadParents(ctx, tx, o, drafts)
		if err != nil {
			return none, err
		}
		added := make([]*Node, len(drafts))
		for i := range drafts {
			added[i] = drafts[i].node(ctx, ids[i], objectCode)
		}
		if err := placeAll(added, there, drafts, order, parents, at); err != nil {
			return none, err
		}
		docs, err := s.insert(ctx, tx, added, order, at)
		if err != nil {
			return none, err
		}
		for _, parent := range there {
			if _, err := nodes.Replace(ctx, tx, parent); err != nil {
				return none, err
			}
		}
		if err := chargeNew(ctx, tx, added, costs, at); err != nil {
			return none, err
		}
		return answer(docs)
	})
}

// mayCreate is MayJoin for new nodes that have members from the beginning: dynamic ones and pointers.
func (s *Trees) mayCreate(ctx context.Context, objectCode string, drafts []Draft) error {
	if !slices.ContainsFunc(drafts, func(d Draft) bool { return d.IsDynamic == "1" || d.IsPointer == "1" }) {
		return nil
	}
	var parents []string
	for _, d := range drafts {
		if d.Parent == "" {
			parents = append(parents, d.ParentID)
		}
	}
	if parents = unchecked(ctx, parents); slices.Contains(parents, "") {
		o, err := ObjectByCode(ctx, s.Store, objectCode)
		if apperr.IsNotFound(err) {
			return nil // its own check says so
		}
		if err != nil {
			return err
		}
		parents = append(parents, o.RootNodeID)
	}
	return MayJoin(ctx, s.Store, s.Bus, parents...)
}

// insert stores nodes that have their places, with their events, in an order in which parents come first.
func (s *Trees) insert(
	ctx context.Context, tx *docstore.Tx, added []*Node, order []int, at func(int) string,
) ([]Doc, error) {
	for _, i := range order {
		if err := checkPointer(ctx, tx, added[i], at(i)); err != nil {
			return nil, err
		}
	}
	docs, err := nodes.InsertMany(ctx, tx, at, added...)
	if err != nil {
		return nil, err
	}
	for _, i := range order {
		if err := s.emitCreated(ctx, tx, added[i], &docs[i]); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// placeAll sets the places of new nodes, below one another or below existing nodes, in an order in which parents come
// first.
func placeAll(added []*Node, there map[string]*Node, drafts []Draft, order, parents []int, at func(int) string) error {
	var faults apperr.Faults
	for _, i := range order {
		parent, member := there[drafts[i].ParentID], "parent_id"
		if parents[i] >= 0 {
			parent, member = added[parents[i]], "parent_ref"
		}
		switch {
		case parent == nil:
			faults.Within(at(i)).Add(member, "is not a node of this tree")
			parent = &Node{Path: []string{""}} // so that the other drafts can be checked
		case parent.Depth >= MaxDepth:
			faults.Within(at(i)).Add(member, "is too deep: a node's depth is at most %d", MaxDepth)
		}
		added[i].place(parent)
		parent.ChildCount++
	}
	return faults.Err()
}

// arrange returns the drafts' indexes, parents before children, and for each the index of the draft that is its parent,
// or −1.
func arrange(drafts []Draft, faults *apperr.Faults, at func(int) string) (order, parents []int) {
	byRef := map[string]int{}
	for i, d := range drafts {
		if d.Ref == "" {
			continue
		}
		if _, twice := byRef[d.Ref]; twice {
			faults.Within(at(i)).Add("ref", "is the ref of another item, too")
		}
		byRef[d.Ref] = i
	}
	parents = make([]int, len(drafts))
	for i, d := range drafts {
		parents[i] = -1
		if d.Parent == "" {
			continue
		}
		parent, ok := byRef[d.Parent]
		faults.Within(at(i)).Check(ok, "parent_ref", "is not an item's ref")
		faults.Within(at(i)).Check(d.ParentID == "", "parent_ref", "must not be given with parent_id")
		if ok {
			parents[i] = parent
		}
	}
	const unseen, above, placed = 0, 1, 2
	state := make([]int, len(drafts))
	for i := range drafts {
		var chain []int // from i up to one that has its place
		at, circle := i, apperr.Below(at(i), "parent_ref")
		for ; at >= 0 && state[at] == unseen; at = parents[at] {
			state[at] = above
			chain = append(chain, at)
		}
		if at >= 0 && state[at] == above {
			faults.Add(circle, "leads to a cycle")
			for _, j := range chain {
				state[j] = placed
			}
			continue
		}
		for _, j := range slices.Backward(chain) {
			state[j] = placed
			order = append(order, j)
		}
	}
	return order, parents
}

// loadParents loads the nodes of the tree that are parents of drafts; that of "" is the root.
func loadParents(ctx context.Context, tx *docstore.Tx, o *Object, drafts []Draft) (map[string]*Node, error) {
	var ids []string
	there := map[string]*Node{}
	for _, d := range drafts {
		if d.Parent == "" && there[d.ParentID] == nil {
			there[d.ParentID] = &Node{}
			ids = append(ids, cmp.Or(d.ParentID, o.RootNodeID))
		}
	}
	clear(there)
	loaded, err := nodes.LoadMany(ctx, tx, slices.Compact(slices.Sorted(slices.Values(ids))))
	if err != nil {
		return nil, err
	}
	for _, n := range loaded {
		if n.Path[0] != o.RootNodeID {
			continue
		}
		there[n.ID] = n
		if n.Depth == 0 {
			there[""] = n
		}
	}
	return there, nil
}

// emitCreated sends the event of a node that has just been stored.
func (s *Trees) emitCreated(ctx context.Context, tx *docstore.Tx, n *Node, doc *Doc) error {
	if n.Dynamic() {
		if err := s.OnCondition(ctx, tx, n); err != nil {
			return err
		}
	}
	return emit(ctx, tx, "created", doc, nil)
}

// inTurn makes changes of a tree's structure wait for one another, because they all change its core object.
func inTurn(ctx context.Context, objectCode string) context.Context {
	return docstore.InTurn(ctx, "tree "+objectCode)
}

// countNodes adds to the number of nodes of a tree. Because it changes the core object, transactions that call it run
// one after the other. The error is apperr.NotFound.
func countNodes(ctx context.Context, tx *docstore.Tx, objectCode string, by int64) (*Object, error) {
	found, err := ObjectByCode(ctx, tx, objectCode)
	if err != nil {
		return nil, err
	}
	o, err := objects.Load(ctx, tx, found.ID)
	if err != nil {
		return nil, err
	}
	o.NodeCount += by
	_, err = objects.Collection.Revise(ctx, tx, o)
	return o, err
}

// checkPointer refuses a pointer to no node, to another pointer, or to a node above it. It holds the target's tree.
func checkPointer(ctx context.Context, tx *docstore.Tx, n *Node, at string) error {
	if n.IsPointer != "1" {
		return nil
	}
	doc, err := nodes.Find(ctx, tx, n.PointerID)
	if apperr.IsNotFound(err) {
		return apperr.Invalid(apperr.Below(at, "pointer_id"), "is not a node")
	}
	if err != nil {
		return err
	}
	target, err := doc.Value()
	if err != nil {
		return err
	}
	var faults apperr.Faults
	here := faults.Within(at)
	here.Check(target.IsPointer != "1", "pointer_id", "is a pointer itself")
	here.Check(!slices.Contains(n.Path, target.ID), "pointer_id", "must not be the node itself or one above it")
	if err := faults.Err(); err != nil {
		return err
	}
	return Hold(ctx, tx, target.ObjectCode)
}

// Hold prevents nodes of a tree from being moved or deleted until the transaction ends. The error is apperr.NotFound.
func Hold(ctx context.Context, tx *docstore.Tx, objectCode string) error {
	_, err := countNodes(ctx, tx, objectCode, 0)
	return err
}

// Get returns a node. The error is apperr.NotFound.
func (s *Trees) Get(ctx context.Context, id string) (Doc, error) { return nodes.Find(ctx, s.Store, id) }
