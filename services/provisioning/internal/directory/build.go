package directory

import (
	"context"
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/questions"
)

const (
	nodesAsked   = 500
	membersAsked = 2000
)

// Build copies the nodes and memberships that a tree had before its connection. What events bring meanwhile is newer
// and stays. The error is apperr.NotFound if there is nothing to copy, and Unavailable without an answer.
func (c *Copy) Build(ctx context.Context, b *bus.Bus, connectionID string) error {
	of, err := connection.Find(ctx, c.Store, connectionID)
	if err != nil {
		return err
	}
	if !of.Copying {
		return apperr.Missing("tree to copy")
	}
	if err := c.copyNodes(ctx, b, of); err != nil {
		return err
	}
	if err := c.copyMembers(ctx, b, of); err != nil {
		return err
	}
	return docstore.Do(ctx, c.Store, func(tx *docstore.Tx) error {
		_, err := connection.Edit(ctx, tx, of.ID, "", func(c *connection.Connection) { c.Copying = false })
		return err
	})
}

func (c *Copy) copyNodes(ctx context.Context, b *bus.Bus, of *connection.Connection) error {
	for after := ""; ; {
		page, err := questions.NodeRecords.Ask(ctx, b, questions.RecordsPage{After: after, Limit: nodesAsked})
		if err != nil {
			return err
		}
		if err := docstore.Do(ctx, c.Store, func(tx *docstore.Tx) error {
			for _, n := range page.Nodes {
				if n.ObjectCode != of.ObjectCode {
					continue
				}
				record, err := json.Marshal(n)
				if err != nil {
					return err
				}
				state := questions.NodeState{Node: record, Sequence: n.Sequence}
				if err := c.putNode(ctx, tx, of.ID, n.ID, state); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

func (c *Copy) copyMembers(ctx context.Context, b *bus.Bus, of *connection.Connection) error {
	for after := ""; ; {
		page, err := questions.MembershipRecords.Ask(ctx, b, questions.MembershipsPage{
			RecordsPage: questions.RecordsPage{After: after, Limit: membersAsked}})
		if err != nil {
			return err
		}
		byNode := map[string][]questions.Membership{}
		var ids []string
		for _, m := range page.Memberships {
			if byNode[m.NodeID] == nil {
				ids = append(ids, m.NodeID)
			}
			byNode[m.NodeID] = append(byNode[m.NodeID], m)
		}
		known, err := groups.FindMany(ctx, c.Store, ids)
		if err != nil {
			return err
		}
		for i := range known {
			g, err := known[i].Value()
			if err != nil {
				return err
			}
			if g.ConnectionID != of.ID {
				continue
			}
			one := map[string][]questions.Membership{g.ID: byNode[g.ID]}
			if err := c.putMembers(ctx, of.ObjectCode, one, false); err != nil {
				return err
			}
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

// ForgetTree forgets the groups and memberships of a deleted connection, some at a time.
func ForgetTree(ctx context.Context, s *docstore.Store, connectionID string) error {
	const atOnce = 500
	for {
		n, err := docstore.Write(ctx, s, func(tx *docstore.Tx) (int, error) {
			gone, err := groups.LoadWhere(ctx, tx, docstore.Eq(byLinked, docstore.Text(connectionID)), "", atOnce)
			if err != nil {
				return 0, err
			}
			for _, g := range gone {
				if _, err := groups.Delete(ctx, tx, g); err != nil {
					return 0, err
				}
			}
			ended, err := members.LoadWhere(ctx, tx, docstore.Eq(byOwner, docstore.Text(connectionID)), "", atOnce)
			if err != nil {
				return 0, err
			}
			for _, m := range ended {
				if _, err := members.Delete(ctx, tx, m); err != nil {
					return 0, err
				}
			}
			return len(gone) + len(ended), nil
		})
		if err != nil || n == 0 {
			return err
		}
	}
}
