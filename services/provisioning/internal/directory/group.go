package directory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/filter"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
	"github.com/idplatform/idplatform/services/questions"
)

// Group is a node of the tree of a connection. Its id is the node's.
type Group struct {
	docstore.Meta
	ConnectionID string       `json:"connection_id"`
	ExternalID   string       `json:"external_id"`
	Gone         bool         `json:"gone"` // deleted by the client: the node is disabled
	Record       mapping.Node `json:"record"`
	Display      string       `json:"display"` // the displayName, in the form of filter.Key
	NodeVersion  int64        `json:"node_version"`
	Sequence     int64        `json:"sequence"`
}

// GroupDoc is a group as read or written.
type GroupDoc = docstore.Doc[Group]

var groups = docstore.Define(docstore.Schema[Group]{
	Name: "scim_groups", Noun: "group", NoIfMatch: true,
	Counts: func(g *Group) []*int64 { return []*int64{&g.NodeVersion, &g.Sequence} },
	Indexes: slices.Concat([]docstore.Index[Group]{
		docstore.Counted(docstore.ByText(byLive, func(g *Group) string {
			if g.Gone {
				return ""
			}
			return g.ConnectionID
		})),
		docstore.ByText(byLinked, func(g *Group) string { return g.ConnectionID }),
		docstore.Unique(docstore.ByText(byExternal, func(g *Group) string {
			return within(g.ConnectionID, g.ExternalID)
		}), "externalId"),
		docstore.ByText(byGone, func(g *Group) string {
			if !g.Gone {
				return ""
			}
			return within(g.ConnectionID, g.Display)
		}),
	}, liveTexts(groupTexts)),
})

// groupTexts are the attributes of groups that ranges are looked up in.
var groupTexts = []text[Group]{
	{byID, "id", func(g *Group) string { return g.ID }},
	{byExternalID, "externalId", func(g *Group) string { return g.ExternalID }},
	{byDisplay, "displayName", func(g *Group) string { return g.Display }},
	{byCreated, "meta.created", func(g *Group) string { return momentText(g.Record.TimeCreated) }},
	{byModified, "meta.lastModified", func(g *Group) string { return momentText(g.TimeModified) }},
}

func (g *Group) where() (connectionID string, live bool) { return g.ConnectionID, !g.Gone }

// Tag is the entity tag of the group's resource: it changes with its members, too.
func (g *Group) Tag() string { return fmt.Sprintf(`W/"%d"`, g.Version) }

// NewTag gives a group another entity tag if check takes the present one. Of several changes that are allowed for one
// tag, only the first goes on then.
func NewTag(ctx context.Context, tx *docstore.Tx, id string, check func(tag string) error) error {
	found, err := groups.LoadMany(ctx, tx, []string{id})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return apperr.Missing("group")
	}
	if err := check(found[0].Tag()); err != nil {
		return err
	}
	_, err = groups.Touch(ctx, tx, found[0])
	return err
}

// Dynamic reports whether a condition says who the members are.
func (g *Group) Dynamic() bool { return g.Record.IsDynamic == "1" }

// read takes over a record, unless the group has a later one.
func (g *Group) read(node json.RawMessage, sequence int64) error {
	if sequence < g.Sequence {
		return nil
	}
	var record mapping.Node
	if err := json.Unmarshal(node, &record); err != nil {
		return fmt.Errorf("the record of node %s: %w", g.ID, err)
	}
	g.NodeVersion, g.Sequence = record.Version, sequence
	record.Version, record.TimeModified, record.Path = 0, clock.Time{}, nil
	g.Record = record
	a, _ := schema.Group.Core.Attribute("displayName")
	g.Display = filter.Key(a, record.Name)
	return nil
}

// Resource makes the group's resource in canonical form. path are the ids of the nodes from the root to it.
func (g *Group) Resource(path []string, view mapping.GroupView) resource.Object {
	view.ExternalID, view.Version = g.ExternalID, g.Tag()
	record := g.Record
	record.TimeModified, record.Path = g.TimeModified, path
	return mapping.FromNode(schema.Group, &record, view)
}

