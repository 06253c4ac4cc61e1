package commands

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

var primaryColumn = yesColumn("PRIMARY", "is_primary")

var dynamicColumn = output.Column{Title: "BY", Of: func(o output.Object) string {
	if o.Text("dynamic") == "true" {
		return "condition"
	}
	return "hand"
}}

// memberView is of the members of a node: whom they are.
var memberView = output.View{
	Columns: []output.Column{
		eitherColumn("USER", "username", "user_id"), output.MemberColumn("display_name"),
		eitherColumn("NODE", "node", "node_name"), output.MemberColumn("role"), output.MemberColumn("title"),
		primaryColumn,
	},
	Wide: append([]output.Column{dynamicColumn}, columns("id", "user_id", "node_id", "seq", "time_created")...),
	Name: "user_id",
}

var groupMemberView = output.View{
	Columns: []output.Column{eitherColumn("USER", "username", "user_id"), output.MemberColumn("display_name")},
	Wide:    columns("id", "user_id", "time_created"), Name: "user_id",
}

// placeView is of the memberships of a user: where they are.
var placeView = output.View{
	Columns: []output.Column{
		eitherColumn("NODE", "node", "node_name"), output.MemberColumn("node_path"), output.MemberColumn("role"),
		output.MemberColumn("title"), primaryColumn,
	},
	Wide: append([]output.Column{dynamicColumn}, columns("id", "node_id", "seq", "time_created")...),
	Name: "node_id",
}

// membersCommands makes the commands for who belongs where: to nodes, and to groups.
func membersCommands(a *App) *cobra.Command {
	return group("members", "Who belongs where: list, add, move, remove",
		listMembers(a),
		a.operation(operation{
			use: "of USER", short: "List where a user belongs, in all trees", operation: "list-tree-users",
			view: placeView, arguments: 1, path: noPath, complete: a.words(knownUsers), without: []string{"user_id"},
			query: queryOf("user_id", userID),
			join:  joinPlaces, example: "  idp members of li.wei",
		}),
		addMembers(a),
		a.operation(operation{
			use: "update NODE USER", short: "Change a membership: role, title, primary", operation: "update-tree-user",
			view: placeView, arguments: 2, path: membershipOf, complete: a.words(knownNodes, knownUsers),
			without: []string{"node_id", "user_id"},
			example: "  idp members update company/rd li.wei --role lead\n" +
				"  idp members update company/rd li.wei --is-primary 1 --if-version 2",
		}),
		moveMember(a), removeMember(a),
	)
}

// listMembers lists the members of a node, or of a group.
func listMembers(a *App) *cobra.Command {
	command := a.operation(operation{
		use: "list NODE|group:NAME", short: "List the members of a node or a group",
		operation: "list-tree-node-users", view: memberView, arguments: 1, path: firstOf(rootOrNode),
		complete: a.words(knownNodes), join: joinMembers,
		example: "  idp members list company/rd --recursive\n  idp members list company/rd --role lead -o csv\n" +
			"  idp members list group:auditors",
	})
	return a.orGroup(command, func(ctx context.Context, s *session.Session, args []string) error {
		id, err := unitID(ctx, s, args[0])
		if err != nil {
			return err
		}
		return s.Run(ctx, &session.Call{
			Operation: session.Operation("list-auth-unit-members"), Path: []string{id}, View: groupMemberView,
			Join: func(ctx context.Context, items []output.Object) error { return joinUsers(ctx, s, items) },
		})
	})
}

// orGroup makes a command for nodes do something else for a group, without the flags that are for nodes.
func (a *App) orGroup(command *cobra.Command, do action) *cobra.Command {
	ofNode, ofGroup := command.RunE, a.run(do)
	command.RunE = func(command *cobra.Command, args []string) error {
		if !strings.HasPrefix(args[0], groupPrefix) {
			return ofNode(command, args)
		}
		var wrong error
		command.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.Changed {
				wrong = failure.Usagef("--%s is for nodes", flag.Name)
			}
		})
		if wrong != nil {
			return wrong
		}
		return ofGroup(command, args)
	}
	return command
}

// joinPlaces adds what nodes are called.
func joinPlaces(ctx context.Context, s *session.Session, items []output.Object) error {
	return joinNodes(ctx, s, items, "node_id", "node")
}

// joinMembers adds what users and nodes are called.
func joinMembers(ctx context.Context, s *session.Session, items []output.Object) error {
	if err := joinPlaces(ctx, s, items); err != nil {
		return err
	}
	return joinUsers(ctx, s, items)
}

// membership is what members add gives to each user.
type membership struct {
	UserID    string `json:"user_id"`
	NodeID    string `json:"node_id"`
	Role      string `json:"role,omitempty"`
	Title     string `json:"title,omitempty"`
	IsPrimary string `json:"is_primary,omitempty"`
}

