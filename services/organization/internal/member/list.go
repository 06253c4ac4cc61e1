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
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
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

// Query asks for a page of the users who belong to a node.
type Query struct {
	NodeID    string
	Recursive bool   // or to one below it
	Role      string // with this role; "" = any
	Keyword   string // whom the users service finds by it; "" = all
	Limit     int
	Offset    int
	After     string // an earlier page's Next, instead of Offset
	Count     bool
}

// Page is a page of users, each with the node or nodes that make it one of them.
type Page struct {
	Items []json.RawMessage
	Total int64 // −1 = not counted
	Next  string
}

// MaxCounted is up to how many memberships below a node its users are counted, and how many are looked at for one page of those whom a
// common keyword finds: such a page may have fewer items than it could, and a Next. The cost of a page does not grow beyond it.
const MaxCounted = 10_000

// position is that of a user in the list: at the first membership in the order of nodes' paths and then of seq.
type position struct {
	Path  string `json:"p"`
	Order string `json:"o"`
}

func (a position) compare(b position) int {
	return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Order, b.Order))
}

// user is one item: a user's memberships that the query means, in order.
type user struct {
	at          position
	memberships []Doc
}

// Users lists the users who belong to a node. apperr.NotFound, InvalidParameters (page token), Unavailable.
func (s *Members) Users(ctx context.Context, q Query) (Page, error) {
	found, err := tree.Find(ctx, s.Store, q.NodeID)
	if err != nil {
		return Page{}, err
	}
	if found[q.NodeID] == nil {
		return Page{}, apperr.Missing("tree node")
	}
	if q.Role != "" && !role.MatchString(q.Role) { // nobody has it; and what stands behind roles in the index must not be taken for a part of it
		if !q.Count {
			return Page{Total: -1}, nil
		}
		return Page{}, nil
	}
	l := &listing{Members: s, Query: q, node: found[q.NodeID]}
	l.keep(l.node)
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
		page.Next = q.token(some[q.Limit-1].at)
	} else if l.stopped.Path != "" {
		page.Next = q.token(l.stopped)
	}
	if page.Items, err = l.items(ctx, some); err != nil {
		return Page{}, err
	}
	if !q.Count {
		page.Total = -1
	} else if q.Keyword == "" {
		page.Total, err = l.count(ctx)
	}
	return page, err
}

// listing is a Query at work.
type listing struct {
	*Members
	Query
	node    *tree.Node
	after   position
	stopped position // where a walk gave up before its page was full

	known map[string]*tree.Node // that were read for this query
}

// maxKnown bounds what a listing keeps: a walk may come by any number of nodes.
const maxKnown = 2000

// keep notes nodes that were read.
func (l *listing) keep(nodes ...*tree.Node) {
	if l.known == nil || len(l.known) > maxKnown {
		l.known = map[string]*tree.Node{}
	}
	for _, n := range nodes {
		l.known[n.ID] = n
	}
}

// find is tree.Find, but reads a node once.
func (l *listing) find(ctx context.Context, ids []string) (map[string]*tree.Node, error) {
	nodes := make(map[string]*tree.Node, len(ids))
	var unknown []string
	for _, id := range ids {
		if n := l.known[id]; n != nil {
			nodes[id] = n
		} else {
			unknown = append(unknown, id)
		}
	}
	found, err := tree.Find(ctx, l.Store, unknown...)
	maps.Copy(nodes, found)
	l.keep(slices.Collect(maps.Values(found))...)
	return nodes, err
}

// within says whether a node is one of those the query is about.
func (l *listing) within(n *tree.Node) bool {
	return n != nil && (n.ID == l.node.ID || l.Recursive && strings.HasPrefix(n.PathText(), l.node.PathText()))
}

