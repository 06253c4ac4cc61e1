// Package groups makes, changes, shows and removes groups for the clients of connections: nodes of the connection's
// tree. The organization service carries each change out, at most once.
package groups

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/fair"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/gate"
	"github.com/idplatform/idplatform/services/provisioning/internal/people"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/patch"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
	"github.com/idplatform/idplatform/services/questions"
)

// Deps are what Groups need. All are required.
type Deps struct {
	Store *docstore.Store
	Bus   *bus.Bus
	Gate  *gate.Gate
}

// Groups are the use cases.
type Groups struct {
	Deps
	large *fair.Semaphore // to show groups with many members
}

// New makes the use cases.
func New(d Deps) *Groups {
	large := fair.NewSemaphore("groups with many members are being read", largeAtOnce, maxWaiting)
	large.Share(largeOfTenant)
	return &Groups{d, large}
}

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{intents.Def()} }

const (
	maxExternalID = 255       // characters
	maxMembers    = 1_000_000 // of a group whose members are replaced or end
	maxSent       = MaxShown  // members in a request
	maxNamed      = 10        // unknown ids that an error names
)

// readable refuses a connection that has no tree, or whose tree is still being copied.
func readable(c *connection.Connection) error {
	if c.ObjectCode == "" {
		return apperr.New(apperr.NotFound, "the connection has no tree, so it has no groups")
	}
	if c.Copying {
		return apperr.New(apperr.Unavailable, "the groups that the tree had before the connection are being read")
	}
	return nil
}

// writable is readable for a change of a group; nil of one that is made.
func writable(c *connection.Connection, g *directory.Group) error {
	if err := readable(c); err != nil {
		return err
	}
	if !c.OwnsTree() {
		return scim.Invalid(scim.Mutability, "", "the connection does not own its groups")
	}
	if g != nil && g.Dynamic() {
		return scim.Invalid(scim.Mutability, "members", "follow from a condition; the group cannot be changed")
	}
	return nil
}

// Get returns a group. The error is apperr.NotFound or Unavailable.
func (s *Groups) Get(ctx context.Context, c *connection.Connection, id string) (*directory.Group, error) {
	if err := readable(c); err != nil {
		return nil, err
	}
	return directory.GetGroup(ctx, s.Store, c.ID, id)
}

// List returns a page of groups; see directory.ListGroups.
func (s *Groups) List(ctx context.Context, c *connection.Connection, q directory.Query) (
	directory.Page[directory.Group], error,
) {
	if err := readable(c); err != nil {
		return directory.Page[directory.Group]{}, err
	}
	return directory.ListGroups(ctx, s.Store, c.ID, q)
}

// target is what a request wants a group to become.
type target struct {
	name       string
	externalID string
	members    []string
}

func (s *Groups) targetOf(ctx context.Context, call people.Call, sent resource.Object) (target, error) {
	var w target
	r, err := resource.Read(schema.Group, sent, call.Ignored)
	if err != nil {
		return w, err
	}
	if err := resource.Required(schema.Group, r); err != nil {
		return w, err
	}
	w.name, _ = r["displayName"].(string)
	if w.externalID, err = externalIDOf(r); err != nil {
		return w, err
	}
	if r["members"] == nil {
		return w, nil
	}
	if w.members, err = patch.MemberIDs(r["members"]); err != nil {
		return w, err
	}
	return w, s.checkMembers(ctx, call, w.members)
}

func externalIDOf(r resource.Object) (string, error) {
	id, _ := r["externalId"].(string)
	if utf8.RuneCountInString(id) > maxExternalID {
		return "", scim.Invalid(scim.InvalidValue, "externalId", "must have at most %d characters", maxExternalID)
	}
	return id, nil
}

// checkMembers refuses ids of users that the connection does not see, and more than maxSent ids.
func (s *Groups) checkMembers(ctx context.Context, call people.Call, ids []string) error {
	if call.RemovesOnly {
		return nil
	}
	if len(ids) > maxSent {
		return scim.Invalid(scim.TooMany, "members", "must be at most %d in a request", maxSent)
	}
	known, err := directory.Names(ctx, s.Store, call.Connection.ID, ids)
	if err != nil || len(known) == len(ids) {
		return err
	}
	unknown := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { _, is := known[id]; return is })
	return unknownMembers(unknown)
}

