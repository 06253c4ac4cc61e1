package member

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
	"github.com/idplatform/idplatform/services/questions"
)

// OfUser returns the memberships of a user in all trees.
func (s *Members) OfUser(ctx context.Context, userID string) ([]Shown, error) {
	return ofUser(ctx, s.Store, userID)
}

func ofUser(ctx context.Context, r docstore.Reader, userID string) ([]Shown, error) {
	page, err := members.Page(ctx, r, docstore.Query{
		Filter: docstore.Prefix(byUser, userID+"/"), Sort: []docstore.Order{{Index: byUser}},
		Limit: mostOfUser,
	})
	if err != nil {
		return nil, err
	}
	return show(ctx, r, page.Docs...)
}

// Filter selects the users who belong to a node.
type Filter struct {
	NodeID    string
	Recursive bool   // including the nodes below it
	Role      string // with this role; "" means any
	Keyword   string // only users that the users service finds by it; "" means all
}

// query is a Filter with the requested page.
type query struct {
	Filter
	Limit  int
	Offset int
	After  string // the Next of an earlier page, instead of Offset
	Count  bool
}

// newQuery returns apperr.InvalidParameters at page_num or page_sort.
func newQuery(f Filter, p docstore.Paging) (query, error) {
	q, err := p.Query(docstore.Filter{}, "seq")
	if err == nil && q.Sort[0].Desc {
		err = apperr.Invalid("page_sort", "must be seq[asc]: there is no other order")
	}
	return query{Filter: f, Limit: q.Limit, Offset: q.Offset, After: q.After, Count: q.Count}, err
}

// Page is a page of users, each with the node or nodes of their memberships.
type Page struct {
	Items []json.RawMessage
	Total int64 // −1 means not counted
	More  bool  // there are more than Total
	Next  string
}

// MaxCounted is how many memberships below a node are counted, and how many are read for one page of users with a
// common keyword; such a page may have fewer items than asked for, and a Next nevertheless. It bounds the cost of a
// page.
const MaxCounted = 10_000

// position is the place of a user in the list: that of the first membership, in the order of nodes' paths and then of
// seq.
type position struct {
	Path  string `json:"p"`
	Order string `json:"o"` // Membership.within
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

// Users lists the users who belong to a node. The error is apperr.NotFound, InvalidParameters (paging) or Unavailable.
func (s *Members) Users(ctx context.Context, f Filter, p docstore.Paging) (Page, error) {
	q, err := newQuery(f, p)
	if err != nil {
		return Page{}, err
	}
	found, err := tree.Find(ctx, s.Store, q.NodeID)
	if err != nil {
		return Page{}, err
	}
	if found[q.NodeID] == nil {
		return Page{}, apperr.Missing("tree node")
	}
	// Nobody has such a role, and the text must not match what follows the role in the index.
	if q.Role != "" && !isRole(q.Role) {
		if !q.Count {
			return Page{Total: -1}, nil
		}
		return Page{}, nil
	}
	l, err := newListing(s, q, found[q.NodeID])
	if err != nil {
		return Page{}, err
	}
	page := Page{Total: -1}
	few := false
	var listed []user
	if q.Keyword != "" {
		listed, page.Total, few, err = l.matching(ctx)
	}
	if err == nil && !few {
		listed, err = l.walk(ctx)
	}
	if err != nil {
		return Page{}, err
	}
	if len(listed) > q.Limit {
		listed = listed[:q.Limit]
		page.Next = q.token(listed[q.Limit-1][0].position)
	} else if l.stopped.Path != "" {
		page.Next = q.token(l.stopped)
	}
	if page.Items, err = l.items(ctx, listed); err != nil {
		return Page{}, err
	}
	switch {
	case !q.Count:
		page.Total = -1
	case q.Keyword == "":
		page.Total, page.More, err = l.count(ctx)
	case !few: // the number that the walk has passed
		page.Total, page.More = int64(l.Offset+len(page.Items)), page.Next != "" || q.After != "" || len(listed) == 0 &&
			l.Offset > 0
	}
	return page, err
}

// listing is a running query. It finds its page by indexes alone, and then reads the documents of the page.
type listing struct {
	*Members
	query
	index   string // byOrder or byRole
	node    *tree.Node
	after   position
	stopped position // where a walk stopped before its page was full

	nodes map[string]*tree.Node // nodes that were read for this query
	paths map[string]string     // paths that were read, by node
}

func newListing(s *Members, q query, node *tree.Node) (*listing, error) {
	l := &listing{Members: s, query: q, node: node, index: byOrder, nodes: map[string]*tree.Node{node.ID: node},
		paths: map[string]string{}}
	if q.Role != "" {
		l.index = byRole
	}
	if q.After == "" {
		return l, nil
	}
	l.Offset = 0
	var err error
	l.after, err = q.position()
	return l, err
}

// maxPaths bounds the size of paths: a walk may pass any number of nodes.
const maxPaths = 5000

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
	from   string             // the order after which to read members of the first node of the queue
	behind string             // the path after which further nodes follow
	ahead  int                // how many further nodes to look up together
	ready  []entry            // memberships that were read, but not taken yet
}

