package directory

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/filter"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// Query selects a page of resources.
type Query struct {
	Filter     filter.Node // nil: all
	FilterText string      // of which Filter was made
	SortBy     string      // a path; "": in the order of ids
	Descending bool
	Start      int64 // from 1
	Count      int
	Most       int // fewer than Count, of a page that is read again because it is too large; 0: Count
	Cursor     string
	HasCursor  bool
}

func (q Query) most() int {
	if q.Most > 0 {
		return min(q.Most, q.Count)
	}
	return q.Count
}

// Page is a page of resources.
type Page[T any] struct {
	Items []*T
	Total int64
	Next  string // the cursor of the next page, if the query has one; "" on the last
}

// MaxTested is how many resources a filter is tested on that no index serves.
const MaxTested = 10_000

// lister lists resources of one kind.
type lister[T any] struct {
	docs   *docstore.Collection[T]
	kind   *schema.Resource
	texts  []text[T]
	sorts  []string // paths
	lists  []string // paths that byValue has
	object func(*T) (resource.Object, error)
	id     func(*T) string
	// related looks up by the other kind: the members of groups, and the groups of users.
	related   string
	relatedTo func(ctx context.Context, s *docstore.Store, connectionID, id string) ([]string, error)
}

var userLister = lister[User]{
	docs: users, kind: schema.User, texts: userTexts, lists: valued,
	sorts: []string{
		"userName", "displayName", "externalId", "name.familyName", "id", "meta.created", "meta.lastModified",
	},
	object: func(u *User) (resource.Object, error) { return u.Resource(schema.User, viewless) },
	id:     func(u *User) string { return u.ID }, related: "groups.value",
	relatedTo: func(ctx context.Context, s *docstore.Store, connectionID, id string) ([]string, error) {
		if _, err := GetGroup(ctx, s, connectionID, id); err != nil {
			return nil, err
		}
		ids, more, err := MembersOf(ctx, s, id, MaxTested)
		if err == nil && more {
			err = errTooMany
		}
		return ids, err
	},
}

var groupLister = lister[Group]{
	docs: groups, kind: schema.Group, texts: groupTexts,
	sorts:  []string{"displayName", "externalId", "id", "meta.created", "meta.lastModified"},
	object: func(g *Group) (resource.Object, error) { return g.Resource([]string{g.ID}, memberless), nil },
	id:     func(g *Group) string { return g.ID }, related: "members.value",
	relatedTo: func(ctx context.Context, s *docstore.Store, connectionID, id string) ([]string, error) {
		if _, err := GetUser(ctx, s, connectionID, id); err != nil {
			return nil, err
		}
		return NodesOf(ctx, s, id, maxGroupsOf)
	},
}

var errTooMany = scim.Invalid(scim.TooMany, "filter", "must be tested on more than %d resources; narrow it by an "+
	"indexed attribute", MaxTested)

// ListUsers returns a page of the users that a connection sees. Its errors have type invalidFilter, tooMany,
// invalidValue (sortBy), invalidCursor or invalidCount. kind has the connection's extensions.
func ListUsers(ctx context.Context, s *docstore.Store, connectionID string, kind *schema.Resource, q Query) (
	Page[User], error,
) {
	l := userLister
	l.kind = kind
	l.object = func(u *User) (resource.Object, error) { return u.Resource(kind, viewless) }
	return l.list(ctx, s, connectionID, q)
}

// ListGroups is ListUsers for groups.
func ListGroups(ctx context.Context, s *docstore.Store, connectionID string, q Query) (Page[Group], error) {
	return groupLister.list(ctx, s, connectionID, q)
}

func (l *lister[T]) list(ctx context.Context, s *docstore.Store, connectionID string, q Query) (Page[T], error) {
	order, err := l.order(q)
	if err != nil {
		return Page[T]{}, err
	}
	at, err := readCursor(q)
	if err != nil {
		return Page[T]{}, err
	}
	where, rest, err := l.plan(ctx, s, connectionID, q.Filter)
	if err != nil {
		return Page[T]{}, err
	}
	if rest != nil {
		return l.tested(ctx, s, q, where, order, at, rest)
	}
	page := Page[T]{}
	if page.Total, err = l.docs.Count(ctx, s, where); err != nil || q.Count == 0 {
		return page, err
	}
	query := docstore.Query{Filter: where, Sort: order, Limit: q.most(), After: at.Token}
	if !q.HasCursor {
		if q.Start > page.Total {
			return page, nil
		}
		query.Offset = int(q.Start - 1)
	}
	found, err := l.docs.Page(ctx, s, query)
	if apperr.KindOf(err) == apperr.InvalidParameters {
		return page, scim.Invalid(scim.InvalidCursor, "cursor", "is not one of this list")
	}
	if err != nil {
		return page, err
	}
	for i := range found.Docs {
		item, err := found.Docs[i].Value()
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, item)
	}
	if q.HasCursor && found.Next != "" {
		page.Next = writeCursor(q, cursor{Token: found.Next})
	}
	return page, nil
}

