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
		Filter: docstore.Prefix(byUser, userID+"/"), Sort: []docstore.Order{{Index: byUser}}, Limit: 2 * (MaxOfUser + tree.MaxDynamic),
	})
	if err != nil {
		return nil, err
	}
	return show(ctx, r, page.Docs...)
}

// Filter selects the users who belong to a node.
type Filter struct {
	NodeID    string
	Recursive bool   // or to one below it
	Role      string // with this role; "" = any
	Keyword   string // whom the users service finds by it; "" = all
}

// query is a Filter and the page that is asked for.
type query struct {
	Filter
	Limit  int
	Offset int
	After  string // an earlier page's Next, instead of Offset
	Count  bool
}

// newQuery is apperr.InvalidParameters at page_num or page_sort.
func newQuery(f Filter, p docstore.Paging) (query, error) {
	q, err := p.Query(docstore.Filter{}, "seq")
	if err == nil && q.Sort[0].Desc {
		err = apperr.Invalid("page_sort", "must be seq[asc]: that is the only order")
	}
	return query{Filter: f, Limit: q.Limit, Offset: q.Offset, After: q.After, Count: q.Count}, err
}

// Page is a page of users, each with the node or nodes that make it one of them.
type Page struct {
	Items []json.RawMessage
	Total int64 // −1 = not counted
	More  bool  // there are more than Total
	Next  string
}

// MaxCounted is up to how many memberships below a node its users are counted, and how many are looked at for one page of those whom a
// common keyword finds: such a page may have fewer items than it could, and a Next. The cost of a page does not grow beyond it.
const MaxCounted = 10_000

// position is that of a user in the list: at the first membership in the order of nodes' paths and then of seq.
type position struct {
	Path  string `json:"p"`
	Order string `json:"o"` // Membership.within
}

func (a position) compare(b position) int {
	return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Order, b.Order))
}

// spot is what an index knows of a membership, and where its node is.
type spot struct {
	position
	id, node, user string
}

// user is one item: a user's memberships that the query means, in order.
type user []spot

// Users lists the users who belong to a node. apperr.NotFound, InvalidParameters (paging), Unavailable.
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
	if q.Role != "" && !isRole(q.Role) { // nobody has it; and what stands behind roles in the index must not be taken for a part of it
		if !q.Count {
			return Page{Total: -1}, nil
		}
		return Page{}, nil
	}
	l := &listing{Members: s, query: q, node: found[q.NodeID], index: byOrder, nodes: found, paths: map[string]string{}}
	if q.Role != "" {
		l.index = byRole
	}
	if q.After != "" {
		if l.after, err = q.position(); err != nil {
			return Page{}, err
		}
		l.Offset = 0
	}
	page := Page{Total: -1}
	few := false
	var some []user
	if q.Keyword != "" {
		some, page.Total, few, err = l.matching(ctx)
	}
	if err == nil && !few {
		some, err = l.walk(ctx)
	}
	if err != nil {
		return Page{}, err
	}
	if len(some) > q.Limit {
		some = some[:q.Limit]
		page.Next = q.token(some[q.Limit-1][0].position)
	} else if l.stopped.Path != "" {
		page.Next = q.token(l.stopped)
	}
	if page.Items, err = l.items(ctx, some); err != nil {
		return Page{}, err
	}
	switch {
	case !q.Count:
		page.Total = -1
	case q.Keyword == "":
		page.Total, page.More, err = l.count(ctx)
	case !few: // those that were come by
		page.Total, page.More = int64(l.Offset+len(page.Items)), page.Next != "" || q.After != "" || len(some) == 0 &&
			l.Offset > 0
	}
	return page, err
}

// listing is a query at work. It finds its page by indexes alone, and then reads what is on it.
type listing struct {
	*Members
	query
	index   string // byOrder or byRole
	node    *tree.Node
	after   position
	stopped position // where a walk gave up before its page was full

	nodes map[string]*tree.Node // that were read for this query
	paths map[string]string     // by node, that were read
}

// maxPaths bounds what a listing keeps: a walk may come by any number of nodes.
const maxPaths = 5000

// spot reads an index entry; ok says that the membership has the query's role.
func (l *listing) spot(e docstore.Indexed) (s spot, ok bool) {
	node, rest, _ := strings.Cut(e.Text, "/")
	if l.Role != "" {
		var role string
		if role, rest, _ = strings.Cut(rest, "/"); role != l.Role {
			return spot{}, false
		}
	}
	_, user, _ := strings.Cut(rest, "/"+e.ID+"/")
	return spot{position{Order: rest}, e.ID, node, user}, true
}

