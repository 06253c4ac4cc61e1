package member

import (
	"context"
	"fmt"
	"slices"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
	"github.com/idplatform/idplatform/services/questions"
)

// upkeep is work on the memberships of one node that is too much for the transaction that causes it: to evaluate all
// users after the node's condition has changed, or to end the remaining memberships. That transaction writes it, so it
// is done even if a process dies.
type upkeep struct {
	docstore.Meta        // the id is the node's
	ObjectCode    string `json:"object_code"`
	NodeVersion   int64  `json:"node_version"`
	// true: end the memberships, all if the node is deleted, otherwise the dynamic ones; false: evaluate all users
	End    bool   `json:"end"`
	Cursor string `json:"cursor"` // the next page
	// the id of the last user done in that page, if the page was too much for one turn
	Seen string `json:"seen"`
	Done int64  `json:"done"` // users evaluated, for the log
}

var upkeeps = docstore.Define(docstore.Schema[upkeep]{
	Name: "upkeeps", Noun: "upkeep", NoIfMatch: true, Revision: 1,
	Indexes: []docstore.Index[upkeep]{
		docstore.ByNumber(byWaiting, func(u *upkeep) docstore.Value { return docstore.Moment(u.TimeCreated) }),
	},
})

// schedule writes the upkeep of a node. It replaces an earlier one.
func schedule(ctx context.Context, tx *docstore.Tx, u *upkeep) error {
	if err := forgetUpkeep(ctx, tx, u.ID); err != nil {
		return err
	}
	if _, err := upkeeps.Insert(ctx, tx, u); err != nil {
		return err
	}
	return rota.Ask(ctx, tx)
}

func forgetUpkeep(ctx context.Context, tx *docstore.Tx, nodeID string) error {
	return upkeeps.DeleteWhere(ctx, tx, docstore.ID(nodeID), nil)
}

// OnCondition schedules the evaluation of all users after a node's condition has changed, or the end of the memberships
// of a node that is no longer dynamic.
func (s *Members) OnCondition(ctx context.Context, tx *docstore.Tx, n *tree.Node) error {
	u := &upkeep{Meta: docstore.Meta{ID: n.ID}, ObjectCode: n.ObjectCode, NodeVersion: n.Version, End: !n.Dynamic()}
	if u.End {
		return s.endFrom(ctx, tx, u)
	}
	return schedule(ctx, tx, u)
}

// endFrom ends a batch at once and leaves the rest to Upkeep.
func (s *Members) endFrom(ctx context.Context, tx *docstore.Tx, u *upkeep) error {
	next, err := endSome(ctx, tx, u)
	if err != nil {
		return err
	}
	if u.Cursor = next; next == "" {
		return forgetUpkeep(ctx, tx, u.ID)
	}
	return schedule(ctx, tx, u)
}

func (s *Members) upkeep(ctx context.Context, nodeID string, m *meter) error {
	doc, err := upkeeps.Find(ctx, s.Store, nodeID)
	if err != nil {
		return err
	}
	u, err := doc.Value()
	if err != nil {
		return err
	}
	if !u.End {
		return s.evaluate(ctx, u, m)
	}
	m.spent += endCost
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		u, err := upkeeps.Load(ctx, tx, nodeID)
		if err != nil || !u.End {
			return err
		}
		return s.endFrom(ctx, tx, u)
	})
}

// verdict says whether a user should be a member of a dynamic node, and with which id a membership would be added.
type verdict struct {
	userID, id string
	member     bool
}

// number sets the ids of verdicts that may need one.
func (s *Members) number(ctx context.Context, verdicts []verdict) error {
	n := 0
	for _, v := range verdicts {
		if v.member {
			n++
		}
	}
	ids, err := s.Store.NewIDs(ctx, n)
	if err != nil {
		return err
	}
	for i := range verdicts {
		if verdicts[i].member {
			verdicts[i].id, ids = ids[0], ids[1:]
		}
	}
	return nil
}

// applyVerdicts applies verdicts that were found with a dynamic node's condition, if the node still has that condition.
// has are the users' memberships in the node.
func applyVerdicts(ctx context.Context, tx *docstore.Tx, n *tree.Node, has map[string]*Membership,
	verdicts []verdict) error {
	loaded, err := tree.Load(ctx, tx, n.ID)
	if err != nil {
		return err
	}
	node := loaded[n.ID]
	if node == nil || !node.Dynamic() || node.Condition != n.Condition {
		return nil
	}
	var added []Doc
	var ended []*Membership
	for _, v := range verdicts {
		switch m := has[v.userID]; {
		case v.member && m == nil:
			doc, err := members.Insert(ctx, tx, &Membership{
				Meta: docstore.Meta{ID: v.id}, ObjectCode: node.ObjectCode, NodeID: node.ID, UserID: v.userID,
				Profile: Profile{IsPrimary: "0", Role: "member"}, Dynamic: true,
			})
			if err != nil {
				return err
			}
			added = append(added, doc)
		case !v.member && m != nil:
			ended = append(ended, m)
		}
	}
	if len(added) > 0 {
		if err := tree.CountMembers(ctx, tx, node, int64(len(added))); err != nil {
			return err
		}
		if err := emit(ctx, tx, "created", added...); err != nil {
			return err
		}
	}
	if len(ended) == 0 {
		return nil
	}
	return end(ctx, tx, ended)
}

