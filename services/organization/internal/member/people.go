package member

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/condition"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// person is what this service knows of a user: how far the user's events have been heard. It makes every event count once, in order,
// however often it comes, and keeps out those who have left between the question whether they exist and their membership.
//
// There is one for every user who has left, and for every user at all where there are dynamic nodes.
type person struct {
	docstore.Meta       // the id is the user's
	Sequence      int64 `json:"sequence"` // of the user's event that was last taken into account
	Gone          bool  `json:"gone"`     // deleted or resigned
}

var people = docstore.Define(docstore.Schema[person]{Name: "people", Noun: "user", Part: true})

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

// outdated tells whether a user's record as of a later sequence was taken into account, or the user has been deleted at
// this one.
func outdated(p *person, sequence int64) bool {
	return p != nil && (p.Sequence > sequence || p.Sequence == sequence && p.Gone)
}

// advance notes that a user's record as of a sequence is being taken into account; false if a later one was already, or
// the user has been deleted at this one: while an event's sequence was the record's version, a deletion had that of the
// last change. All sequences of now are greater than those.
func advance(
	ctx context.Context, tx *docstore.Tx, known map[string]*person, id string, sequence int64, gone bool,
) (bool, error) {
	p := known[id]
	if p == nil {
		_, err := people.Insert(ctx, tx, &person{Meta: docstore.Meta{ID: id}, Sequence: sequence, Gone: gone})
		return true, err
	}
	if p.Sequence > sequence || p.Sequence == sequence && p.Gone && !gone {
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

// record is what this service needs to know of a user record, and the whole of it for conditions.
type record struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	Status  string `json:"status"`

	sequence int64 // of the event that told of it
	raw      json.RawMessage
	whole    map[string]any // see read
}

const resigned = "resigned"

func readRecord(raw json.RawMessage) (record, error) {
	r := record{raw: raw}
	return r, json.Unmarshal(raw, &r)
}

// read makes the record ready for conditions: most events come where there are none.
func (r *record) read() (err error) {
	r.whole, err = condition.FromJSON(r.raw)
	return err
}

// OnUser takes an event of the users service into account: who leaves has no memberships any more, who changes may meet other
// conditions than before.
func (s *Members) OnUser(ctx context.Context, e bus.Event) error {
	var data struct {
		Record json.RawMessage `json:"record"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
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
	return s.reconsider(ctx, &user, strings.HasSuffix(e.Type, ".reinstated"))
}

// depart ends all memberships of a user who has left.
func (s *Members) depart(ctx context.Context, user *record) error {
	err := docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		known, err := loadPeople(ctx, tx, user.ID)
		if err != nil {
			return err
		}
		if ok, err := advance(ctx, tx, known, user.ID, user.sequence, true); err != nil || !ok {
			return err
		}
		ended, err := members.LoadWhere(ctx, tx, docstore.Prefix(byUser, user.ID+"/"), "", 2*(MaxOfUser+tree.MaxDynamic))
		if err != nil {
			return err
		}
		return end(ctx, tx, ended)
	})
	return err
}

// reconsider looks at the conditions of all dynamic nodes, or leaves that to the tenant's next turn where it costs too
// much, and notes that a user who had left is back.
//
// A condition that changes meanwhile has its own upkeep, which looks at all users as they were then or later: at this record or a newer
// one, since it was there before its event. So what was found by the old condition need only not be written.
func (s *Members) reconsider(ctx context.Context, user *record, back bool) error {
	cost, err := tree.ConditionCost(ctx, s.Store)
	if err != nil || cost == 0 && !back {
		return err
	}
	if err := user.read(); err != nil { // here the event is parked for it; a recheck would fail for ever
		return fmt.Errorf("the event's record: %w", err)
	}
	if cost > atOnceCost {
		return s.postpone(ctx, user)
	}
	nodes, err := tree.DynamicNodes(ctx, s.Store)
	if err != nil {
		return err
	}
	looked, verdicts, after, err := newMeter(atOnceCost).look(ctx, user, nodes, "")
	if err != nil {
		return err
	}
	return s.judge(ctx, user, looked, verdicts, after)
}
