package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/condition"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// recheck is a user's record for which conditions of the tenant must still be evaluated, from one node on. It is
// written if that costs too much while the user's event is handled, because the events of all tenants wait meanwhile. A
// later record replaces it, so many changes of one user cost as much as one.
type recheck struct {
	docstore.Meta        // the id is the user's
	Sequence      int64  `json:"sequence"` // of the event that carried the record
	Record        string `json:"record"`   // JSON, as text, so that it stays unchanged
	After         string `json:"after"`    // the id of the last node that was evaluated
}

const byWaiting = "waiting"

var rechecks = docstore.Define(docstore.Schema[recheck]{
	Name: "rechecks", Noun: "recheck", NoIfMatch: true,
	Indexes: []docstore.Index[recheck]{
		docstore.ByNumber(byWaiting, func(r *recheck) docstore.Value { return docstore.Moment(r.TimeCreated) }),
	},
})

// rota is the order in which tenants' rechecks and upkeeps are done.
var rota = fair.NewTenantQueue("upkeep_turns")

// What conditions may cost, in the units of condition.MaxCost. A processor evaluates about a hundred million units a
// second.
const (
	atOnceCost = 20_000    // for one user, while its event is handled
	turnCost   = 5_000_000 // in one turn of a tenant, about 60 milliseconds
	recordCost = 2_000     // for storing a user's memberships, whatever the conditions
	byteCost   = 2         // for parsing a byte of a record
)

// meter adds up the cost of a turn.
type meter struct {
	limit, spent int64
	pace         fair.Throttle
	stopped      map[string]int // how often a node's condition was stopped for its cost, by node
}

func newMeter(limit int64) *meter { return &meter{limit: limit, stopped: map[string]int{}} }

func (m *meter) full() bool { return m.spent >= m.limit }

// read parses a record for conditions.
func (m *meter) read(ctx context.Context, raw json.RawMessage) (record, error) {
	began := time.Now()
	defer func() { m.pace.Worked(ctx, time.Since(began)) }()
	m.spent += recordCost + byteCost*int64(len(raw))
	user, err := readRecord(raw)
	if err == nil {
		err = user.read()
	}
	return user, err
}

// meets reports whether the user meets a dynamic node's condition. A condition that cannot be decided for the user is
// not met. The error is that of the context.
func (m *meter) meets(ctx context.Context, r *record, n *tree.Node) (bool, error) {
	if r.Status == resigned {
		return false, nil
	}
	began := time.Now()
	worked := func() error {
		m.pace.Worked(ctx, time.Since(began))
		began = time.Now()
		return nil
	}
	defer func() { _ = worked() }()
	program, err := tree.Conditions.Cached(n.Condition)
	if err != nil {
		return false, nil
	}
	met, cost, err := program.Measure(ctx, map[string]any{"user": r.whole}, worked)
	m.spent += cost
	if errors.Is(err, condition.ErrCost) {
		m.stopped[n.ID]++
	}
	if err != nil && !errors.Is(err, condition.ErrUndecided) {
		return false, err
	}
	return err == nil && met, nil
}

// evaluateNodes evaluates a user for nodes in the order of their ids, after the node behind, until the meter is full.
// after is the id of the last node evaluated, or "" if no more are left.
func (m *meter) evaluateNodes(ctx context.Context, user *record, nodes []*tree.Node, behind string) (
	evaluated []*tree.Node, verdicts []verdict, after string, err error,
) {
	for _, n := range nodes {
		if n.ID <= behind {
			continue
		}
		if len(evaluated) > 0 && m.full() {
			return evaluated, verdicts, evaluated[len(evaluated)-1].ID, nil
		}
		met, err := m.meets(ctx, user, n)
		if err != nil {
			return nil, nil, "", err
		}
		evaluated, verdicts = append(evaluated, n), append(verdicts, verdict{userID: user.ID, member: met})
	}
	return evaluated, verdicts, "", nil
}

// postpone leaves a user's record to the tenant's next turn.
func (s *Members) postpone(ctx context.Context, user *record) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		known, err := loadPeople(ctx, tx, user.ID)
		p := known[user.ID]
		if err != nil || outdated(p, user.sequence) {
			return err
		}
		if p != nil && p.Gone { // a user who has returned may become a member at once
			if _, err := advance(ctx, tx, known, user.ID, user.sequence, false); err != nil {
				return err
			}
		}
		return s.enqueue(ctx, tx, user, "")
	})
}

// enqueue stores a user's recheck. It replaces one with an older record.
func (s *Members) enqueue(ctx context.Context, tx *docstore.Tx, user *record, after string) error {
	waiting, err := rechecks.LoadMany(ctx, tx, []string{user.ID})
	if err != nil {
		return err
	}
	if len(waiting) == 0 {
		_, err = rechecks.Insert(ctx, tx, &recheck{
			Meta: docstore.Meta{ID: user.ID}, Sequence: user.sequence, Record: string(user.raw), After: after,
		})
		return errors.Join(err, rota.Ask(ctx, tx))
	}
	if r := waiting[0]; r.Sequence < user.sequence || r.Sequence == user.sequence && after != "" {
		r.Sequence, r.Record, r.After = user.sequence, string(user.raw), after
		_, err = rechecks.Replace(ctx, tx, r)
	}
	return errors.Join(err, rota.Ask(ctx, tx))
}