func unknownMembers(ids []string) error {
	named := ids[:min(len(ids), maxNamed)]
	shown := make([]string, 0, len(named))
	for _, id := range named {
		if len(id) > 64 || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
			id = "one that is no id"
		}
		shown = append(shown, id)
	}
	if more := len(ids) - len(named); more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return scim.Invalid(scim.InvalidValue, "members", "must be users of the connection, unlike: %s",
		strings.Join(shown, ", "))
}

// Create makes a group below the root, or revives one that is gone.
func (s *Groups) Create(ctx context.Context, call people.Call, sent resource.Object) (*directory.Group, error) {
	c := call.Connection
	if err := writable(c, nil); err != nil {
		return nil, err
	}
	w, err := s.targetOf(ctx, call, sent)
	if err != nil {
		return nil, err
	}
	known, err := s.findKnown(ctx, c, w)
	if err != nil {
		return nil, err
	}
	node, err := json.Marshal(map[string]string{"name": w.name})
	if err != nil {
		return nil, err
	}
	j := update{
		call: call, add: w.members,
		change: questions.NodeChange{ObjectCode: c.ObjectCode, RootNodeID: c.RootNodeID, Action: questions.CreateNode,
			Node: node},
		link:  directory.Link{ConnectionID: c.ID, ExternalID: &w.externalID, Event: "created"},
		claim: c.ID + "/" + strings.ToLower(w.externalID+"/"+w.name),
	}
	if known != nil {
		here := false
		j.change.Action, j.change.NodeID, j.link.Gone, j.link.Event = questions.EnableNode, known.ID, &here, "revived"
		if w.externalID == "" {
			j.link.ExternalID = nil
		}
		if j.add, j.remove, err = s.exchange(ctx, known.ID, w.members); err != nil {
			return nil, err
		}
	}
	if err := s.passScopes(ctx, j, w.name, known); err != nil {
		return nil, err
	}
	g, err := s.execute(ctx, j)
	if err == nil && known != nil {
		err = s.Gate.Revive(ctx, c, known.ID)
	}
	return g, err
}

// findKnown returns the group that a POST means, which is gone; nil if there is none. Its externalId says which group
// it is; the displayName does so only where the request or the group has no externalId. The error is
// apperr.AlreadyExists if clients see it.
func (s *Groups) findKnown(ctx context.Context, c *connection.Connection, w target) (*directory.Group, error) {
	var g *directory.Group
	if w.externalID != "" {
		var err error
		g, err = directory.GroupByExternal(ctx, s.Store, c.ID, w.externalID)
		if err != nil && !apperr.IsNotFound(err) {
			return nil, err
		}
	}
	if g == nil {
		named, err := directory.GroupsByName(ctx, s.Store, c.ID, w.name)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(named, func(g *directory.Group) bool { return w.externalID == "" || g.ExternalID == "" })
		if i >= 0 {
			g = named[i]
		}
	}
	if g != nil && !g.Gone {
		return nil, scim.With(scim.Uniqueness, apperr.Taken("displayName"))
	}
	return g, nil
}

// exchange makes of the members of a group the wanted ones: who comes, and who goes.
func (s *Groups) exchange(ctx context.Context, id string, wanted []string) (come, gone []string, err error) {
	is, more, err := directory.MembersOf(ctx, s.Store, id, maxMembers)
	if err != nil {
		return nil, nil, err
	}
	if more {
		return nil, nil, scim.Invalid(scim.TooMany, "members", "are more than %d", maxMembers)
	}
	return without(wanted, is), without(is, wanted), nil
}

// without are the ids of a that are not in b.
func without(a, b []string) []string {
	in := make(map[string]bool, len(b))
	for _, id := range b {
		in[id] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(id string) bool { return in[id] })
}

// Replace gives a group a name and exactly the members of a resource. externalId stays if it is left out.
func (s *Groups) Replace(ctx context.Context, call people.Call, id string, sent resource.Object) (*directory.Group,
	error) {
	g, err := s.writableOne(ctx, call, id)
	if err != nil {
		return nil, err
	}
	w, err := s.targetOf(ctx, call, sent)
	if err != nil {
		return nil, err
	}
	if w.externalID == "" {
		w.externalID = g.ExternalID
	}
	return s.change(ctx, call, g, w.name, w.externalID, patch.Members{All: true, Add: w.members})
}