func addMembers(a *App) *cobra.Command {
	of, primary := membership{}, false
	command := &cobra.Command{
		Use: "add NODE|group:NAME USER...", Short: "Add users to a node or a group, all or none", Args: atLeast(2),
		Long: "Add users to a node or a group, all or none. A user's first membership in a tree is primary.\n\n" +
			"Scope: organization:write; for a group permissions:write",
		Example: "  idp members add company/rd li.wei --role lead --primary\n" +
			"  idp members add company/rd li.wei wang.fang --dry-run\n  idp members add group:auditors li.wei",
		ValidArgsFunction: a.words(knownNodes, knownUsers),
	}
	flags := command.Flags()
	flags.StringVar(&of.Role, "role", "", "in the node: member if absent")
	flags.StringVar(&of.Title, "title", "", "in the node, such as 架构师")
	flags.BoolVar(&primary, "primary", false, "make the node the primary one in its tree")
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		ids, err := userIDs(ctx, s, args[1:])
		if err != nil {
			return err
		}
		if strings.HasPrefix(args[0], groupPrefix) {
			if of != (membership{}) || primary {
				return failure.Usagef("--role, --title and --primary are for nodes")
			}
			return addToGroup(ctx, s, args[0], ids)
		}
		if of.NodeID, err = rootOrNode(ctx, s, args[0]); err != nil {
			return err
		}
		if primary {
			of.IsPrimary = "1"
		}
		var items []membership
		for _, id := range ids {
			of.UserID = id
			items = append(items, of)
		}
		body, err := json.Marshal(map[string]any{"items": items})
		if err != nil {
			return err
		}
		return s.Run(ctx, &session.Call{
			Operation: session.Operation("add-tree-users"), Body: body, View: memberView,
			Join: func(ctx context.Context, items []output.Object) error { return joinMembers(ctx, s, items) },
		})
	})
	return command
}

func addToGroup(ctx context.Context, s *session.Session, group string, users []string) error {
	id, err := unitID(ctx, s, group)
	if err != nil {
		return err
	}
	body, err := json.Marshal(idp.AddAuthUnitMembersRequest{UserIds: users})
	if err != nil {
		return err
	}
	return s.Run(ctx, &session.Call{
		Operation: session.Operation("add-auth-unit-members"), Path: []string{id}, Body: body,
		View: groupMemberView,
		Join: func(ctx context.Context, items []output.Object) error { return joinUsers(ctx, s, items) },
	})
}

func userIDs(ctx context.Context, s *session.Session, names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		id, err := userID(ctx, s, name)
		if err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	return out, nil
}

// membershipOf finds the membership that a node and a user name.
func membershipOf(ctx context.Context, s *session.Session, args []string) ([]string, error) {
	place, err := rootOrNode(ctx, s, args[0])
	if err != nil {
		return nil, err
	}
	all, err := membershipsOf(ctx, s, args[1])
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		switch {
		case m.NodeID != place:
		case m.Dynamic:
			return nil, failure.Usagef("%s is in %s by the node's condition, not by hand", args[1], args[0])
		default:
			return []string{m.ID}, nil
		}
	}
	return nil, failure.NotFoundf("%s is not a member of %s itself", args[1], args[0])
}

func moveMember(a *App) *cobra.Command {
	return a.operation(operation{
		use: "move USER --to NODE", short: "Move a user to another node of the same tree",
		operation: "change-organization", arguments: 1, path: firstOf(userID), complete: a.words(knownUsers),
		without: []string{"object_code"}, view: movedView,
		join: joinPlaces,
		references: []reference{
			nodeFlag("from", "the node to leave; absent: the primary one", "from_node_id", false),
			nodeFlag("to", "the node to join", "to_node_id", true),
		},
		body: func(ctx context.Context, s *session.Session, args []string, body members) error {
			to, err := node(ctx, s, body.text("to_node_id"))
			if err != nil {
				return err
			}
			body["object_code"] = to.ObjectCode
			if body["from_node_id"] != nil {
				return nil
			}
			body["from_node_id"], err = primaryNode(ctx, s, args[0], to.ObjectCode)
			return err
		},
		example: "  idp members move li.wei --to company/sales\n" +
			"  idp members move li.wei --from company/rd --to company/sales --dry-run",
	})
}

// movedView is of the memberships that a user has after a move.
var movedView = func() output.View {
	view := placeView
	view.Items = "memberships"
	return view
}()

// primaryNode finds a user's primary node in a tree.
func primaryNode(ctx context.Context, s *session.Session, name, tree string) (string, error) {
	all, err := membershipsOf(ctx, s, name)
	for _, m := range all {
		if m.ObjectCode == tree && m.IsPrimary == "1" {
			return m.NodeID, nil
		}
	}
	if err == nil {
		err = failure.NotFoundf("%s has no primary node in %s to leave; --from names another", name, tree)
	}
	return "", err
}

// membershipsOf reads where a user belongs.
func membershipsOf(ctx context.Context, s *session.Session, name string) ([]idp.Membership, error) {
	person, err := userID(ctx, s, name)
	if err != nil {
		return nil, err
	}
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	all, err := client.ListTreeUsers(ctx, idp.ListTreeUsersParams{UserID: person})
	return all, failure.WithScope(err, "organization:read")
}

// removeMember ends one membership; of a group, with the operation for many.
func removeMember(a *App) *cobra.Command {
	command := a.operation(operation{
		use: "remove NODE|group:NAME USER", short: "Remove a user from a node or a group",
		operation: "remove-tree-user", arguments: 2, path: membershipOf, complete: a.words(knownNodes, knownUsers),
		example: "  idp members remove company/rd li.wei --yes\n  idp members remove group:auditors li.wei --yes",
	})
	return a.orGroup(command, func(ctx context.Context, s *session.Session, args []string) error {
		group, err := unitID(ctx, s, args[0])
		if err != nil {
			return err
		}
		person, err := userID(ctx, s, args[1])
		if err != nil {
			return err
		}
		body, err := json.Marshal(idp.RemoveAuthUnitMembersRequest{UserIds: []string{person}})
		if err != nil {
			return err
		}
		return s.Run(ctx, &session.Call{
			Operation: session.Operation("remove-auth-unit-members"), Path: []string{group}, Body: body,
			What: strings.Join(args, " "),
		})
	})
}
