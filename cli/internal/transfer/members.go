package transfer

import (
	"context"
	"net/url"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

func members() *Kind {
	return &Kind{
		Noun: "members", Things: "members", Short: "Who belongs to which node", Conflicts: []string{fail, skip, update},
		Conflict: "update changes the membership of the same user in the same node.",
		Filters:  []Filter{{"tree", "only members of the tree with this code"}},
		Notes:    "node is tree/code, such as company/rd, or an id; user a username, email, mobile or id.",
		ImportExample: "  idp members import members.csv --map Dept=node --map Person=user\n" +
			"  idp members import members.jsonl --on-conflict skip --dry-run",
		ExportExample: "  idp members export members.csv\n  idp members export --tree company -o jsonl",
		ImportScopes:  "organization:write, organization:read, users:read",
		ExportScopes:  "organization:read, users:read",
		columns: []column{
			{name: "node"}, {name: "user"}, {name: "role"}, {name: "title"}, {name: "seq", form: number},
			{name: "is_primary"},
		},
		send: func(ctx context.Context, i *importer) error { return i.sendBatches(ctx, memberBatches{}) },
		read: readMembers,
	}
}

// memberBatches makes requests for memberships.
type memberBatches struct{}

func (memberBatches) group(records []*record) [][]int { return [][]int{all(records)} }
func (memberBatches) done([]*record)                  {}

func (memberBatches) names(records []*record) []name {
	var names []name
	for _, r := range records {
		names = append(names, name{aNode, r.text("node")}, name{aUser, r.text("user")})
	}
	return names
}

func (memberBatches) request(records []*record, found ids) request {
	out := request{operation: "add-tree-users", faults: map[int]fault{}, about: aboutItems}
	items := make([]any, len(records))
	for n, r := range records {
		node, noNode := found.of(name{aNode, r.text("node")})
		user, noUser := found.of(name{aUser, r.text("user")})
		if reason := both(noNode, noUser); reason != "" {
			out.faults[n] = fault{reason: reason}
			continue
		}
		item := without(r, "node", "user")
		item["node_id"], item["user_id"] = quoted(node), quoted(user)
		items[n] = item
	}
	out.body = map[string]any{"items": items}
	return out
}

// change makes the request that changes a membership.
func (memberBatches) change(
	ctx context.Context, i *importer, r *record, found ids,
) (calls []*session.Call, reason string, err error) {
	item := without(r, "node", "user")
	query := url.Values{"user_id": {found[name{aUser, r.text("user")}.key()]}}
	id := ""
	err = i.patiently(ctx, func() error {
		return pages(ctx, i.Session, "list-tree-users", nil, query, func(all []output.Object) error {
			for _, m := range all {
				if m.Text("node_id") == found[name{aNode, r.text("node")}.key()] && m.Text("dynamic") != "true" {
					id = m.Text("id")
				}
			}
			return nil
		})
	}, func() bool { return false })
	if err == nil && id == "" {
		reason = "has just been removed by somebody else: import it again"
	}
	return patched("update-tree-user", id, item, len(item)), reason, err
}

// readMembers exports the memberships of all nodes that have some by hand.
func readMembers(ctx context.Context, s *session.Session, filters map[string]string, out *writer) error {
	trees, err := treesOf(ctx, s, filters["tree"])
	if err != nil {
		return err
	}
	for _, tree := range trees {
		query := url.Values{"object_code": {tree.code}, "page_sort": {"depth"}}
		err := pages(ctx, s, "list-tree-nodes", nil, query, func(page []output.Object) error {
			for _, node := range page {
				if node.Text("member_count") == "0" || node.Text("is_dynamic") == "1" {
					continue
				}
				if err := readNodeMembers(ctx, s, node, out); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func readNodeMembers(ctx context.Context, s *session.Session, node output.Object, out *writer) error {
	of := nodeName{node.Text("object_code"), node.Text("code")}.name()
	return pages(ctx, s, "list-tree-node-users", []string{node.Text("id")}, nil, func(page []output.Object) error {
		usernames, err := usernamesOf(ctx, s, page, "user_id")
		if err != nil {
			return err
		}
		for _, m := range page {
			username := usernames[m.Text("user_id")]
			if username == "" || m.Text("dynamic") == "true" {
				continue // the user has just been deleted
			}
			line := output.Object{{Name: "node", Value: of}, {Name: "user", Value: username}}
			for _, member := range m {
				if member.Name != "seq" || output.Text(member.Value) != "0" {
					line = append(line, member)
				}
			}
			if err := out.write(line); err != nil {
				return err
			}
		}
		return nil
	})
}

// usernamesOf finds the usernames of a page's users.
func usernamesOf(
	ctx context.Context, s *session.Session, page []output.Object, member string,
) (map[string]string, error) {
	seen := map[string]bool{}
	var wanted []string
	for _, record := range page {
		if id := record.Text(member); !seen[id] {
			seen[id] = true
			wanted = append(wanted, id)
		}
	}
	return usernames(ctx, s, wanted)
}

// usernames finds the usernames of users: a question for each two hundred.
func usernames(ctx context.Context, s *session.Session, wanted []string) (map[string]string, error) {
	found := map[string]string{}
	for from := 0; from < len(wanted); from += listedIDs {
		part := wanted[from:min(from+listedIDs, len(wanted))]
		query := url.Values{"ids": {strings.Join(part, ",")}}
		err := pages(ctx, s, "list-users", nil, query, func(users []output.Object) error {
			for _, user := range users {
				found[user.Text("id")] = user.Text("username")
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

const listedIDs = 200 // that a list of users takes
