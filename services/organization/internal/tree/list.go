package tree

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// Filter selects nodes of one tree.
type Filter struct {
	ObjectCode string        `query:"object_code" required:"true" minLength:"1" maxLength:"128" doc:"The code of the tree's core object" example:"company"`
	ParentID   string        `query:"parent_id" maxLength:"64" doc:"Only nodes below this one"`
	Recursive  docstore.Flag `query:"recursive" doc:"With parent_id: all nodes below it, not only its children"`
	Depth      int           `query:"depth" minimum:"1" maximum:"64" doc:"At most this many levels below parent_id, or below the root"`
	Code       string        `query:"code" maxLength:"256" doc:"The exact code"`
	Name       string        `query:"name" maxLength:"256" doc:"A part of the name; case and width are ignored" example:"平台"`
	Status     string        `query:"status" enum:"1,0"`
	Tag        string        `query:"tag" maxLength:"64" doc:"The exact tag"`
	docstore.Paging
}

// selection is a Filter whose tree has been found.
type selection struct {
	docstore.Filter
	siblings bool  // it selects among the children of one node, which have an index of their own
	total    int64 // how many nodes it selects, if a record has that number; otherwise −1
}

// List returns a page of nodes. The error is apperr.NotFound (no such tree, or no such parent in it) or
// InvalidParameters (paging).
func (s *Trees) List(ctx context.Context, f Filter) (docstore.Page[Node], error) {
	selected, err := s.selected(ctx, f)
	if err != nil {
		return docstore.Page[Node]{}, err
	}
	return s.page(ctx, selected, f.Paging)
}

// ListBelow returns a page of the nodes below one, at most depth levels deep if depth is not 0. The error is
// apperr.NotFound or InvalidParameters (paging).
func (s *Trees) ListBelow(ctx context.Context, id string, depth int, p docstore.Paging) (docstore.Page[Node], error) {
	n, err := s.find(ctx, id)
	if err != nil {
		return docstore.Page[Node]{}, err
	}
	return s.page(ctx, below(n, depth, depth == 0), p)
}

func (s *Trees) selected(ctx context.Context, f Filter) (selection, error) {
	o, err := ObjectByCode(ctx, s.Store, f.ObjectCode)
	if err != nil {
		return selection{}, err
	}
	root := o.RootNodeID + "/"
	selected := selection{Filter: docstore.Prefix(byPath, root), total: o.NodeCount}
	if f.ParentID != "" {
		parent, err := s.find(ctx, f.ParentID)
		if err != nil {
			return selection{}, err
		}
		if parent.ObjectCode != f.ObjectCode {
			return selection{}, apperr.Missing("tree node")
		}
		selected = below(parent, f.Depth, f.Recursive.Or(false))
	} else if f.Depth > 0 {
		selected = selection{Filter: docstore.And(selected.Filter,
			docstore.Until(byDepth, docstore.Number(int64(f.Depth)+1))), total: -1}
	} else if f.Code != "" || f.Name != "" {
		selected.Filter = docstore.Filter{} // the conditions below select the tree, too
	}
	with := func(filter docstore.Filter) {
		selected.Filter, selected.total = docstore.And(selected.Filter, filter), -1
	}
	if f.Code != "" {
		with(docstore.Eq(byCode, docstore.Text(root+f.Code)))
	}
	if f.Name != "" {
		with(textindex.Containing(byNameGram, byName, root, textindex.Key(f.Name)))
	}
	if f.Status != "" {
		with(docstore.Eq(byStatus, docstore.Text(f.Status)))
	}
	if f.Tag != "" {
		with(docstore.Eq(byTag, docstore.Text(f.Tag)))
	}
	return selected, nil
}

