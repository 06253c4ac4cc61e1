package member

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// items makes what clients see: the user's first membership, with the names of all nodes above, and a list of all
// selected memberships.
func (l *listing) items(ctx context.Context, users []user) ([]json.RawMessage, error) {
	var ids, places []string
	for _, u := range users {
		for _, s := range u {
			ids, places = append(ids, s.id), append(places, s.node)
		}
		above := strings.Split(u[0].Path, "/") // its last part is empty
		places = append(places, above[:len(above)-1]...)
	}
	docs, err := members.FindMany(ctx, l.Store, ids)
	if err != nil {
		return nil, err
	}
	if _, err := l.find(ctx, places); err != nil {
		return nil, err
	}
	byID := make(map[string]Doc, len(docs))
	for _, d := range docs {
		byID[d.ID] = d
	}
	var firsts []Doc
	var all [][]Doc
	for _, u := range users {
		var theirs []Doc
		for _, s := range u {
			if d, ok := byID[s.id]; ok && l.nodes[s.node] != nil { // otherwise it has ended meanwhile
				theirs = append(theirs, d)
			}
		}
		if len(theirs) > 0 {
			firsts, all = append(firsts, theirs[0]), append(all, theirs)
		}
	}
	named, err := names(ctx, l.find, firsts)
	if err != nil {
		return nil, err
	}
	items := make([]json.RawMessage, len(firsts))
	for i := range firsts {
		m, err := firsts[i].Value()
		if err != nil {
			return nil, err
		}
		first, err := named.shown(&firsts[i], l.nodes[m.NodeID])
		if err != nil {
			return nil, err
		}
		places, err := l.places(all[i])
		if err != nil {
			return nil, err
		}
		items[i] = splice(first, places)
	}
	return items, nil
}

// find is tree.Find, but reads each node once.
func (l *listing) find(ctx context.Context, ids []string) (map[string]*tree.Node, error) {
	unknown := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return l.nodes[id] != nil })
	slices.Sort(unknown)
	if unknown = slices.Compact(unknown); len(unknown) > 0 {
		found, err := tree.Find(ctx, l.Store, unknown...)
		if err != nil {
			return nil, err
		}
		maps.Copy(l.nodes, found)
	}
	nodes := make(map[string]*tree.Node, len(ids))
	for _, id := range ids {
		if n := l.nodes[id]; n != nil {
			nodes[id] = n
		}
	}
	return nodes, nil
}

// places is the member "nodes", which lists a user's memberships.
func (l *listing) places(memberships []Doc) ([]byte, error) {
	type place struct {
		ID      string `json:"id"`
		NodeID  string `json:"node_id"`
		Name    string `json:"node_name"`
		Role    string `json:"role"`
		Title   string `json:"title"`
		Primary string `json:"is_primary"`
		Dynamic bool   `json:"dynamic"`
	}
	places := make([]place, len(memberships))
	for i := range memberships {
		m, err := memberships[i].Value()
		if err != nil {
			return nil, err
		}
		places[i] = place{m.ID, m.NodeID, l.nodes[m.NodeID].Name, m.Role, m.Title, m.IsPrimary, m.Dynamic}
	}
	return json.Marshal(map[string]any{"nodes": places})
}