// walk goes along the nodes that have members, and along the members of each, until the page is full, with one user more.
func (l *listing) walk(ctx context.Context) ([]user, error) {
	var page []user
	skip, want, looked := l.Offset, l.Limit+1, 0
	ahead := 8 // nodes read at once: a page needs few, unless most of their users were listed before
	node, from := l.node, ""
	behind := l.node.PathText() // nodes that come after
	if l.after.Path != "" {
		ids := strings.Split(strings.TrimSuffix(l.after.Path, "/"), "/")
		found, err := tree.Find(ctx, l.Store, ids[len(ids)-1])
		if err != nil {
			return nil, err
		}
		node, from, behind = found[ids[len(ids)-1]], l.after.Order, l.after.Path
		if node != nil && node.PathText() != l.after.Path { // moved meanwhile: its members are elsewhere in the list
			node = nil
		}
	}
	var queue []*tree.Node
	if node != nil {
		queue = []*tree.Node{node}
	}
	for {
		// Members of several nodes at a time, so that what else their users have is looked up at once.
		var some []Doc
		var at []position
		for len(some) < skip+want-len(page) && len(some) < 4*chunk {
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
				l.keep(next...)
				queue, behind, ahead = next, next[len(next)-1].PathText(), min(2*ahead, 128)
			}
			n := queue[0]
			docs, last, err := l.membersOf(ctx, n, from)
			if err != nil {
				return nil, err
			}
			for i := range docs {
				m, err := docs[i].Value()
				if err != nil {
					return nil, err
				}
				some, at = append(some, docs[i]), append(at, position{n.PathText(), m.order()})
			}
			if from = last; last == "" {
				queue = queue[1:]
			}
		}
		if len(some) == 0 {
			return page, nil
		}
		users, err := l.firsts(ctx, some, at)
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
			l.stopped = at[len(at)-1]
			return page, nil
		}
	}
}

// membersOf reads members of one node behind an order; last is where to go on, "" if there are no more.
func (l *listing) membersOf(ctx context.Context, n *tree.Node, from string) (docs []Doc, last string, err error) {
	index, prefix := byOrder, n.ID+"/"
	if l.Role != "" {
		index, prefix = byRole, prefix+l.Role+"/"
	}
	filter := docstore.Prefix(index, prefix)
	if from != "" { // an order is the node, then what stands behind the role too
		filter = docstore.And(filter, docstore.Above(index, prefix+strings.TrimPrefix(from, n.ID+"/")))
	}
	page, err := members.Page(ctx, l.Store, docstore.Query{Filter: filter, Sort: []docstore.Order{{Index: index}}, Limit: chunk})
	if err != nil || page.Next == "" {
		return page.Docs, "", err
	}
	m, err := page.Docs[len(page.Docs)-1].Value()
	if err != nil {
		return nil, "", err
	}
	return page.Docs, m.order(), nil
}