func below(n *Node, depth int, recursive bool) selection {
	if depth == 1 || depth == 0 && !recursive {
		return selection{Filter: docstore.Prefix(bySibling, n.ID+"/"), siblings: true, total: n.ChildCount}
	}
	all := docstore.And(docstore.Prefix(byPath, n.PathText()), docstore.Above(byPath, n.PathText()))
	if depth > 0 {
		all = docstore.And(all, docstore.Until(byDepth, docstore.Number(int64(n.Depth+depth)+1)))
	}
	return selection{Filter: all, total: -1}
}

func (s *Trees) page(ctx context.Context, selected selection, p docstore.Paging) (docstore.Page[Node], error) {
	q, err := p.Query(selected.Filter, sortable...)
	if err != nil {
		return docstore.Page[Node]{}, err
	}
	count := q.Count
	q.Count = count && selected.total < 0
	if selected.siblings {
		for i := range q.Sort {
			if q.Sort[i].Index == bySeq {
				q.Sort[i].Index = bySibling
			}
		}
	}
	page, err := nodes.Page(ctx, s.Store, q)
	if count && selected.total >= 0 {
		page.Total = selected.total
	}
	return page, err
}

func (s *Trees) find(ctx context.Context, id string) (*Node, error) {
	doc, err := nodes.Find(ctx, s.Store, id)
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// Ancestors returns the nodes above one, from its parent up to the root. The error is apperr.NotFound.
func (s *Trees) Ancestors(ctx context.Context, id string) ([]Doc, error) {
	n, err := s.find(ctx, id)
	if err != nil || n.Depth == 0 {
		return nil, err
	}
	docs, err := nodes.FindMany(ctx, s.Store, n.Path[:n.Depth])
	if err != nil {
		return nil, err
	}
	place := map[string]int{}
	for i, id := range n.Path {
		place[id] = i
	}
	slices.SortFunc(docs, func(a, b Doc) int { return cmp.Compare(place[b.ID], place[a.ID]) })
	return docs, nil
}

// Reference says how Check identifies nodes.
type Reference string

// The references. A code is that of the core object, a slash, and that of the node.
const (
	ByID   Reference = "id"
	ByCode Reference = "code"
	ByARN  Reference = "arn"
)

// Check finds nodes by their names, which are ids, codes or ARNs. The answer leaves out names without a node.
func (s *Trees) Check(ctx context.Context, kind Reference, names []string) (map[string]Doc, error) {
	wanted := map[string][]string{} // from an id or an index value to the names
	objectIDs := map[string]string{}
	for _, name := range names {
		switch kind {
		case ByID:
			wanted[name] = []string{name}
		case ByARN:
			if rest, ok := strings.CutPrefix(name, "arn:idp:"+request.Tenant(ctx)+":org:"); ok {
				id := rest[strings.LastIndexByte(rest, ':')+1:]
				wanted[id] = append(wanted[id], name)
			}
		case ByCode:
			object, code, ok := strings.Cut(name, "/")
			if !ok {
				continue
			}
			if _, seen := objectIDs[object]; !seen {
				o, err := ObjectByCode(ctx, s.Store, object)
				switch {
				case apperr.IsNotFound(err):
					objectIDs[object] = ""
				case err != nil:
					return nil, err
				default:
					objectIDs[object] = o.RootNodeID
				}
			}
			if root := objectIDs[object]; root != "" {
				wanted[root+"/"+code] = []string{name}
			}
		}
	}
	docs, err := s.named(ctx, kind, slices.Sorted(maps.Keys(wanted)))
	if err != nil {
		return nil, err
	}
	found := make(map[string]Doc, len(docs))
	for i := range docs {
		n, err := docs[i].Value()
		if err != nil {
			return nil, err
		}
		key := n.ID
		if kind == ByCode {
			key = n.root() + n.Code
		}
		for _, name := range wanted[key] {
			if kind != ByARN || n.ARN == name {
				found[name] = docs[i]
			}
		}
	}
	return found, nil
}

func (s *Trees) named(ctx context.Context, kind Reference, keys []string) ([]Doc, error) {
	if kind != ByCode {
		return nodes.FindMany(ctx, s.Store, keys)
	}
	var all []Doc
	for part := range slices.Chunk(keys, 200) {
		values := make([]docstore.Value, len(part))
		for i, key := range part {
			values[i] = docstore.Text(key)
		}
		page, err := nodes.Page(ctx, s.Store, docstore.Query{Filter: docstore.In(byCode, values...), Limit: len(part)})
		if err != nil {
			return nil, err
		}
		all = append(all, page.Docs...)
	}
	return all, nil
}

// Find returns those nodes that exist, by id.
func Find(ctx context.Context, r docstore.Reader, ids ...string) (map[string]*Node, error) {
	docs, err := nodes.FindMany(ctx, r, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*Node, len(docs))
	for i := range docs {
		if found[docs[i].ID], err = docs[i].Value(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// maxPointers bounds the pointers that are followed at once.
const maxPointers = 1000

// PointersTo returns the nodes that stand for one of the nodes. It is an error if they are more than 1,000: whoever
// asks must not take a part of them for all.
func PointersTo(ctx context.Context, s *docstore.Store, ids []string) ([]*Node, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	values := make([]docstore.Value, len(ids))
	for i, id := range ids {
		values[i] = docstore.Text(id)
	}
	page, err := nodes.Page(ctx, s, docstore.Query{Filter: docstore.In(byPointer, values...), Limit: maxPointers})
	if err != nil {
		return nil, err
	}
	if page.Next != "" {
		return nil, fmt.Errorf("more than %d pointers lead to %d nodes", maxPointers, len(ids))
	}
	found := make([]*Node, len(page.Docs))
	for i := range page.Docs {
		if found[i], err = page.Docs[i].Value(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Paths returns the PathText of the nodes that exist, by id.
func Paths(ctx context.Context, r docstore.Reader, ids ...string) (map[string]string, error) {
	texts, err := nodes.Texts(ctx, r, byPath, docstore.ID(ids...), len(ids))
	paths := make(map[string]string, len(texts))
	for _, t := range texts {
		paths[t.ID] = t.Text
	}
	return paths, err
}

// Populated returns the PathText of the nodes at and below a path that have members, in order, after the text behind.
func Populated(ctx context.Context, r docstore.Reader, path []string, behind string, limit int) ([]docstore.Indexed,
	error) {
	filter := docstore.Prefix(byPopulated, pathText(path))
	if behind != "" {
		filter = docstore.And(filter, docstore.Above(byPopulated, behind))
	}
	return nodes.Texts(ctx, r, byPopulated, filter, limit)
}

// DynamicNodes returns all dynamic nodes of the tenant.
func DynamicNodes(ctx context.Context, r docstore.Reader) ([]*Node, error) {
	return values(nodes.Page(ctx, r, docstore.Query{Filter: docstore.Eq(byDynamic, docstore.Text("1")),
		Limit: 2 * MaxDynamic}))
}

func values(page docstore.Page[Node], err error) ([]*Node, error) {
	if err != nil {
		return nil, err
	}
	all := make([]*Node, len(page.Docs))
	for i := range page.Docs {
		if all[i], err = page.Docs[i].Value(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Load returns the nodes that exist, by id, loaded in a transaction that changes their members: see CountMembers.
func Load(ctx context.Context, tx *docstore.Tx, ids ...string) (map[string]*Node, error) {
	loaded, err := nodes.LoadMany(ctx, tx, ids)
	found := make(map[string]*Node, len(loaded))
	for _, n := range loaded {
		found[n.ID] = n
	}
	return found, err
}

// CountMembers adds to the number of members of a loaded node. Every transaction that adds or ends memberships must
// call it, so that the node is not deleted meanwhile.
func CountMembers(ctx context.Context, tx *docstore.Tx, n *Node, more int64) error {
	n.MemberCount += more
	_, err := nodes.Replace(ctx, tx, n)
	return err
}