// prefix begins the index entries of a node's memberships that the query means.
func (l *listing) prefix(nodeID string) string {
	if l.Role != "" {
		return nodeID + "/" + l.Role + "/"
	}
	return nodeID + "/"
}

// placed sets the paths of spots, and leaves out those whose nodes are none of the query's.
func (l *listing) placed(ctx context.Context, spots []spot) ([]spot, error) {
	if len(l.paths) > maxPaths {
		clear(l.paths)
	}
	var unknown []string
	for _, s := range spots {
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
	within := spots[:0]
	for _, s := range spots {
		s.Path = l.paths[s.node]
		if s.node == l.node.ID || l.Recursive && strings.HasPrefix(s.Path, top) {
			within = append(within, s)
		}
	}
	return within, nil
}

// walk goes along the nodes that have members, and along the members of each, until the page is full, with one user more.
func (l *listing) walk(ctx context.Context) ([]user, error) {
	var page []user
	skip, want, looked := l.Offset, l.Limit+1, 0
	ahead := 8 // nodes looked up at once: a page needs few, unless most of their users were listed before
	queue, from := []docstore.Indexed{{ID: l.node.ID, Text: l.node.PathText()}}, ""
	behind := l.node.PathText() // nodes that come after
	if l.after.Path != "" {
		path := strings.Split(l.after.Path, "/")
		id := path[max(len(path)-2, 0)]
		paths, err := tree.Paths(ctx, l.Store, id)
		if err != nil {
			return nil, err
		}
		behind = l.after.Path
		if queue = nil; paths[id] == l.after.Path { // else it was moved or removed meanwhile: its members are elsewhere in the list
			queue, from = []docstore.Indexed{{ID: id, Text: l.after.Path}}, l.after.Order
		}
	}
	var ready []spot // listed, to be looked at next
	least := 0       // where most users were listed before, more and more members are looked at, at once
	for {
		// Members of several nodes at a time, so that what else their users have is looked up at once.
		var some []spot
		enough := min(max(skip+want-len(page), least), 4*chunk)
		for len(some) < enough {
			if n := min(enough-len(some), len(ready)); n > 0 {
				some, ready = append(some, ready[:n]...), ready[n:]
				continue
			}
			if len(queue) == 0 {
				if !l.Recursive {
					break
				}
				next, err := tree.Populated(ctx, l.Store, l.node.Path, behind, ahead)
				if err != nil {
					return nil, err
				}
				if len(next) == 0 {
					break
				}
				behind, ahead = next[len(next)-1].Text, min(2*ahead, 128)
				spots, all, err := l.membersOfAll(ctx, next)
				if err != nil {
					return nil, err
				}
				if ready = spots; all {
					continue
				}
				queue = next // one by one
			}
			spots, last, err := l.membersOf(ctx, queue[0], from, chunk)
			if err != nil {
				return nil, err
			}
			ready = spots
			if from = last; last == "" {
				queue = queue[1:]
			}
		}
		if len(some) == 0 {
			return page, nil
		}
		users, err := l.firsts(ctx, some)
		if least = 0; len(users) < len(some)/2 {
			least = 2 * len(some)
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
		if looked += len(some); l.Keyword != "" && looked >= MaxCounted {
			l.stopped = some[len(some)-1].position
			return page, nil
		}
	}
}

// membersOf lists members of one node behind an order; last is where to go on, "" if there are no more.
func (l *listing) membersOf(ctx context.Context, node docstore.Indexed, from string, limit int) (spots []spot, last string, err error) {
	prefix := l.prefix(node.ID)
	filter := docstore.Prefix(l.index, prefix)
	if from != "" {
		filter = docstore.And(filter, docstore.Above(l.index, prefix+from))
	}
	texts, err := members.Texts(ctx, l.Store, l.index, filter, limit)
	if err != nil {
		return nil, "", err
	}
	spots = make([]spot, len(texts))
	for i, t := range texts {
		spots[i], _ = l.spot(t)
		spots[i].Path = node.Text
	}
	if len(spots) == limit {
		last = spots[limit-1].Order
	}
	return spots, last, nil
}

// membersOfAll lists the members of several nodes, one node's after the other's; all is false if they are too many for that.
func (l *listing) membersOfAll(ctx context.Context, nodes []docstore.Indexed) (spots []spot, all bool, err error) {
	const most = 4 * chunk
	texts, err := l.textsOf(ctx, nodes, most)
	if err != nil || len(texts) == most {
		return nil, false, err
	}
	of := make(map[string][]spot, len(nodes))
	for _, t := range texts {
		s, _ := l.spot(t)
		of[s.node] = append(of[s.node], s)
	}
	spots = make([]spot, 0, len(texts))
	for _, n := range nodes {
		for _, s := range of[n.ID] {
			s.Path = n.Text
			spots = append(spots, s)
		}
	}
	return spots, true, nil
}

// textsOf reads the index entries of several nodes' memberships that the query means, at most so many.
func (l *listing) textsOf(ctx context.Context, nodes []docstore.Indexed, limit int) ([]docstore.Indexed, error) {
	of := make([]docstore.Filter, len(nodes))
	for i, n := range nodes {
		of[i] = docstore.Prefix(l.index, l.prefix(n.ID))
	}
	return members.Texts(ctx, l.Store, l.index, docstore.Or(of...), limit)
}

// firsts makes users of memberships: of a user with several in the query's nodes, only the first one counts.
func (l *listing) firsts(ctx context.Context, some []spot) ([]user, error) {
	users := make([]user, 0, len(some))
	if !l.Recursive || l.node.ChildCount == 0 {
		for i := range some {
			users = append(users, some[i:i+1])
		}
		return users, nil
	}
	ids := make([]string, len(some))
	for i := range some {
		ids[i] = some[i].user
	}
	all, err := l.gather(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range some {
		if u := all[ids[i]]; u != nil && u[0].id == some[i].id {
			users = append(users, u)
		}
	}
	return users, nil
}

// gather finds what each of the users has in the query's nodes.
func (l *listing) gather(ctx context.Context, ids []string) (map[string]user, error) {
	keys := make([]docstore.Value, len(ids))
	for i, id := range ids {
		keys[i] = docstore.Text(inTree(id, l.node.ObjectCode))
	}
	var spots []spot
	for part := range slices.Chunk(keys, chunk) {
		texts, err := members.Texts(ctx, l.Store, l.index, docstore.In(byUser, part...), len(part)*2*(MaxOfUser+tree.MaxDynamic))
		if err != nil {
			return nil, err
		}
		for _, t := range texts {
			if s, ok := l.spot(t); ok {
				spots = append(spots, s)
			}
		}
	}
	spots, err := l.placed(ctx, spots)
	if err != nil {
		return nil, err
	}
	users := make(map[string]user, len(ids))
	for _, s := range spots {
		users[s.user] = append(users[s.user], s)
	}
	for _, u := range users {
		slices.SortFunc(u, func(a, b spot) int { return a.compare(b.position) })
	}
	return users, nil
}

// most is how many ids the users service is asked about, or answers, at once.
const most = 1000

// ask asks the users service whom a keyword finds, among ids if these are not nil.
func (l *listing) ask(ctx context.Context, ids []string) (found []string, more bool, err error) {
	a, err := questions.MatchingUsers.Ask(ctx, l.Bus, questions.Search{Keyword: l.Keyword, IDs: ids, Limit: most})
	return a.IDs, a.More, err
}

// found keeps the users whom the keyword finds.
func (l *listing) found(ctx context.Context, users []user) ([]user, error) {
	ids := make([]string, len(users))
	for i := range users {
		ids[i] = users[i][0].user
	}
	wanted := map[string]bool{}
	for part := range slices.Chunk(ids, most) {
		some, _, err := l.ask(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, id := range some {
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

// matching finds the page of those whom the users service finds by the keyword, and their total, if it finds few, or the node has few
// users to ask about. If few is false, the page is to be found by a walk.
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
		for part := range slices.Chunk(users, most) {
			some, _, err := l.ask(ctx, part)
			if err != nil {
				return nil, -1, false, err
			}
			ids = append(ids, some...)
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

// count counts the query's users; more says that there may be others, in memberships beyond MaxCounted.
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

// userIDs returns the ids of the query's users, sorted; all is false if they are those of the first MaxCounted
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
			s, _ := l.spot(t)
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

// items makes what clients see: the user's first membership, with the names of all nodes above, and a list of all that count.
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
			if d, ok := byID[s.id]; ok && l.nodes[s.node] != nil { // else it has ended in between
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

// find is tree.Find, but reads a node once.
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

// places is the member that lists a user's memberships.
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
	b, _ := json.Marshal(token{q.fingerprint(), at}) // plain values always marshal
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