// walker begins after the position at which the former page ended.
func (l *listing) walker(ctx context.Context) (*walker, error) {
	// A page needs few nodes, unless most of their users were listed before.
	w := &walker{listing: l, behind: l.node.PathText(), ahead: 8}
	if l.after.Path == "" {
		w.queue = []docstore.Indexed{{ID: l.node.ID, Text: w.behind}}
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
		if !w.Recursive {
			return false, nil
		}
		next, err := tree.Populated(ctx, w.Store, w.node.Path, w.behind, w.ahead)
		if err != nil || len(next) == 0 {
			return false, err
		}
		w.behind, w.ahead = next[len(next)-1].Text, min(2*w.ahead, 128)
		entries, all, err := w.membersOfAll(ctx, next)
		if err != nil {
			return false, err
		}
		if w.ready = entries; all {
			return true, nil
		}
		w.queue = next // one node at a time
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

// maxIDs is the largest number of ids in a question to the users service, and in its answer.
const maxIDs = 1000

// ask asks the users service which users a keyword finds, among ids if that is not nil.
func (l *listing) ask(ctx context.Context, ids []string) (found []string, more bool, err error) {
	a, err := questions.MatchingUsers.Ask(ctx, l.Bus, questions.Search{Keyword: l.Keyword, IDs: ids, Limit: maxIDs})
	return a.IDs, a.More, err
}

// found keeps the users that the keyword finds.
func (l *listing) found(ctx context.Context, users []user) ([]user, error) {
	ids := make([]string, len(users))
	for i := range users {
		ids[i] = users[i][0].user
	}
	wanted := map[string]bool{}
	for part := range slices.Chunk(ids, maxIDs) {
		listed, _, err := l.ask(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, id := range listed {
			wanted[id] = true
		}
	}
	kept := users[:0]
	for i := range users {
		if wanted[ids[i]] {
			kept = append(kept, users[i])
		}
	}
	return kept, nil
}

// matching returns the page of the users whom the keyword finds, and their total, if it finds few users or the node has
// few. Otherwise few is false, and the page must be found by a walk.
func (l *listing) matching(ctx context.Context) (page []user, total int64, few bool, err error) {
	ids, more, err := l.ask(ctx, nil)
	if err != nil {
		return nil, -1, false, err
	}
	if more {
		users, all, err := l.userIDs(ctx)
		if err != nil || !all {
			return nil, -1, false, err
		}
		ids = nil
		for part := range slices.Chunk(users, maxIDs) {
			listed, _, err := l.ask(ctx, part)
			if err != nil {
				return nil, -1, false, err
			}
			ids = append(ids, listed...)
		}
	}
	all, err := l.gather(ctx, ids)
	if err != nil {
		return nil, -1, false, err
	}
	users := slices.SortedFunc(maps.Values(all), func(a, b user) int { return a[0].compare(b[0].position) })
	total = int64(len(users))
	if l.after.Path != "" {
		users = slices.DeleteFunc(users, func(u user) bool { return u[0].compare(l.after) <= 0 })
	}
	users = users[min(l.Offset, len(users)):]
	return users[:min(l.Limit+1, len(users))], total, true, nil
}

// count counts the query's users. more reports that there may be others, in memberships beyond MaxCounted.
func (l *listing) count(ctx context.Context) (total int64, more bool, err error) {
	if !l.Recursive || l.node.ChildCount == 0 {
		if l.Role == "" {
			return l.node.MemberCount, false, nil
		}
		page, err := members.Page(ctx, l.Store, docstore.Query{Filter: docstore.Prefix(byRole,
			l.node.ID+"/"+l.Role+"/"), Limit: 1, Count: true})
		return page.Total, page.More, err
	}
	ids, all, err := l.userIDs(ctx)
	return int64(len(ids)), !all, err
}

// userIDs returns the sorted ids of the query's users. all is false if they are only those of the first MaxCounted
// memberships.
func (l *listing) userIDs(ctx context.Context) (ids []string, all bool, err error) {
	ids, all = []string{}, true
	nodes := []docstore.Indexed{{ID: l.node.ID, Text: l.node.PathText()}}
	behind, ahead := l.node.PathText(), chunk
	for len(nodes) > 0 {
		texts, err := l.textsOf(ctx, nodes, MaxCounted+1-len(ids))
		if err != nil {
			return nil, false, err
		}
		for _, t := range texts {
			s, _ := l.entry(t)
			ids = append(ids, s.user)
		}
		if len(ids) > MaxCounted {
			ids, all = ids[:MaxCounted], false
			break
		}
		if !l.Recursive {
			break
		}
		if nodes, err = tree.Populated(ctx, l.Store, l.node.Path, behind, ahead); err != nil {
			return nil, false, err
		}
		if len(nodes) > 0 {
			behind = nodes[len(nodes)-1].Text
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), all, nil
}

// items makes what clients see: the user's first membership, with the names of all nodes above, and a list of all
// selected memberships.
func (l *listing) items(ctx context.Context, users []user) ([]json.RawMessage, error) {
	var ids, places []string
	for _, u := range users {
		for _, s := range u {
			ids, places = append(ids, s.id), append(places, s.node)
		}
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
	if len(unknown) > 0 {
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

func (q query) fingerprint() uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %t %q %q", q.NodeID, q.Recursive, q.Role, q.Keyword)
	return h.Sum64()
}

type token struct {
	Query uint64 `json:"q"`
	position
}

func (q query) token(at position) string {
	b, _ := json.Marshal(token{q.fingerprint(), at}) // cannot fail
	return base64.RawURLEncoding.EncodeToString(b)
}

func (q query) position() (position, error) {
	var t token
	b, err := base64.RawURLEncoding.DecodeString(q.After)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil || t.Path == "" || t.Order == "" {
		return position{}, apperr.Invalid("page_token", "is not a page token of this list")
	}
	if t.Query != q.fingerprint() {
		return position{}, apperr.Invalid("page_token", "was made with another filter or sort")
	}
	return t.position, nil
}
