package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
	"github.com/idplatform/idplatform/services/questions"
)

// upkeep is work on the memberships of one node that is too much for the transaction it follows from: to look at all users after the
// node's condition has changed, or to end what is left. It is written by that transaction, so it is done whatever dies.
type upkeep struct {
	docstore.Meta        // the id is the node's
	ObjectCode    string `json:"object_code"`
	NodeVersion   int64  `json:"node_version"`
	End           bool   `json:"end"`    // end the memberships, all if the node is gone, else the dynamic ones; or look at all users
	Cursor        string `json:"cursor"` // how far it has come
	Done          int64  `json:"done"`   // users looked at, for the log
}

var upkeeps = docstore.Define(docstore.Schema[upkeep]{
	Name: "upkeeps", Noun: "upkeep", Part: true,
	Due: func(u *upkeep) clock.Time { return u.TimeCreated },
})

// schedule writes the upkeep of a node, in the place of what was still to be done.
func schedule(ctx context.Context, tx *docstore.Tx, u *upkeep) error {
	if err := forgetUpkeep(ctx, tx, u.ID); err != nil {
		return err
	}
	_, err := upkeeps.Insert(ctx, tx, u)
	return err
}

func forgetUpkeep(ctx context.Context, tx *docstore.Tx, nodeID string) error {
	return upkeeps.DeleteWhere(ctx, tx, docstore.ID(nodeID), nil)
}

// OnCondition has all users looked at after a node's condition has changed, or ends the memberships of a node that is not dynamic any more.
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

// Upkeep does a part of the upkeep of every node that waits for it, and returns how many did. To be called every second or so; any number of
// replicas may: of two that do the same part, one is too late.
func (s *Members) Upkeep(ctx context.Context, log *slog.Logger) (int, error) {
	due, err := upkeeps.Due(ctx, s.Store, 32)
	if err != nil {
		return 0, err
	}
	var failed []error // one node's trouble is not to hold up the others
	for _, ref := range due {
		err := s.upkeep(request.System(ctx, ref.Tenant), ref.ID, log)
		if kind := apperr.KindOf(err); err != nil && kind != apperr.NotFound && kind != apperr.VersionMismatch {
			failed = append(failed, fmt.Errorf("node %s: %w", ref.ID, err))
		}
	}
	return len(due) - len(failed), errors.Join(failed...)
}

func (s *Members) upkeep(ctx context.Context, nodeID string, log *slog.Logger) error {
	doc, err := upkeeps.Find(ctx, s.Store, nodeID)
	if err != nil {
		return err
	}
	u, err := doc.Value()
	if err != nil {
		return err
	}
	if !u.End {
		return s.evaluate(ctx, u, log)
	}
	_, err = docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (struct{}, error) {
		u, err := upkeeps.Load(ctx, tx, nodeID)
		if err != nil || !u.End {
			return struct{}{}, err
		}
		return struct{}{}, s.endFrom(ctx, tx, u)
	})
	return err
}

// verdict says whether a user is to be a member of a dynamic node, and under which id if one is added.
type verdict struct {
	userID, id string
	member     bool
}

// number gives those verdicts an id that may need one.
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

// settle makes verdicts true that were found by a dynamic node's condition, if it still has it. has are the users' memberships in the node.
func settle(ctx context.Context, tx *docstore.Tx, n *tree.Node, has map[string]*Membership, verdicts []verdict) error {
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

// usersPage is how many users are looked at in one transaction.
const usersPage = 500

// evaluate looks at a page of users.
func (s *Members) evaluate(ctx context.Context, u *upkeep, log *slog.Logger) error {
	nodes, err := tree.Find(ctx, s.Store, u.ID)
	if err != nil {
		return err
	}
	node := nodes[u.ID]
	if node == nil || !node.Dynamic() { // the change that made it so has taken this upkeep away, or is about to be seen
		return nil
	}
	page, err := questions.UserRecords.Ask(ctx, s.Bus, questions.RecordsPage{After: u.Cursor, Limit: usersPage})
	if err != nil {
		return err
	}
	users := make([]record, len(page.Users))
	verdicts := make([]verdict, len(page.Users))
	for i, raw := range page.Users {
		if users[i], err = readRecord(raw); err == nil {
			err = users[i].read()
		}
		if err != nil {
			return err
		}
		verdicts[i] = verdict{userID: users[i].ID, member: users[i].meets(ctx, node)}
	}
	if err := s.number(ctx, verdicts); err != nil {
		return err
	}
	_, err = docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (struct{}, error) {
		now, err := upkeeps.Load(ctx, tx, u.ID)
		if err != nil || now.End || now.Version != u.Version || now.TimeCreated != u.TimeCreated || now.NodeVersion != u.NodeVersion {
			return struct{}{}, err // it began anew
		}
		valid, err := heard(ctx, tx, users, verdicts)
		if err != nil {
			return struct{}{}, err
		}
		has, err := inNode(ctx, tx, u.ID, valid)
		if err != nil {
			return struct{}{}, err
		}
		if err := settle(ctx, tx, node, has, valid); err != nil {
			return struct{}{}, err
		}
		now.Cursor, now.Done = page.Next, now.Done+int64(len(users))
		if page.Next == "" {
			return struct{}{}, upkeeps.Delete(ctx, tx, now)
		}
		_, err = upkeeps.Replace(ctx, tx, now)
		return struct{}{}, err
	})
	if looked := u.Done + int64(len(users)); err == nil && (page.Next == "" || u.Done/progress < looked/progress) {
		log.InfoContext(ctx, "looking at users for a dynamic node", "node", u.ID, "users", looked, "finished", page.Next == "")
	}
	return err
}

// progress is after how many users the log tells how far an upkeep is.
const progress = 20_000

// heard notes the records as taken into account and returns the verdicts on those that are not outdated.
func heard(ctx context.Context, tx *docstore.Tx, users []record, verdicts []verdict) ([]verdict, error) {
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
		ok, err := advance(ctx, tx, known, users[i].ID, users[i].Version, users[i].Status == resigned)
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
	for i := 0; i < len(places); i += chunk {
		part := places[i:min(i+chunk, len(places))]
		some, err := members.LoadWhere(ctx, tx, docstore.In(byPlace, part...), "", len(part))
		if err != nil {
			return nil, err
		}
		for _, m := range some {
			there[m.UserID] = m
		}
	}
	return there, nil
}