// GetGroup returns a group that a connection sees. The error is apperr.NotFound.
func GetGroup(ctx context.Context, r docstore.Reader, connectionID, id string) (*Group, error) {
	if len(id) > maxID {
		return nil, apperr.Missing("group")
	}
	doc, err := groups.Find(ctx, r, id)
	if err != nil {
		return nil, err
	}
	g, err := doc.Value()
	if err != nil {
		return nil, err
	}
	if g.ConnectionID != connectionID || g.Gone {
		return nil, apperr.Missing("group")
	}
	return g, nil
}

// GroupByExternal returns the group with an externalId, also one that is gone. The error is apperr.NotFound.
func GroupByExternal(ctx context.Context, r docstore.Reader, connectionID, externalID string) (*Group, error) {
	return oneGroup(ctx, r, docstore.Eq(byExternal, docstore.Text(within(connectionID, externalID))))
}

// GroupsByName returns the groups with a displayName: those that clients see first, then those that are gone, at most
// maxNamesakes.
func GroupsByName(ctx context.Context, r docstore.Reader, connectionID, displayName string) ([]*Group, error) {
	a, _ := schema.Group.Core.Attribute("displayName")
	return byName(ctx, r, groups, byDisplay, within(connectionID, filter.Key(a, displayName)))
}

func oneGroup(ctx context.Context, r docstore.Reader, f docstore.Filter) (*Group, error) {
	doc, err := groups.First(ctx, r, f)
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// maxPath bounds the walk from a node to the root.
const maxPath = 64

// Path returns the ids of the nodes from the root to a group. known has groups that were read already, by id.
func Path(ctx context.Context, s *docstore.Store, g *Group, known map[string]*Group) ([]string, error) {
	path := []string{g.ID}
	for at := g; len(path) < maxPath && at.Record.ParentID != ""; {
		path = append([]string{at.Record.ParentID}, path...)
		parent := known[at.Record.ParentID]
		if parent == nil {
			doc, err := groups.Find(ctx, s, at.Record.ParentID)
			if apperr.IsNotFound(err) { // the root, which is no group
				return path, nil
			}
			if err != nil {
				return nil, err
			}
			if parent, err = doc.Value(); err != nil {
				return nil, err
			}
			known[parent.ID] = parent
		}
		at = parent
	}
	return path, nil
}

// PutGroup stores the state of a node, and changes its link or makes it. A node that is no group is forgotten: then the
// group is nil.
func PutGroup(ctx context.Context, tx *docstore.Tx, id string, state questions.NodeState, link Link) (*Group, error) {
	found, err := groups.LoadMany(ctx, tx, []string{id})
	if err != nil {
		return nil, err
	}
	g, isNew := &Group{Meta: docstore.Meta{ID: id}, ConnectionID: link.ConnectionID}, len(found) == 0
	if !isNew {
		g = found[0]
	}
	if g.ConnectionID != link.ConnectionID {
		return nil, apperr.Missing("group")
	}
	if len(state.Node) > 0 {
		if err := g.read(state.Node, state.Sequence); err != nil {
			return nil, err
		}
	}
	if !g.Record.IsGroup() {
		if isNew {
			return nil, nil //nolint:nilnil // there is no group
		}
		_, err := groups.Delete(ctx, tx, g)
		return nil, err
	}
	if link.ExternalID != nil {
		g.ExternalID = *link.ExternalID
	}
	if link.Gone != nil {
		g.Gone = *link.Gone
	}
	var doc GroupDoc
	if isNew {
		doc, err = groups.Insert(ctx, tx, g)
	} else {
		doc, err = groups.Replace(ctx, tx, g)
	}
	if err != nil {
		return nil, err
	}
	if link.Event != "" && doc.Written() {
		if err := tellLink(ctx, tx, link.Event, &doc, g.ConnectionID, "Group", g.ID, g.ExternalID); err != nil {
			return nil, err
		}
	}
	return doc.Value()
}

func tenantOf(ctx context.Context) string { return request.Tenant(ctx) }

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return []*docstore.Def{users.Def(), groups.Def(), members.Def(), early.Def()}
}