// forgetRecheck deletes a user's recheck, up to a sequence.
func forgetRecheck(ctx context.Context, tx *docstore.Tx, userID string, sequence int64) error {
	waiting, err := rechecks.LoadMany(ctx, tx, []string{userID})
	if err != nil || len(waiting) == 0 || waiting[0].Sequence > sequence {
		return err
	}
	_, err = rechecks.Delete(ctx, tx, waiting[0])
	return err
}

// applyVerdicts stores the memberships that follow from verdicts on a user. after is the last node evaluated, or "" if
// all were.
func (s *Members) applyVerdicts(
	ctx context.Context, user *record, nodes []*tree.Node, verdicts []verdict, after string,
) error {
	if err := s.number(ctx, verdicts); err != nil {
		return err
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		known, err := loadPeople(ctx, tx, user.ID)
		if err != nil {
			return err
		}
		if outdated(known[user.ID], user.sequence) {
			return forgetRecheck(ctx, tx, user.ID, user.sequence)
		}
		if after != "" {
			err = s.enqueue(ctx, tx, user, after)
		} else if _, err = advance(ctx, tx, known, user.ID, user.sequence, false); err == nil {
			err = forgetRecheck(ctx, tx, user.ID, user.sequence)
		}
		if err != nil {
			return err
		}
		has, err := members.LoadWhere(ctx, tx, docstore.Prefix(byUser, user.ID+"/"), "", mostOfUser)
		if err != nil {
			return err
		}
		in := make(map[string]*Membership, len(has))
		for _, m := range has {
			in[m.NodeID] = m
		}
		for i, n := range nodes {
			if verdicts[i].member == (in[n.ID] != nil) {
				continue
			}
			if err := applyVerdicts(ctx, tx, n, map[string]*Membership{user.ID: in[n.ID]},
				verdicts[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	})
}

// rechecksOfTurn is how many users are evaluated in a turn.
const rechecksOfTurn = 50

// recheckSome evaluates waiting users, the longest waiting first, until the meter is full.
func (s *Members) recheckSome(ctx context.Context, m *meter) error {
	oldest := docstore.Query{Sort: []docstore.Order{{Index: byWaiting}}, Limit: rechecksOfTurn}
	waiting, err := rechecks.Page(ctx, s.Store, oldest)
	if err != nil || len(waiting.Docs) == 0 {
		return err
	}
	nodes, err := tree.DynamicNodes(ctx, s.Store)
	if err != nil {
		return err
	}
	var failed []error // one user's failure must not delay the others
	for i := range waiting.Docs {
		if m.full() {
			break
		}
		if err := s.recheck(ctx, &waiting.Docs[i], nodes, m); err != nil {
			failed = append(failed, fmt.Errorf("user %s: %w", waiting.Docs[i].ID, err))
		}
	}
	return errors.Join(failed...)
}

func (s *Members) recheck(ctx context.Context, doc *docstore.Doc[recheck], nodes []*tree.Node, m *meter) error {
	r, err := doc.Value()
	if err != nil {
		return err
	}
	user, err := m.read(ctx, json.RawMessage(r.Record))
	if err != nil {
		return fmt.Errorf("the record: %w", err)
	}
	user.ID, user.sequence = r.ID, r.Sequence
	evaluated, verdicts, after, err := m.evaluateNodes(ctx, &user, nodes, r.After)
	if err != nil {
		return err
	}
	return s.applyVerdicts(ctx, &user, evaluated, verdicts, after)
}

// Upkeep gives every tenant with work a turn, and returns how many have more work. Call it about every second. Any
// number of replicas may do so: if two do the same part, one of them fails and changes nothing.
func (s *Members) Upkeep(ctx context.Context) (int, error) {
	return rota.Run(ctx, s.Store, fair.Work{
		Do: s.turn,
		Left: func(ctx context.Context, tx *docstore.Tx) (bool, error) {
			users, err := rechecks.LoadWhere(ctx, tx, docstore.Filter{}, "", 1)
			if err != nil || len(users) > 0 {
				return len(users) > 0, err
			}
			nodes, err := upkeeps.LoadWhere(ctx, tx, docstore.Filter{}, "", 1)
			return len(nodes) > 0, err
		},
	})
}

// turn does a part of a tenant's work: first rechecks, up to half of what a turn may cost, then upkeeps of nodes.
func (s *Members) turn(ctx context.Context) error {
	m := newMeter(turnCost / 2)
	err := s.recheckSome(ctx, m)
	m.limit = turnCost
	err = errors.Join(err, s.upkeepSome(ctx, m))
	for nodeID, n := range m.stopped {
		s.Log.WarnContext(ctx, "a condition costs too much to evaluate for some users, who count as not meeting it",
			"node", nodeID, "users", n, "most", condition.MaxCost)
	}
	return err
}

// upkeepSome does a part of the upkeeps of nodes, the oldest first, until the meter is full.
func (s *Members) upkeepSome(ctx context.Context, m *meter) error {
	waiting, err := upkeeps.Page(ctx, s.Store, docstore.Query{Sort: []docstore.Order{{Index: byWaiting}}, Limit: 32})
	if err != nil {
		return err
	}
	var failed []error // one node's failure must not delay the others
	for i := range waiting.Docs {
		if m.full() {
			break
		}
		err := s.upkeep(ctx, waiting.Docs[i].ID, m)
		if kind := apperr.KindOf(err); err != nil && kind != apperr.NotFound && kind != apperr.VersionMismatch {
			failed = append(failed, fmt.Errorf("node %s: %w", waiting.Docs[i].ID, err))
		}
	}
	return errors.Join(failed...)
}
