package directory

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// member is the copy of a membership in a tree of a connection. Its id is the membership's.
type member struct {
	docstore.Meta
	ConnectionID string     `json:"connection_id"`
	NodeID       string     `json:"node_id"`
	UserID       string     `json:"user_id"`
	Sequence     int64      `json:"sequence"`
	Ended        clock.Time `json:"ended"` // when it ended; it is kept a while, so that late news do not restore it
}

const (
	byNode   = "node"    // the node, of members that have not ended
	byPlace  = "place"   // the node, the user
	byMember = "user"    // the user, the node
	byOwner  = "owner"   // the connection
	byJoined = "joined"  // the node, when the copy came to know of the member
	keepsFor = time.Hour // a membership that has ended
)

var members = docstore.Define(docstore.Schema[member]{
	Name: "scim_members", Noun: "member", NoIfMatch: true, Revision: 1,
	Counts: func(m *member) []*int64 { return []*int64{&m.Sequence} },
	Due: func(m *member) clock.Time {
		if m.Ended.IsZero() {
			return clock.Time{}
		}
		return m.Ended.Add(keepsFor)
	},
	Indexes: []docstore.Index[member]{
		docstore.Counted(docstore.ByText(byNode, func(m *member) string {
			if !m.Ended.IsZero() {
				return ""
			}
			return m.NodeID
		})),
		docstore.ByText(byPlace, func(m *member) string {
			if !m.Ended.IsZero() {
				return ""
			}
			return m.NodeID + "/" + m.UserID
		}),
		docstore.ByText(byMember, func(m *member) string {
			if !m.Ended.IsZero() {
				return ""
			}
			return m.UserID + "/" + m.NodeID
		}),
		docstore.ByText(byJoined, func(m *member) string {
			if !m.Ended.IsZero() {
				return ""
			}
			return within(m.NodeID, momentText(m.TimeCreated))
		}),
		docstore.ByText(byOwner, func(m *member) string { return m.ConnectionID }),
	},
})

// CountMembers counts the members of a node, those that the connection does not see included.
func CountMembers(ctx context.Context, r docstore.Reader, nodeID string) (int64, error) {
	return members.Count(ctx, r, docstore.Eq(byNode, docstore.Text(nodeID)))
}

// MembersOf lists the ids of the users who are members of a node, in order, at most limit. more reports that there are
// others.
func MembersOf(ctx context.Context, s *docstore.Store, nodeID string, limit int) (ids []string, more bool, err error) {
	texts, err := members.Texts(ctx, s, byPlace, docstore.Prefix(byPlace, nodeID+"/"), limit+1)
	if err != nil {
		return nil, false, err
	}
	ids = make([]string, 0, len(texts))
	for _, t := range texts {
		_, user, _ := strings.Cut(t.Text, "/")
		ids = append(ids, user)
	}
	ids = slices.Compact(ids)
	if len(texts) > limit {
		return ids[:min(limit, len(ids))], true, nil
	}
	return ids, false, nil
}

// CountAmong counts those of the users who are members of a node. users has each once.
func CountAmong(ctx context.Context, s *docstore.Store, nodeID string, users []string) (n int64, err error) {
	const chunk = 500
	for part := range slices.Chunk(users, chunk) {
		places := make([]docstore.Value, len(part))
		for i, id := range part {
			places[i] = docstore.Text(nodeID + "/" + id)
		}
		has, err := members.Texts(ctx, s, byPlace, docstore.In(byPlace, places...), 2*len(part))
		if err != nil {
			return 0, err
		}
		there := map[string]bool{}
		for _, t := range has {
			there[t.Text] = true
		}
		n += int64(len(there))
	}
	return n, nil
}

// CountMembersBefore counts the members of a node that it has had since before a moment.
func CountMembersBefore(ctx context.Context, r docstore.Reader, nodeID string, at clock.Time) (int64, error) {
	all, err := CountMembers(ctx, r, nodeID)
	if err != nil {
		return 0, err
	}
	later, err := members.Count(ctx, r, docstore.Range(byJoined, docstore.Text(within(nodeID, momentText(at))),
		docstore.Text(nodeID+"0"))) // 0 follows /
	return max(0, all-later), err
}

