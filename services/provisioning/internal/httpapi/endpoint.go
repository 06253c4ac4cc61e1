package httpapi

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/people"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/filter"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/message"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/patch"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

type (
	selection = resource.Projection
	shownOne  = people.Shown
)

// endpoint is what one kind of resource can do.
type endpoint struct {
	kind    *schema.Resource
	example json.RawMessage
	post    func(context.Context, people.Call, selection, resource.Object) (shownOne, error)
	get     func(context.Context, people.Call, selection, string) (shownOne, error)
	put     func(context.Context, people.Call, selection, string, resource.Object) (shownOne, error)
	patch   func(context.Context, people.Call, selection, string, []patch.Operation) (shownOne, error)
	remove  func(context.Context, people.Call, string) error
	list    func(context.Context, people.Call, selection, message.Search) (message.List, error)
	// quiet: a PATCH is answered with 204, unless the request names attributes
	quiet   bool
	maxBody int // bytes; 0 means the server's default
}

func (a *api) users() endpoint {
	show := func(ctx context.Context, call people.Call, p selection, u *directory.User, err error) (
		shownOne, error,
	) {
		if err != nil {
			return shownOne{}, err
		}
		return a.Users.Show(ctx, call.Connection, p, u)
	}
	return endpoint{
		kind: schema.User, example: exampleUser,
		post: func(ctx context.Context, call people.Call, p selection, o resource.Object) (shownOne, error) {
			u, err := a.Users.Create(ctx, call, o)
			return show(ctx, call, p, u, err)
		},
		get: func(ctx context.Context, call people.Call, p selection, id string) (shownOne, error) {
			u, err := a.Users.Get(ctx, call.Connection, id)
			return show(ctx, call, p, u, err)
		},
		put: func(ctx context.Context, call people.Call, p selection, id string, o resource.Object) (
			shownOne, error,
		) {
			u, err := a.Users.Replace(ctx, call, id, o)
			return show(ctx, call, p, u, err)
		},
		patch: func(ctx context.Context, call people.Call, p selection, id string, ops []patch.Operation) (
			shownOne, error,
		) {
			u, err := a.Users.Patch(ctx, call, id, ops)
			return show(ctx, call, p, u, err)
		},
		remove: a.Users.Delete,
		list: func(ctx context.Context, call people.Call, p selection, s message.Search) (message.List, error) {
			kind := people.Kind(call.Connection)
			q, err := queryOf(kind, s)
			if err != nil {
				return message.List{}, err
			}
			return listOf(s, q, func(q directory.Query) (directory.Page[directory.User], error) {
				return directory.ListUsers(ctx, a.Store, call.Connection.ID, kind, q)
			}, func(u *directory.User) (shownOne, error) { return a.Users.Show(ctx, call.Connection, p, u) })
		},
	}
}

func (a *api) groups() endpoint {
	show := func(ctx context.Context, call people.Call, p selection, g *directory.Group, err error) (
		shownOne, error,
	) {
		if err != nil {
			return shownOne{}, err
		}
		return a.Groups.Shower(call.Connection, p, a.Base).Show(ctx, g)
	}
	return endpoint{
		kind: schema.Group, example: exampleGroup, quiet: true, maxBody: maxGroup,
		post: func(ctx context.Context, call people.Call, p selection, o resource.Object) (shownOne, error) {
			g, err := a.Groups.Create(ctx, call, o)
			return show(ctx, call, p, g, err)
		},
		get: func(ctx context.Context, call people.Call, p selection, id string) (shownOne, error) {
			g, err := a.Groups.Get(ctx, call.Connection, id)
			return show(ctx, call, p, g, err)
		},
		put: func(ctx context.Context, call people.Call, p selection, id string, o resource.Object) (
			shownOne, error,
		) {
			g, err := a.Groups.Replace(ctx, call, id, o)
			return show(ctx, call, p, g, err)
		},
		patch: func(ctx context.Context, call people.Call, p selection, id string, ops []patch.Operation) (
			shownOne, error,
		) {
			g, err := a.Groups.Patch(ctx, call, id, ops)
			if err != nil || p.IsDefault() {
				return shownOne{Tag: tagOf(g)}, err
			}
			return show(ctx, call, p, g, err)
		},
		remove: a.Groups.Delete,
		list: func(ctx context.Context, call people.Call, p selection, s message.Search) (message.List, error) {
			q, err := queryOf(schema.Group, s)
			if err != nil {
				return message.List{}, err
			}
			shower := a.Groups.Shower(call.Connection, p, a.Base)
			return listOf(s, q, func(q directory.Query) (directory.Page[directory.Group], error) {
				return a.Groups.List(ctx, call.Connection, q)
			}, func(g *directory.Group) (shownOne, error) { return shower.Show(ctx, g) })
		},
	}
}

// maxGroup is the size of a body that every group can be sent back in that an answer shows; see groups.MaxShown.
const maxGroup = 16 << 20 // bytes

func tagOf(g *directory.Group) string {
	if g == nil {
		return ""
	}
	return g.Tag()
}

func queryOf(kind *schema.Resource, s message.Search) (directory.Query, error) {
	q := directory.Query{
		FilterText: s.Filter, SortBy: s.SortBy, Descending: s.Descending, Start: s.StartIndex, Count: s.Count,
		Cursor: s.Cursor, HasCursor: s.HasCursor,
	}
	if strings.TrimSpace(s.Filter) == "" {
		return q, nil
	}
	var err error
	q.Filter, err = filter.Parse(kind, s.Filter)
	return q, err
}

// listOf makes the answer of a page. If the answer would be too large, it ends before the resource that makes it so:
// then it has fewer than asked, each of them whole.
func listOf[T any](
	s message.Search, q directory.Query, list func(directory.Query) (directory.Page[T], error),
	show func(*T) (shownOne, error),
) (message.List, error) {
	page, err := list(q)
	if err != nil {
		return message.List{}, err
	}
	items := make([]json.RawMessage, 0, len(page.Items))
	for i, item := range page.Items {
		shown, err := show(item)
		if scim.TypeOf(err) == scim.TooMany && i > 0 {
			if q.Most = i; q.HasCursor { // the next page begins here
				var again directory.Page[T]
				if again, err = list(q); err != nil {
					return message.List{}, err
				}
				page.Next = again.Next
			}
			break
		}
		if err != nil {
			return message.List{}, err
		}
		items = append(items, shown.JSON)
	}
	start := s.StartIndex
	if s.HasCursor {
		start = 0
	}
	return message.NewList(page.Total, start, page.Next, items), nil
}

var exampleUser = json.RawMessage(`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"1048577",` +
	`"externalId":"00u1","userName":"li.wei@acme.test","displayName":"李伟","active":true,` +
	`"emails":[{"value":"li.wei@acme.test","type":"work","primary":true}],"meta":{"resourceType":"User",` +
	`"created":"2026-01-31T09:30:00.000Z","lastModified":"2026-01-31T09:30:00.000Z",` +
	`"location":"https://id.example.com/scim/v2/Users/1048577","version":"W/\"1\""}}`)

// exampleGroup has no $ref at its member: readers of OpenAPI documents would follow it.
var exampleGroup = json.RawMessage(`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"id":"1048579",` +
	`"displayName":"Platform","members":[{"value":"1048577","type":"User","display":"李伟"}],` +
	`"meta":{"resourceType":"Group",` +
	`"created":"2026-01-31T09:30:00.000Z","lastModified":"2026-01-31T09:30:00.000Z",` +
	`"location":"https://id.example.com/scim/v2/Groups/1048579","version":"W/\"1-1\""}}`)
