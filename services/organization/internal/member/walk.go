package member

import (
	"context"
	"strings"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// walk goes through the nodes that have members, and through the members of each, until it has a full page and one user
// more.
func (l *listing) walk(ctx context.Context) ([]user, error) {
	var page []user
	skip, want, passed := l.Offset, l.Limit+1, 0
	w, err := l.walker(ctx)
	if err != nil {
		return nil, err
	}
	least := 0 // read more members together if most of their users were listed before
	for {
		listed, err := w.take(ctx, min(max(skip+want-len(page), least), 4*chunk))
		if err != nil || len(listed) == 0 {
			return page, err
		}
		users, err := l.firsts(ctx, listed)
		if least = 0; len(users) < len(listed)/2 {
			least = 2 * len(listed)
		}
		if err == nil && l.Keyword != "" {
			users, err = l.found(ctx, users)
		}
		if err != nil {
			return nil, err
		}
		for _, u := range users {
			if skip > 0 {
				skip--
			} else if page = append(page, u); len(page) == want {
				return page, nil
			}
		}
		if passed += len(listed); l.Keyword != "" && passed >= MaxCounted {
			l.stopped = listed[len(listed)-1].position
			return page, nil
		}
	}
}

// walker reads the memberships of a listing in order, those of several nodes together.
type walker struct {
	*listing
	queue  []docstore.Indexed // nodes to read one at a time
	begun  bool               // the first of the nodes below was read
	known  []docstore.Indexed // further nodes, to read together
	from   string             // the order after which to read members of the first node of the queue
	behind string             // the path after which further nodes follow
	last   bool               // no further nodes follow
	ahead  int                // how many further nodes to look up together
	ready  []entry            // memberships that were read, but not taken yet
}

// walker begins after the position at which the former page ended.
func (l *listing) walker(ctx context.Context) (*walker, error) {
	// A page needs few nodes, unless most of their users were listed before.
	w := &walker{listing: l, behind: l.node.PathText(), ahead: 8}
	if l.after.Path == "" {
		w.queue = l.self()
		return w, nil
	}
	path := strings.Split(l.after.Path, "/")
	id := path[max(len(path)-2, 0)]
	paths, err := tree.Paths(ctx, l.Store, id)
	if err != nil {
		return nil, err
	}
	w.behind = l.after.Path
	// otherwise the node was moved or deleted meanwhile: its members are elsewhere in the list
	if paths[id] == l.after.Path {
		w.queue, w.from = []docstore.Indexed{{ID: id, Text: l.after.Path}}, l.after.Order
	}
	return w, nil
}

// self is the listing's node, if it has members of its own.
func (l *listing) self() []docstore.Indexed {
	if l.node.MemberCount == 0 {
		return nil
	}
	return []docstore.Indexed{{ID: l.node.ID, Text: l.node.PathText()}}
}

// take returns the next memberships, as many as enough says; fewer at the end of the list.
func (w *walker) take(ctx context.Context, enough int) ([]entry, error) {
	var taken []entry
	for len(taken) < enough {
		if n := min(enough-len(taken), len(w.ready)); n > 0 {
			taken, w.ready = append(taken, w.ready[:n]...), w.ready[n:]
			continue
		}
		if more, err := w.read(ctx); err != nil || !more {
			return taken, err
		}
	}
	return taken, nil
}

// read makes further memberships ready; false if there are no more. Members of several nodes are read together, so that
// the other memberships of their users are looked up together, too.
func (w *walker) read(ctx context.Context) (more bool, err error) {
	if len(w.queue) == 0 {
		if len(w.known) == 0 {
			if more, err := w.further(ctx); err != nil || !more {
				return false, err
			}
		}
		if w.begun {
			entries, all, err := w.membersOfAll(ctx, w.known)
			if err != nil {
				return false, err
			}
			if all {
				w.ready, w.known = entries, nil
				return true, nil
			}
			w.queue, w.known = w.known, nil
		} else {
			w.begun, w.queue, w.known = true, w.known[:1], w.known[1:]
		}
	}
	entries, last, err := w.membersOf(ctx, w.queue[0], w.from, chunk)
	if err != nil {
		return false, err
	}
	w.ready = entries
	if w.from = last; last == "" {
		w.queue = w.queue[1:]
	}
	return true, nil
}

// further looks up further nodes with members below the listing's node; false if there are no more.
func (w *walker) further(ctx context.Context) (more bool, err error) {
	if !w.Recursive || w.last {
		return false, nil
	}
	next, err := tree.Populated(ctx, w.Store, w.node.Path, w.behind, w.ahead)
	if w.last = len(next) < w.ahead; err != nil || len(next) == 0 {
		return false, err
	}
	for _, n := range next {
		w.paths[n.ID] = n.Text
	}
	w.known, w.behind, w.ahead = next, next[len(next)-1].Text, min(2*w.ahead, 128)
	return true, nil
}

// membersOf lists members of one node after an order. last is where to continue, "" if there are no more.
func (l *listing) membersOf(ctx context.Context, node docstore.Indexed, from string, limit int) (entries []entry,
	last string, err error) {
	prefix := l.prefix(node.ID)
	filter := docstore.Prefix(l.index, prefix)
	if from != "" {
		filter = docstore.And(filter, docstore.Above(l.index, prefix+from))
	}
	texts, err := members.Texts(ctx, l.Store, l.index, filter, limit)
	if err != nil {
		return nil, "", err
	}
	entries = make([]entry, len(texts))
	for i, t := range texts {
		entries[i], _ = l.entry(t)
		entries[i].Path = node.Text
	}
	if len(entries) == limit {
		last = entries[limit-1].Order
	}
	return entries, last, nil
}

// membersOfAll lists the members of several nodes, node by node. all is false if they are too many for that.
func (l *listing) membersOfAll(ctx context.Context, nodes []docstore.Indexed) (entries []entry, all bool, err error) {
	const limit = 4 * chunk
	texts, err := l.textsOf(ctx, nodes, limit)
	if err != nil || len(texts) == limit {
		return nil, false, err
	}
	of := make(map[string][]entry, len(nodes))
	for _, t := range texts {
		s, _ := l.entry(t)
		of[s.node] = append(of[s.node], s)
	}
	entries = make([]entry, 0, len(texts))
	for _, n := range nodes {
		for _, s := range of[n.ID] {
			s.Path = n.Text
			entries = append(entries, s)
		}
	}
	return entries, true, nil
}

// textsOf reads the index entries of the memberships in several nodes that the query selects, up to a limit.
func (l *listing) textsOf(ctx context.Context, nodes []docstore.Indexed, limit int) ([]docstore.Indexed, error) {
	of := make([]docstore.Filter, len(nodes))
	for i, n := range nodes {
		of[i] = docstore.Prefix(l.index, l.prefix(n.ID))
	}
	return members.Texts(ctx, l.Store, l.index, docstore.Or(of...), limit)
}
