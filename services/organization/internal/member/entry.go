package member

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// position is the place of a user in the list: that of the first membership, in the order of nodes' paths and then of
// seq.
type position struct {
	Path  string `json:"below"`
	Order string `json:"order"` // Membership.within
}

func (a position) compare(b position) int {
	return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Order, b.Order))
}

// entry is the index entry of a membership, with the path of its node.
type entry struct {
	position
	id, node, user string
}

// user is one item: the memberships of a user that the query selects, in order.
type user []entry

// entry parses an index entry. ok reports whether the membership has the query's role.
func (l *listing) entry(e docstore.Indexed) (s entry, ok bool) {
	node, rest, _ := strings.Cut(e.Text, "/")
	if l.Role != "" {
		var role string
		if role, rest, _ = strings.Cut(rest, "/"); role != l.Role {
			return entry{}, false
		}
	}
	_, user, _ := strings.Cut(rest, "/"+e.ID+"/")
	return entry{position{Order: rest}, e.ID, node, user}, true
}

// prefix is the beginning of the index entries of a node's memberships that the query selects.
func (l *listing) prefix(nodeID string) string {
	if l.Role != "" {
		return nodeID + "/" + l.Role + "/"
	}
	return nodeID + "/"
}

// maxPaths bounds the size of listing.paths: a walk may pass any number of nodes.
const maxPaths = 5000

// placed sets the paths of entries, and leaves out those in nodes that the query does not select.
func (l *listing) placed(ctx context.Context, entries []entry) ([]entry, error) {
	if len(l.paths) > maxPaths {
		clear(l.paths)
	}
	var unknown []string
	for _, s := range entries {
		if _, known := l.paths[s.node]; !known {
			l.paths[s.node] = ""
			unknown = append(unknown, s.node)
		}
	}
	if len(unknown) > 0 {
		found, err := tree.Paths(ctx, l.Store, unknown...)
		if err != nil {
			return nil, err
		}
		maps.Copy(l.paths, found)
	}
	top := l.node.PathText()
	within := entries[:0]
	for _, s := range entries {
		s.Path = l.paths[s.node]
		if s.node == l.node.ID || l.Recursive && strings.HasPrefix(s.Path, top) {
			within = append(within, s)
		}
	}
	return within, nil
}

// firsts makes users from memberships. If a user has several in the query's nodes, only the first counts.
func (l *listing) firsts(ctx context.Context, listed []entry) ([]user, error) {
	users := make([]user, 0, len(listed))
	if !l.Recursive || l.node.ChildCount == 0 {
		for i := range listed {
			users = append(users, listed[i:i+1])
		}
		return users, nil
	}
	ids := make([]string, len(listed))
	for i := range listed {
		ids[i] = listed[i].user
	}
	all, err := l.gather(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range listed {
		if u := all[ids[i]]; u != nil && u[0].id == listed[i].id {
			users = append(users, u)
		}
	}
	return users, nil
}

// gather finds all memberships of the users in the query's nodes.
func (l *listing) gather(ctx context.Context, ids []string) (map[string]user, error) {
	keys := make([]docstore.Value, len(ids))
	for i, id := range ids {
		keys[i] = docstore.Text(inTree(id, l.node.ObjectCode))
	}
	var entries []entry
	for part := range slices.Chunk(keys, chunk) {
		texts, err := members.Texts(ctx, l.Store, l.index, docstore.In(byUser, part...),
			len(part)*mostOfUser)
		if err != nil {
			return nil, err
		}
		for _, t := range texts {
			if s, ok := l.entry(t); ok {
				entries = append(entries, s)
			}
		}
	}
	entries, err := l.placed(ctx, entries)
	if err != nil {
		return nil, err
	}
	users := make(map[string]user, len(ids))
	for _, s := range entries {
		users[s.user] = append(users[s.user], s)
	}
	for _, u := range users {
		slices.SortFunc(u, func(a, b entry) int { return a.compare(b.position) })
	}
	return users, nil
}