// NodesOf lists the ids of the nodes that a user is a member of.
func NodesOf(ctx context.Context, s *docstore.Store, userID string, limit int) ([]string, error) {
	texts, err := members.Texts(ctx, s, byMember, docstore.Prefix(byMember, userID+"/"), limit)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(texts))
	for _, t := range texts {
		_, node, _ := strings.Cut(t.Text, "/")
		ids = append(ids, node)
	}
	return slices.Compact(ids), nil
}

// GroupsOf returns the groups of a connection that a user is a member of.
func GroupsOf(ctx context.Context, s *docstore.Store, connectionID, userID string) ([]*Group, error) {
	ids, err := NodesOf(ctx, s, userID, maxGroupsOf)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	docs, err := groups.FindMany(ctx, s, ids)
	if err != nil {
		return nil, err
	}
	var found []*Group
	for i := range docs {
		g, err := docs[i].Value()
		if err != nil {
			return nil, err
		}
		if g.ConnectionID == connectionID && !g.Gone {
			found = append(found, g)
		}
	}
	slices.SortFunc(found, func(a, b *Group) int { return strings.Compare(a.ID, b.ID) })
	return found, nil
}

const maxGroupsOf = 4000 // more than a user has memberships

// PutMembers stores memberships of a node, and those that ended. It returns the group, nil if it is not known.
func PutMembers(
	ctx context.Context, tx *docstore.Tx, connectionID, nodeID string, has, ended []questions.Membership,
) (*Group, error) {
	changed := false
	for _, list := range []struct {
		of   []questions.Membership
		ends bool
	}{{has, false}, {ended, true}} {
		for part := range slices.Chunk(list.of, 200) {
			some, err := putMembers(ctx, tx, connectionID, part, list.ends)
			if err != nil {
				return nil, err
			}
			changed = changed || some
		}
	}
	found, err := groups.LoadMany(ctx, tx, []string{nodeID})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if !changed {
		return found[0], nil
	}
	doc, err := groups.Touch(ctx, tx, found[0]) // its resource has other members
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// putMembers reports whether something has changed for those who read.
func putMembers(
	ctx context.Context, tx *docstore.Tx, connectionID string, list []questions.Membership, ends bool,
) (changed bool, err error) {
	ids := make([]string, len(list))
	for i, m := range list {
		ids[i] = m.ID
	}
	loaded, err := members.LoadMany(ctx, tx, ids)
	if err != nil {
		return false, err
	}
	known := map[string]*member{}
	for _, m := range loaded {
		known[m.ID] = m
	}
	for _, news := range list {
		m := known[news.ID]
		switch {
		case m == nil:
			m = &member{Meta: docstore.Meta{ID: news.ID}, ConnectionID: connectionID, NodeID: news.NodeID,
				UserID: news.UserID, Sequence: news.Sequence}
			if ends {
				m.Ended = tx.Now
			}
			if _, err := members.Insert(ctx, tx, m); err != nil {
				return false, err
			}
			changed = true
		case news.Sequence <= m.Sequence || !m.Ended.IsZero(): // a membership that has ended never begins again
		case ends:
			m.Sequence, m.Ended = news.Sequence, tx.Now
			if _, err := members.Replace(ctx, tx, m); err != nil {
				return false, err
			}
			changed = true
		default:
			m.Sequence = news.Sequence
			if _, err := members.Replace(ctx, tx, m); err != nil {
				return false, err
			}
		}
	}
	return changed, nil
}

// DueMembers lists memberships that ended long ago.
func DueMembers(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return members.Due(ctx, s, limit)
}

// ForgetMember forgets a membership that has ended.
func ForgetMember(ctx context.Context, s *docstore.Store, id string) error {
	return docstore.Do(ctx, s, func(tx *docstore.Tx) error {
		return members.DeleteWhere(ctx, tx, docstore.ID(id), nil)
	})
}
