package directory

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/stream"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/questions"
)

// earlyUser is the record of a user whose link is not stored yet: an event can come before the answer that makes the
// link. Its id is the user's.
type earlyUser struct {
	docstore.Meta
	ConnectionID string          `json:"connection_id"`
	Record       json.RawMessage `json:"record"`
	Sequence     int64           `json:"sequence"`
	TimeDue      clock.Time      `json:"time_due"`
}

var early = docstore.Define(docstore.Schema[earlyUser]{
	Name: "early_users", Noun: "record", NoIfMatch: true, Due: func(e *earlyUser) clock.Time { return e.TimeDue },
})

const earlyKept = time.Hour

// takeEarly takes over what events have brought before the link.
func (u *User) takeEarly(ctx context.Context, tx *docstore.Tx) error {
	found, err := early.LoadMany(ctx, tx, []string{u.ID})
	if err != nil || len(found) == 0 {
		return err
	}
	if _, err := u.read(questions.UserState{User: found[0].Record, Sequence: found[0].Sequence}); err != nil {
		return err
	}
	_, err = early.Delete(ctx, tx, found[0])
	return err
}

// DueEarly lists records that no link has come for.
func DueEarly(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return early.Due(ctx, s, limit)
}

// ForgetEarly forgets such a record.
func ForgetEarly(ctx context.Context, s *docstore.Store, id string) error {
	return docstore.Do(ctx, s, func(tx *docstore.Tx) error {
		return early.DeleteWhere(ctx, tx, docstore.ID(id), nil)
	})
}

// Copy follows the events of other services.
type Copy struct{ Store *docstore.Store }

type eventData struct {
	Record      json.RawMessage `json:"record"`
	Memberships []struct {
		ID         string `json:"id"`
		ObjectCode string `json:"object_code"`
		NodeID     string `json:"node_id"`
		UserID     string `json:"user_id"`
		Sequence   string `json:"sequence"`
	} `json:"memberships"`
}

func dataOf(e stream.Event) (data eventData, err error) {
	if err := e.Read(&data); err != nil {
		return data, fmt.Errorf("the event's data: %w", err)
	}
	return data, nil
}

// OnUser handles an event of the users service.
func (c *Copy) OnUser(ctx context.Context, e stream.Event) error {
	var user struct {
		Record struct {
			ManagedBy *questions.ManagedBy `json:"managed_by"`
		} `json:"record"`
	}
	if err := e.Read(&user); err != nil {
		return err
	}
	if user.Record.ManagedBy == nil { // as of most users
		if strings.HasSuffix(e.Type, ".created") {
			return nil // a link that was made since has a newer state
		}
		if _, err := LinkOf(ctx, c.Store, e.Subject); apperr.IsNotFound(err) {
			return nil
		}
	}
	data, err := dataOf(e)
	if err != nil {
		return err
	}
	return docstore.Do(ctx, c.Store, func(tx *docstore.Tx) error {
		found, err := users.LoadMany(ctx, tx, []string{e.Subject})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return keepEarly(ctx, tx, e, data.Record, user.Record.ManagedBy)
		}
		u := found[0]
		if e.Sequence < u.Sequence {
			return nil
		}
		if strings.HasSuffix(e.Type, ".deleted") {
			u.Sequence = e.Sequence
			was := u.Gone
			u.Gone, u.Deleted = true, true
			doc, err := users.Replace(ctx, tx, u)
			if err != nil || was {
				return err
			}
			return tellLink(ctx, tx, "gone", &doc, u.ConnectionID, "User", u.ID, u.ExternalID)
		}
		if _, err := u.read(questions.UserState{User: data.Record, Sequence: e.Sequence}); err != nil {
			return err
		}
		_, err = users.Replace(ctx, tx, u)
		return err
	})
}

// keepEarly keeps the record of a user of a connection for the link that is about to be stored.
func keepEarly(
	ctx context.Context, tx *docstore.Tx, e stream.Event, record json.RawMessage, m *questions.ManagedBy,
) error {
	if m == nil || strings.HasSuffix(e.Type, ".deleted") {
		return nil
	}
	found, err := early.LoadMany(ctx, tx, []string{e.Subject})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		_, err := early.Insert(ctx, tx, &earlyUser{docstore.Meta{ID: e.Subject}, m.ConnectionID, record, e.Sequence,
			tx.Now.Add(earlyKept)})
		return err
	}
	if found[0].Sequence >= e.Sequence {
		return nil
	}
	found[0].Record, found[0].Sequence = record, e.Sequence
	_, err = early.Replace(ctx, tx, found[0])
	return err
}