// firsts makes users of memberships: of a user with several in the query's nodes, only the first one counts.
func (l *listing) firsts(ctx context.Context, some []Doc, at []position) ([]user, error) {
	users := make([]user, 0, len(some))
	if !l.Recursive || l.node.ChildCount == 0 {
		for i := range some {
			users = append(users, user{at[i], some[i : i+1]})
		}
		return users, nil
	}
	ids := make([]string, len(some))
	for i := range some {
		m, err := some[i].Value()
		if err != nil {
			return nil, err
		}
		ids[i] = m.UserID
	}
	all, err := l.gather(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range some {
		if u := all[ids[i]]; u != nil && u.memberships[0].ID == some[i].ID {
			users = append(users, *u)
		}
	}
	return users, nil
}

// gather finds what each of the users has in the query's nodes.
func (l *listing) gather(ctx context.Context, ids []string) (map[string]*user, error) {
	keys := make([]docstore.Value, len(ids))
	for i, id := range ids {
		keys[i] = docstore.Text(inTree(id, l.node.ObjectCode))
	}
	var docs []Doc
	var places []string
	for part := range slices.Chunk(keys, chunk) {
		err := members.Each(ctx, l.Store, docstore.In(byUser, part...), func(d Doc) error {
			m, err := d.Value()
			if err == nil && (l.Role == "" || m.Role == l.Role) {
				docs, places = append(docs, d), append(places, m.NodeID)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	nodes, err := l.find(ctx, places)
	if err != nil {
		return nil, err
	}
	type membership struct {
		at  position
		doc Doc
	}
	of := map[string][]membership{}
	for _, d := range docs {
		m, err := d.Value()
		if err != nil {
			return nil, err
		}
		if n := nodes[m.NodeID]; l.within(n) {
			of[m.UserID] = append(of[m.UserID], membership{position{n.PathText(), m.order()}, d})
		}
	}
	users := make(map[string]*user, len(of))
	for id, has := range of {
		slices.SortFunc(has, func(a, b membership) int { return a.at.compare(b.at) })
		u := &user{at: has[0].at}
		for _, m := range has {
			u.memberships = append(u.memberships, m.doc)
		}
		users[id] = u
	}
	return users, nil
}

// most is how many ids the users service is asked about, or answers, at once.
const most = 1000

// ask asks the users service whom a keyword finds, among ids if these are not nil.
func (l *listing) ask(ctx context.Context, ids []string) (found []string, more bool, err error) {
	type question struct {
		Keyword string   `json:"keyword"`
		IDs     []string `json:"ids"`
		Limit   int      `json:"limit"`
	}
	type answer struct {
		IDs  []string `json:"ids"`
		More bool     `json:"more"`
	}
	a, err := bus.Ask[answer](ctx, l.Bus, "users", "matching", question{l.Keyword, ids, most})
	return a.IDs, a.More, err
}

// found keeps the users whom the keyword finds.
func (l *listing) found(ctx context.Context, users []user) ([]user, error) {
	ids := make([]string, len(users))
	for i := range users {
		m, err := users[i].memberships[0].Value()
		if err != nil {
			return nil, err
		}
		ids[i] = m.UserID
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
		all, err := l.userIDs(ctx)
		if err != nil || all == nil {
			return nil, -1, false, err
		}
		ids = nil
		for part := range slices.Chunk(all, most) {
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
	users := make([]user, 0, len(all))
	for _, u := range all {
		users = append(users, *u)
	}
	slices.SortFunc(users, func(a, b user) int { return a.at.compare(b.at) })
	total = int64(len(users))
	if l.after.Path != "" {
		users = slices.DeleteFunc(users, func(u user) bool { return u.at.compare(l.after) <= 0 })
	}
	users = users[min(l.Offset, len(users)):]
	return users[:min(l.Limit+1, len(users))], total, true, nil
}

// count counts the query's users, −1 if there may be more than MaxCounted.
func (l *listing) count(ctx context.Context) (int64, error) {
	if !l.Recursive || l.node.ChildCount == 0 {
		if l.Role == "" {
			return l.node.MemberCount, nil
		}
		return members.Count(ctx, l.Store, docstore.Prefix(byRole, l.node.ID+"/"+l.Role+"/"))
	}
	ids, err := l.userIDs(ctx)
	if ids == nil {
		return -1, err
	}
	return int64(len(ids)), err
}

// userIDs returns the ids of the query's users, sorted; nil if there may be more than MaxCounted.
func (l *listing) userIDs(ctx context.Context) ([]string, error) {
	nodes, err := l.populated(ctx)
	if nodes == nil {
		return nil, err
	}
	ids := []string{}
	for _, n := range nodes {
		index, prefix := byOrder, n.ID+"/"
		if l.Role != "" {
			index, prefix = byRole, prefix+l.Role+"/"
		}
		err := members.Each(ctx, l.Store, docstore.Prefix(index, prefix), func(d Doc) error {
			m, err := d.Value()
			if err == nil {
				ids = append(ids, m.UserID)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// populated returns the query's nodes that may have members; nil if they have more than MaxCounted, which is found without reading these, and
// for large trees without reading the nodes.
func (l *listing) populated(ctx context.Context) ([]*tree.Node, error) {
	nodes := []*tree.Node{l.node}
	left := MaxCounted - l.node.MemberCount
	if left < 0 {
		return nil, nil
	}
	if !l.Recursive {
		return nodes, nil
	}
	many, err := tree.PopulatedMore(ctx, l.Store, l.node.Path, MaxCounted)
	if err != nil || many {
		return nil, err
	}
	for {
		const chunk = 500
		next, err := tree.Populated(ctx, l.Store, l.node.Path, nodes[len(nodes)-1].PathText(), chunk)
		if err != nil {
			return nil, err
		}
		for _, n := range next {
			if left -= n.MemberCount; left < 0 {
				return nil, nil
			}
		}
		if nodes = append(nodes, next...); len(next) < chunk {
			return nodes, nil
		}
	}
}

// items makes what clients see: the user's first membership, with the names of all nodes above, and a list of all that count.
func (l *listing) items(ctx context.Context, users []user) ([]json.RawMessage, error) {
	firsts := make([]Doc, len(users))
	for i, u := range users {
		firsts[i] = u.memberships[0]
	}
	named, err := names(ctx, l.find, firsts)
	if err != nil {
		return nil, err
	}
	items := make([]json.RawMessage, 0, len(users))
	for i := range users {
		m, err := firsts[i].Value()
		if err != nil {
			return nil, err
		}
		node := named.nodes[m.NodeID]
		if node == nil { // removed in between
			continue
		}
		first, err := named.shown(&firsts[i], node)
		if err != nil {
			return nil, err
		}
		places, err := l.places(ctx, users[i].memberships)
		if err != nil {
			return nil, err
		}
		items = append(items, splice(first, places))
	}
	return items, nil
}

// places is the member that lists a user's memberships.
func (l *listing) places(ctx context.Context, memberships []Doc) ([]byte, error) {
	type place struct {
		ID      string `json:"id"`
		NodeID  string `json:"node_id"`
		Name    string `json:"node_name"`
		Role    string `json:"role"`
		Title   string `json:"title"`
		Primary string `json:"is_primary"`
		Dynamic bool   `json:"dynamic"`
	}
	ids := make([]string, len(memberships))
	places := make([]place, 0, len(memberships))
	for i := range memberships {
		m, err := memberships[i].Value()
		if err != nil {
			return nil, err
		}
		ids[i] = m.NodeID
	}
	nodes, err := l.find(ctx, ids) // they were read to find the memberships
	if err != nil {
		return nil, err
	}
	for i := range memberships {
		m, err := memberships[i].Value()
		if err != nil {
			return nil, err
		}
		if n := nodes[m.NodeID]; n != nil {
			places = append(places, place{m.ID, n.ID, n.Name, m.Role, m.Title, m.IsPrimary, m.Dynamic})
		}
	}
	return json.Marshal(map[string]any{"nodes": places})
}

func (q Query) fingerprint() uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %t %q %q", q.NodeID, q.Recursive, q.Role, q.Keyword)
	return h.Sum64()
}

type token struct {
	Query uint64 `json:"q"`
	position
}

func (q Query) token(at position) string {
	b, _ := json.Marshal(token{q.fingerprint(), at}) // plain values always marshal
	return base64.RawURLEncoding.EncodeToString(b)
}

func (q Query) position() (position, error) {
	var t token
	b, err := base64.RawURLEncoding.DecodeString(q.After)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil || t.Path == "" || t.Order == "" {
		return position{}, apperr.Invalid("query.page_token", "is not a page token of this list")
	}
	if t.Query != q.fingerprint() {
		return position{}, apperr.Invalid("query.page_token", "was made with another filter or sort")
	}
	return t.position, nil
}
