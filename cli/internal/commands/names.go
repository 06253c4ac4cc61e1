package commands

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// statusColumn says in words what the members status 1 and 0 say.
var statusColumn = output.Column{Title: "STATUS", Of: func(o output.Object) string {
	switch status := o.Text("status"); status {
	case "1":
		return "enabled"
	case "0":
		return "disabled"
	default:
		return status
	}
}}

// yesColumn shows yes for 1, and nothing for 0.
func yesColumn(title, member string) output.Column {
	return output.Column{Title: title, Of: func(o output.Object) string {
		if o.Text(member) == "1" {
			return "yes"
		}
		return ""
	}}
}

// timeColumn shows a time to the second, in UTC as the API has it.
func timeColumn(title, member string) output.Column {
	return output.Column{Title: title, Of: func(o output.Object) string {
		text := o.Text(member)
		if seconds, _, hasMillis := strings.Cut(text, "."); hasMillis {
			return seconds + "Z"
		}
		return text
	}}
}

// eitherColumn shows the first of members that the record has: a name that was joined, or else the id.
func eitherColumn(title string, members ...string) output.Column {
	return output.Column{Title: title, Of: func(o output.Object) string {
		for _, member := range members {
			if text := o.Text(member); text != "" {
				return text
			}
		}
		return ""
	}}
}

// idsOf are the different values of a member.
func idsOf(items []output.Object, member string) []string {
	var out []string
	for _, item := range items {
		if id := item.Text(member); id != "" && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// joinUsers adds username and display_name to items that have a user_id.
func joinUsers(ctx context.Context, s *session.Session, items []output.Object) error {
	users, err := usersByID(ctx, s, idsOf(items, "user_id"))
	for i, item := range items {
		if user, ok := users[item.Text("user_id")]; ok {
			items[i] = append(item, output.Member{Name: "username", Value: user.Username},
				output.Member{Name: "display_name", Value: user.DisplayName})
		}
	}
	return err
}

// joinNodes adds the name of the node whose id a member has, such as company/rd, as the member to.
func joinNodes(ctx context.Context, s *session.Session, items []output.Object, member, to string) error {
	nodes, err := nodeNames(ctx, s, idsOf(items, member))
	for i, item := range items {
		if name, ok := nodes[item.Text(member)]; ok {
			items[i] = append(item, output.Member{Name: to, Value: name})
		}
	}
	return err
}

// joinApplications adds what the applications are called whose ids a member has, as the member application.
func joinApplications(ctx context.Context, s *session.Session, items []output.Object, member string) error {
	names, err := applicationNames(ctx, s, idsOf(items, member))
	for i, item := range items {
		if name, ok := names[item.Text(member)]; ok {
			items[i] = append(item, output.Member{Name: "application", Value: name})
		}
	}
	return err
}

// usersByID reads users.
func usersByID(ctx context.Context, s *session.Session, ids []string) (map[string]idp.User, error) {
	client, err := s.Client()
	out := map[string]idp.User{}
	for chunk := range slices.Chunk(ids, 200) {
		if err != nil {
			return out, err
		}
		var page *idp.UserList
		page, err = client.ListUsers(ctx, idp.ListUsersParams{
			Ids: strings.Join(chunk, ","), PageSize: int64(len(chunk)), Count: new(false),
		})
		if err == nil {
			for _, user := range page.Items {
				out[user.ID] = user
			}
		}
	}
	return out, failure.WithScope(err, "users:read")
}

// nodeNames reads what nodes are called: company/rd.
func nodeNames(ctx context.Context, s *session.Session, ids []string) (map[string]string, error) {
	client, err := s.Client()
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	found, err := client.CheckTreeNodes(ctx, idp.CheckTreeNodesRequest{Type: "id", Ids: ids})
	out := map[string]string{}
	for id, node := range found {
		if node.ID != "" {
			out[id] = node.ObjectCode + "/" + node.Code
		}
	}
	return out, failure.WithScope(err, "organization:read")
}

const atOnce = 8 // requests for records that can only be read one by one

// recordsByID reads records one by one. Those that are gone are left out.
func recordsByID(
	ctx context.Context, s *session.Session, operation string, ids []string,
) (map[string]output.Object, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	o := session.Operation(operation)
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		out   = map[string]output.Object{}
		fault error
		slots = make(chan struct{}, atOnce)
	)
	for _, id := range ids {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			value, err := get(ctx, client, strings.Replace(o.Path, "{id}", url.PathEscape(id), 1), nil, o.Scope)
			mu.Lock()
			defer mu.Unlock()
			switch record, isRecord := value.(output.Object); {
			case isRecord && err == nil:
				out[id] = record
			case err != nil && idp.CodeOf(err) != idp.CodeNotFound:
				fault = err
			}
		})
	}
	all.Wait()
	return out, fault
}
