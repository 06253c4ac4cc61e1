package member

import (
	"context"
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/organization/internal/tree"
)

// OfUser returns the memberships of a user in all trees.
func (s *Members) OfUser(ctx context.Context, userID string) ([]Shown, error) {
	return ofUser(ctx, s.Store, userID)
}

func ofUser(ctx context.Context, r docstore.Reader, userID string) ([]Shown, error) {
	docs, err := docsOfUser(ctx, r, userID)
	if err != nil {
		return nil, err
	}
	return show(ctx, r, docs...)
}

func docsOfUser(ctx context.Context, r docstore.Reader, userID string) ([]Doc, error) {
	page, err := members.Page(ctx, r, docstore.Query{
		Filter: docstore.Prefix(byUser, userID+"/"), Sort: []docstore.Order{{Index: byUser}},
		Limit: mostOfUser,
	})
	return page.Docs, err
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

// MaxCounted is up to how many users below a node are counted, and how many memberships are read for one page of users
// with a common keyword; such a page may have fewer items than asked for, and a Next nevertheless. It bounds the cost
// of a page.
const MaxCounted = 10_000

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
	// The members of a pointer are those of its target. A list of all that is below a node follows no pointers.
	if n := found[q.NodeID]; n != nil && n.IsPointer == "1" && !q.Recursive {
		q.NodeID = n.PointerID
		if found, err = tree.Find(ctx, s.Store, q.NodeID); err != nil {
			return Page{}, err
		}
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
	l, err := newListing(ctx, s, q, found[q.NodeID])
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
		page.Next = l.token(ctx, listed[q.Limit-1][0].position)
	} else if l.stopped.Path != "" {
		page.Next = l.token(ctx, l.stopped)
	}
	if page.Items, err = l.items(ctx, listed); err != nil {
		return Page{}, err
	}
	switch {
	case !q.Count:
		page.Total = -1
	case l.passedAll(listed, page.Next):
		page.Total = int64(l.Offset + len(listed))
	case q.Keyword == "":
		page.Total, page.More, err = l.count(ctx)
	case !few: // the number that the walk has passed
		page.Total, page.More = int64(l.Offset+len(page.Items)), page.Next != "" || q.After != "" || len(listed) == 0 &&
			l.Offset > 0
	}
	return page, err
}

// passedAll reports whether the walk began with the first user and ended with the last, so that it has counted them.
func (l *listing) passedAll(listed []user, next string) bool {
	return l.Keyword == "" && l.query.After == "" && next == "" && (len(listed) > 0 || l.Offset == 0) &&
		l.Offset+len(listed) <= MaxCounted
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

func newListing(ctx context.Context, s *Members, q query, node *tree.Node) (*listing, error) {
	l := &listing{Members: s, query: q, node: node, index: byOrder, nodes: map[string]*tree.Node{node.ID: node},
		paths: map[string]string{node.ID: node.PathText()}}
	if q.Role != "" {
		l.index = byRole
	}
	if q.After == "" {
		return l, nil
	}
	l.Offset = 0
	var err error
	l.after, err = l.position(ctx)
	return l, err
}