// OnNode handles an event about a tree node.
func (c *Copy) OnNode(ctx context.Context, e stream.Event) error {
	data, err := dataOf(e)
	if err != nil {
		return err
	}
	var record struct {
		ObjectCode string `json:"object_code"`
	}
	if err := stream.ReadJSON(data.Record, &record); err != nil {
		return fmt.Errorf("the event's record: %w", err)
	}
	of, err := connection.OfTree(ctx, c.Store, record.ObjectCode)
	if apperr.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return docstore.Do(ctx, c.Store, func(tx *docstore.Tx) error {
		if strings.HasSuffix(e.Type, ".deleted") {
			return dropGroup(ctx, tx, e.Subject, e.Sequence)
		}
		return c.putNode(ctx, tx, of.ID, e.Subject, questions.NodeState{Node: data.Record, Sequence: e.Sequence})
	})
}

// putNode stores a node. One that was enabled again by others is shown again.
func (c *Copy) putNode(
	ctx context.Context, tx *docstore.Tx, connectionID, id string, state questions.NodeState,
) error {
	var record struct {
		Status string `json:"status"`
	}
	if err := json.Unmarshal(state.Node, &record); err != nil {
		return fmt.Errorf("the record of node %s: %w", id, err)
	}
	link := Link{ConnectionID: connectionID}
	if found, err := groups.LoadMany(ctx, tx, []string{id}); err != nil {
		return err
	} else if len(found) > 0 && found[0].Sequence > state.Sequence {
		return nil
	}
	_, err := PutGroup(ctx, tx, id, state, link)
	return err
}

func dropGroup(ctx context.Context, tx *docstore.Tx, id string, sequence int64) error {
	found, err := groups.LoadMany(ctx, tx, []string{id})
	if err != nil || len(found) == 0 || found[0].Sequence > sequence {
		return err
	}
	g := found[0]
	doc, err := groups.Delete(ctx, tx, g)
	if err != nil || g.Gone {
		return err
	}
	return tellLink(ctx, tx, "gone", &doc, g.ConnectionID, "Group", g.ID, g.ExternalID)
}

// OnMembership handles an event about memberships: of one, or of a batch that ended.
func (c *Copy) OnMembership(ctx context.Context, e stream.Event) error {
	data, err := dataOf(e)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(e.Type, ".deleted") {
		var m struct {
			ObjectCode string `json:"object_code"`
			questions.Membership
		}
		if err := stream.ReadJSON(data.Record, &m); err != nil {
			return fmt.Errorf("the event's record: %w", err)
		}
		m.ID, m.Sequence = e.Subject, e.Sequence
		return c.putMembers(ctx, m.ObjectCode, map[string][]questions.Membership{m.NodeID: {m.Membership}}, false)
	}
	byTree := map[string]map[string][]questions.Membership{}
	for _, m := range data.Memberships {
		sequence, err := strconv.ParseInt(m.Sequence, 10, 64)
		if err != nil {
			return fmt.Errorf("the sequence of membership %s: %w", m.ID, err)
		}
		if byTree[m.ObjectCode] == nil {
			byTree[m.ObjectCode] = map[string][]questions.Membership{}
		}
		byTree[m.ObjectCode][m.NodeID] = append(byTree[m.ObjectCode][m.NodeID],
			questions.Membership{ID: m.ID, NodeID: m.NodeID, UserID: m.UserID, Sequence: sequence})
	}
	for code, nodes := range byTree {
		if err := c.putMembers(ctx, code, nodes, true); err != nil {
			return err
		}
	}
	return nil
}

func (c *Copy) putMembers(
	ctx context.Context, objectCode string, nodes map[string][]questions.Membership, ends bool,
) error {
	of, err := connection.OfTree(ctx, c.Store, objectCode)
	if apperr.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for node, list := range nodes {
		if err := docstore.Do(InMembersTurn(ctx, node), c.Store, func(tx *docstore.Tx) error {
			has, ended := list, []questions.Membership(nil)
			if ends {
				has, ended = nil, list
			}
			_, err := PutMembers(ctx, tx, of.ID, node, has, ended)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// InMembersTurn makes changes of the members of one group wait for one another, because they all change its count.
func InMembersTurn(ctx context.Context, nodeID string) context.Context {
	return docstore.InTurn(ctx, "members "+nodeID)
}