// Patch applies operations to a group: all or, with an error, none.
func (s *Groups) Patch(ctx context.Context, call people.Call, id string, operations []patch.Operation) (
	*directory.Group, error,
) {
	g, err := s.writableOne(ctx, call, id)
	if err != nil {
		return nil, err
	}
	after, _, members, err := patch.Group(schema.Group, g.Resource([]string{g.ID}, viewless), operations, call.Ignored)
	if err != nil {
		return nil, err
	}
	if err := resource.Required(schema.Group, after); err != nil {
		return nil, err
	}
	externalID, err := externalIDOf(after)
	if err != nil {
		return nil, err
	}
	if err := s.checkMembers(ctx, call, members.Add); err != nil {
		return nil, err
	}
	name, _ := after["displayName"].(string)
	return s.change(ctx, call, g, name, externalID, members)
}

func (s *Groups) writableOne(ctx context.Context, call people.Call, id string) (*directory.Group, error) {
	if err := s.finishEarlier(ctx, id); err != nil {
		return nil, err
	}
	g, err := s.Get(ctx, call.Connection, id)
	if err != nil {
		return nil, err
	}
	if err := call.Match.Check(g.Tag()); err != nil {
		return nil, err
	}
	return g, writable(call.Connection, g)
}

// change gives a group a name, an externalId and a change of its members.
func (s *Groups) change(
	ctx context.Context, call people.Call, g *directory.Group, name, externalID string, members patch.Members,
) (*directory.Group, error) {
	if call.RemovesOnly {
		name, externalID = g.Record.Name, g.ExternalID
	}
	j := update{call: call, add: members.Add, remove: members.Remove, group: g,
		link: directory.Link{ConnectionID: g.ConnectionID}}
	var err error
	if members.All {
		if j.add, j.remove, err = s.exchange(ctx, g.ID, members.Add); err != nil {
			return nil, err
		}
		if j.remove, err = s.onlySeen(ctx, g.ConnectionID, j.remove); err != nil {
			return nil, err
		}
	}
	if call.RemovesOnly {
		j.add = nil
		j.remove = slices.DeleteFunc(slices.Clone(j.remove), func(id string) bool {
			return slices.Contains(call.Stays, id)
		})
	}
	if externalID != g.ExternalID {
		j.link.ExternalID = &externalID
	}
	j.change = questions.NodeChange{ObjectCode: g.Record.ObjectCode, NodeID: g.ID}
	if name != g.Record.Name {
		j.change.Action = questions.UpdateNode
		if j.change.Node, err = json.Marshal(map[string]string{"name": name}); err != nil {
			return nil, err
		}
	}
	if err := s.passScopes(ctx, j, g.Record.Name, g); err != nil {
		return nil, err
	}
	removals, err := s.removals(ctx, j, members.All)
	if err != nil {
		return nil, err
	}
	changed, err := s.gated(ctx, j, removals)
	if err == nil && len(members.Add) > 0 && !call.RemovesOnly {
		err = s.Gate.Revive(ctx, call.Connection, g.ID, members.Add...)
	}
	return changed, err
}

// onlySeen leaves the users whom the connection sees: a client does not remove those whom it cannot know.
func (s *Groups) onlySeen(ctx context.Context, connectionID string, ids []string) ([]string, error) {
	known, err := directory.Names(ctx, s.Store, connectionID, ids)
	return slices.DeleteFunc(ids, func(id string) bool { _, is := known[id]; return !is }), err
}

// Delete disables the node of a group, ends its members, and hides it from the client. The error is apperr.HasChildren
// if there are groups below it.
func (s *Groups) Delete(ctx context.Context, call people.Call, id string) error {
	g, err := s.writableOne(ctx, call, id)
	if err != nil {
		return err
	}
	gone := true
	j := update{
		call: call, group: g,
		change: questions.NodeChange{ObjectCode: g.Record.ObjectCode, NodeID: g.ID, Action: questions.DisableNode},
		link:   directory.Link{ConnectionID: g.ConnectionID, Gone: &gone, Event: "gone"},
	}
	if _, j.remove, err = s.exchange(ctx, g.ID, nil); err != nil {
		return err
	}
	removals, err := s.removals(ctx, j, true)
	if err != nil {
		return err
	}
	_, err = s.gated(ctx, j, append(removals, gate.OfPeople("too many groups are deleted")))
	return err
}