const (
	usersPage = 500              // the most users evaluated in one transaction
	fewUsers  = 10               // the fewest
	endCost   = 500 * recordCost // the cost of ending a batch of memberships
)

// usersFor is the number of users that can be evaluated with the rest of a turn.
func usersFor(m *meter, n *tree.Node, u *upkeep) int {
	if u.Seen != "" {
		return usersPage // the page begins with users who were evaluated already
	}
	of := recordCost + tree.Estimate(n.Condition)
	return int(max(fewUsers, min(usersPage, (m.limit-m.spent)/of)))
}

// evaluate evaluates a page of users.
func (s *Members) evaluate(ctx context.Context, u *upkeep, m *meter) error {
	nodes, err := tree.Find(ctx, s.Store, u.ID)
	if err != nil {
		return err
	}
	node := nodes[u.ID]
	if node == nil || !node.Dynamic() { // that change has deleted this upkeep
		return nil
	}
	page, err := questions.UserRecords.Ask(ctx, s.Bus, questions.UsersPage{
		RecordsPage: questions.RecordsPage{After: u.Cursor, Limit: usersFor(m, node, u)}})
	if err != nil {
		return err
	}
	evaluated, err := m.evaluateUsers(ctx, page, u, node)
	if err != nil {
		return err
	}
	users, verdicts := evaluated.users, evaluated.verdicts
	finished := evaluated.cursor == "" && evaluated.seen == ""
	if err := s.number(ctx, verdicts); err != nil {
		return err
	}
	err = docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		now, err := upkeeps.Load(ctx, tx, u.ID)
		if err != nil || now.End || now.Version != u.Version || now.TimeCreated != u.TimeCreated ||
			now.NodeVersion != u.NodeVersion {
			return err // the upkeep was started again
		}
		valid, err := current(ctx, tx, users, verdicts)
		if err != nil {
			return err
		}
		has, err := inNode(ctx, tx, u.ID, valid)
		if err != nil {
			return err
		}
		if err := applyVerdicts(ctx, tx, node, has, valid); err != nil {
			return err
		}
		now.Cursor, now.Seen, now.Done = evaluated.cursor, evaluated.seen, now.Done+int64(len(users))
		if finished {
			_, err = upkeeps.Delete(ctx, tx, now)
			return err
		}
		_, err = upkeeps.Replace(ctx, tx, now)
		return err
	})
	if done := u.Done + int64(len(users)); err == nil && (finished || u.Done/progress < done/progress) {
		s.Log.InfoContext(ctx, "evaluating users for a dynamic node", "node", u.ID, "users", done, "finished", finished)
	}
	return err
}

// evaluation is the result of evaluating a page of users, and where the next one begins.
type evaluation struct {
	users        []record
	verdicts     []verdict
	cursor, seen string // as in upkeep
}

// evaluateUsers evaluates the users of a page for a node, in the order of ids, until the meter is full.
func (m *meter) evaluateUsers(
	ctx context.Context, page questions.Records, u *upkeep, node *tree.Node,
) (evaluation, error) {
	e := evaluation{cursor: page.Next}
	if len(page.Sequences) != len(page.Users) {
		return e, fmt.Errorf("%d users with %d sequences", len(page.Users), len(page.Sequences))
	}
	for i, raw := range page.Users {
		if seen, err := readRecord(raw); err == nil && u.Seen != "" && seen.ID <= u.Seen {
			continue
		}
		user, err := m.read(ctx, raw)
		if err != nil {
			return evaluation{}, err
		}
		user.sequence = page.Sequences[i]
		met, err := m.meets(ctx, &user, node)
		if err != nil {
			return evaluation{}, err
		}
		e.users, e.verdicts = append(e.users, user), append(e.verdicts, verdict{userID: user.ID, member: met})
		if m.full() && len(e.users) >= fewUsers && i < len(page.Users)-1 { // the users cost more than estimated
			e.cursor, e.seen = u.Cursor, user.ID
			break
		}
	}
	return e, nil
}

// progress is the number of users after which the log reports the progress of an upkeep.
const progress = 20_000

// current notes the records as handled, and returns the verdicts on those that are not out of date.
func current(ctx context.Context, tx *docstore.Tx, users []record, verdicts []verdict) ([]verdict, error) {
	ids := make([]string, len(users))
	for i := range users {
		ids[i] = users[i].ID
	}
	known, err := loadPeople(ctx, tx, ids...)
	if err != nil {
		return nil, err
	}
	valid := make([]verdict, 0, len(verdicts))
	for i := range users {
		ok, err := advance(ctx, tx, known, users[i].ID, users[i].sequence, users[i].Status == resigned)
		if err != nil {
			return nil, err
		}
		if ok {
			valid = append(valid, verdicts[i])
		}
	}
	return valid, nil
}

// inNode loads the memberships that users have in a node, by user.
func inNode(ctx context.Context, tx *docstore.Tx, nodeID string, users []verdict) (map[string]*Membership, error) {
	there := make(map[string]*Membership, len(users))
	places := make([]docstore.Value, len(users))
	for i, v := range users {
		places[i] = docstore.Text(place(nodeID, v.userID))
	}
	for part := range slices.Chunk(places, chunk) {
		loaded, err := members.LoadWhere(ctx, tx, docstore.In(byPlace, part...), "", len(part))
		if err != nil {
			return nil, err
		}
		for _, m := range loaded {
			there[m.UserID] = m
		}
	}
	return there, nil
}