// tested lists what a filter selects that must be tested on each candidate.
func (l *lister[T]) tested(
	ctx context.Context, s *docstore.Store, q Query, where docstore.Filter, order []docstore.Order, at cursor,
	rest filter.Node,
) (Page[T], error) {
	n, err := l.docs.CountTo(ctx, s, where, MaxTested)
	if err != nil {
		return Page[T]{}, err
	}
	if n.More || n.N > MaxTested {
		return Page[T]{}, errTooMany
	}
	var all []*T
	for after := ""; ; {
		found, err := l.docs.Page(ctx, s, docstore.Query{Filter: where, Sort: order, Limit: 1000, After: after})
		if err != nil {
			return Page[T]{}, err
		}
		for i := range found.Docs {
			item, err := found.Docs[i].Value()
			if err != nil {
				return Page[T]{}, err
			}
			o, err := l.object(item)
			if err != nil {
				return Page[T]{}, err
			}
			if filter.Match(rest, o) {
				all = append(all, item)
			}
		}
		if after = found.Next; after == "" {
			break
		}
	}
	return l.cut(q, all, at), nil
}

// cut leaves the page of all that was selected.
func (l *lister[T]) cut(q Query, all []*T, at cursor) Page[T] {
	page := Page[T]{Total: int64(len(all))}
	from := int(min(q.Start-1, int64(len(all))))
	if q.HasCursor {
		from = 0
		for at.ID != "" && from < len(all) && !l.after(q, all[from], at) {
			from++
		}
	}
	to := min(from+q.most(), len(all))
	page.Items = all[from:to]
	if q.HasCursor && to < len(all) && to > from {
		last := all[to-1]
		page.Next = writeCursor(q, cursor{Key: l.key(q, last), ID: l.id(last)})
	}
	return page
}

// after reports whether an item comes after a place in the order of the query.
func (l *lister[T]) after(q Query, item *T, at cursor) bool {
	c := cmp.Or(cmp.Compare(l.key(q, item), at.Key), cmp.Compare(l.id(item), at.ID))
	if q.Descending && q.SortBy != "" {
		c = -c
	}
	return c > 0
}

func (l *lister[T]) key(q Query, item *T) string {
	if t := l.text(q.SortBy); t != nil {
		return t.of(item)
	}
	return ""
}

// text returns what indexes a path; nil if nothing does.
func (l *lister[T]) text(path string) *text[T] {
	p, ok := l.kind.Find(path)
	if !ok {
		return nil
	}
	for i := range l.texts {
		if l.texts[i].path == p.String() {
			return &l.texts[i]
		}
	}
	return nil
}

func (l *lister[T]) order(q Query) ([]docstore.Order, error) {
	if q.SortBy == "" {
		return nil, nil
	}
	t := l.text(q.SortBy)
	if t == nil || !slices.Contains(l.sorts, t.path) {
		return nil, scim.Invalid(scim.InvalidValue, "sortBy", "must be one of %s", strings.Join(l.sorts, ", "))
	}
	return []docstore.Order{{Index: t.index, Desc: q.Descending}}, nil
}

// plan returns what indexes select, and what must be tested on it; nil if nothing.
func (l *lister[T]) plan(
	ctx context.Context, s *docstore.Store, connectionID string, n filter.Node,
) (docstore.Filter, filter.Node, error) {
	all := docstore.Eq(byLive, docstore.Text(connectionID))
	p := filter.MakePlan(n, func(path schema.Path) bool {
		return l.text(path.String()) != nil || slices.Contains(l.lists, path.String()) || path.String() == l.related
	})
	if err := l.refuse(p.Rest); err != nil {
		return all, nil, err
	}
	if p.Served == nil {
		return all, p.Rest, nil
	}
	v := server[T]{l, ctx, s, connectionID, false}
	served, ok, err := v.serve(p.Served)
	switch {
	case err != nil:
		return all, nil, err
	case !ok: // a range of what is only looked up
		return all, n, l.refuse(n)
	case v.byID || p.Rest != nil:
		return docstore.And(all, served), p.Rest, nil
	}
	return served, nil, nil
}

// refuse refuses to test resources on what they do not have in the copy: it would select nothing.
func (l *lister[T]) refuse(n filter.Node) error {
	if n == nil {
		return nil
	}
	name, _, _ := strings.Cut(l.related, ".")
	var err error
	filter.Paths(n, func(p schema.Path, _ *filter.Compare) {
		if p.Extension == "" && p.Attribute != nil && p.Attribute.Name == name {
			err = scim.Invalid(scim.InvalidFilter, "filter", "can compare %s by eq only, joined with others by and",
				l.related)
		}
	})
	return err
}
