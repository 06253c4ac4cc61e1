package member

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/condition"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
	"github.com/idplatform/idplatform/services/questions"
)

// person records up to which event a user's events were handled. It makes every event count once and in order, however
// often it is delivered. It also prevents memberships of users who have left between the question whether they exist
// and the transaction.
//
// There is one for every user who has left and, if the tenant has dynamic nodes, for every user.
type person struct {
	docstore.Meta       // the id is the user's
	Sequence      int64 `json:"sequence"` // of the user's last handled event
	Gone          bool  `json:"gone"`     // deleted or resigned
}

var people = docstore.Define(docstore.Schema[person]{Name: "people", Noun: "user", NoIfMatch: true})

// departed returns those of the users who are known to have left.
func departed(ctx context.Context, r docstore.Reader, ids []string) (map[string]bool, error) {
	known, err := people.FindMany(ctx, r, ids)
	if err != nil {
		return nil, err
	}
	gone := map[string]bool{}
	for i := range known {
		p, err := known[i].Value()
		if err != nil {
			return nil, err
		}
		gone[p.ID] = p.Gone
	}
	return gone, nil
}

// outdated reports whether a user's record with a later sequence was handled.
func outdated(p *person, sequence int64) bool { return p != nil && p.Sequence > sequence }

// advance notes that a user's record with a sequence is being handled. It returns false if a later one was handled.
func advance(
	ctx context.Context, tx *docstore.Tx, known map[string]*person, id string, sequence int64, gone bool,
) (bool, error) {
	p := known[id]
	if p == nil {
		_, err := people.Insert(ctx, tx, &person{Meta: docstore.Meta{ID: id}, Sequence: sequence, Gone: gone})
		return true, err
	}
	if outdated(p, sequence) {
		return false, nil
	}
	p.Sequence, p.Gone = sequence, gone
	_, err := people.Replace(ctx, tx, p)
	return true, err
}

func loadPeople(ctx context.Context, tx *docstore.Tx, ids ...string) (map[string]*person, error) {
	loaded, err := people.LoadMany(ctx, tx, ids)
	known := make(map[string]*person, len(loaded))
	for _, p := range loaded {
		known[p.ID] = p
	}
	return known, err
}

// record has the members of a user record that this package needs, and the whole record for conditions.
type record struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	Status  string `json:"status"`

	sequence int64 // of the event that carried it
	raw      json.RawMessage
	whole    map[string]any // the parsed record, set by read
}

const resigned = "resigned"

func readRecord(raw json.RawMessage) (record, error) {
	r := record{raw: raw}
	return r, stream.ReadJSON(raw, &r)
}

// read parses the whole record for conditions. It is separate because most tenants have no conditions.
func (r *record) read() (err error) {
	r.whole, err = condition.FromJSON(r.raw)
	return err
}

// OnUser handles an event of the users service: a user who leaves loses all memberships; one who changes may meet other
// conditions than before.
func (s *Members) OnUser(ctx context.Context, e stream.Event) error {
	var data struct {
		Record json.RawMessage `json:"record"`
		NodeID string          `json:"node_id"` // questions.NodeOfUser
	}
	if err := e.Read(&data); err != nil {
		return fmt.Errorf("the event's data: %w", err)
	}
	user, err := readRecord(data.Record)
	if err != nil {
		return fmt.Errorf("the event's record: %w", err)
	}
	user.ID, user.sequence = e.Subject, e.Sequence
	if strings.HasSuffix(e.Type, ".deleted") || user.Status == resigned {
		return s.depart(ctx, &user)
	}
	if data.NodeID != "" && strings.HasSuffix(e.Type, ".created") {
		if err := s.place(ctx, user.ID, data.NodeID); err != nil {
			return err
		}
	}
	return s.reevaluate(ctx, &user, strings.HasSuffix(e.Type, ".reinstated"))
}

// place makes a user a member of the node that its creator has named, once. If the node takes no members, or is there
// no more, the log says so.
func (s *Members) place(ctx context.Context, userID, nodeID string) error {
	_, err := s.ApplyToNode(ctx, questions.MembersChange{
		ID: "created " + userID, NodeID: nodeID, Add: []string{userID}, Unmanaged: true,
	})
	switch apperr.KindOf(err) {
	case apperr.NotFound, apperr.InvalidState, apperr.InvalidParameters, apperr.ManagedElsewhere:
		s.Log.WarnContext(ctx, "a new user could not become a member of the node", "user", userID, "node", nodeID,
			"error", err)
		return nil
	}
	return err
}

// depart ends all memberships of a user who has left.
func (s *Members) depart(ctx context.Context, user *record) error {
	theirs := docstore.Prefix(byUser, user.ID+"/")
	ctx, err := s.ofMemberships(ctx, theirs)
	if err != nil {
		return err
	}
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		known, err := loadPeople(ctx, tx, user.ID)
		if err != nil {
			return err
		}
		if ok, err := advance(ctx, tx, known, user.ID, user.sequence, true); err != nil || !ok {
			return err
		}
		ended, err := members.LoadWhere(ctx, tx, theirs, "", mostOfUser)
		if err != nil {
			return err
		}
		return end(ctx, tx, ended)
	})
}

// reevaluate evaluates the conditions of all dynamic nodes, or leaves that to the tenant's next turn if it costs too
// much. It also notes the return of a user who had left.
//
// A condition that changes meanwhile has its own upkeep, which evaluates all users with this record or a newer one,
// because the record was stored before its event. So verdicts of the old condition are dropped.
func (s *Members) reevaluate(ctx context.Context, user *record, back bool) error {
	cost, err := s.costs.of(ctx, request.Tenant(ctx), func(ctx context.Context) (int64, error) {
		return tree.ConditionCost(ctx, s.Store)
	})
	if err != nil || cost == 0 && !back {
		return err
	}
	if err := user.read(); err != nil { // fail here, where the event is parked; a recheck would fail forever
		return fmt.Errorf("the event's record: %w", err)
	}
	if cost > atOnceCost {
		return s.postpone(ctx, user)
	}
	nodes, err := tree.DynamicNodes(ctx, s.Store)
	if err != nil {
		return err
	}
	evaluated, verdicts, after, err := newMeter(atOnceCost).evaluateNodes(ctx, user, nodes, "")
	if err != nil {
		return err
	}
	return s.applyVerdicts(ctx, user, evaluated, verdicts, after)
}
