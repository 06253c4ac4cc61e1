package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

var nodeView = output.View{
	Columns: append(columns("id", "code", "name", "depth", "child_count", "member_count"), statusColumn),
	Wide:    columns("parent_id", "arn", "tag", "is_dynamic", "time_modified"),
	Name:    "code",
}

// nodes makes the commands for tree nodes.
func nodes(a *App) *cobra.Command {
	of := a.like(operation{
		view: nodeView, arguments: 1, path: firstOf(nodeID), complete: a.words(knownNodes),
	})
	return group("nodes", "Departments and other tree nodes: list, create, change, move, link",
		treeCommand(a),
		of(operation{
			use: "list TREE|NODE", short: "List the nodes of a tree, or those right below a node",
			operation: "list-tree-nodes", arguments: 1, path: noPath, without: []string{"object_code", "parent_id"},
			query:   treeOrParent,
			example: "  idp nodes list company --name 研发\n  idp nodes list company/rd --recursive",
		}),
		of(operation{
			use: "get NODE", short: "Show a node", operation: "get-tree-node", example: "  idp nodes get company/rd",
		}),
		createNode(a),
		of(operation{
			use: "update NODE", short: "Change members of a node", operation: "update-tree-node",
			without: []string{"object_code", "parent_id"}, example: "  idp nodes update company/rd --name 研发中心",
		}),
		moveNode(a),
		of(operation{
			use: "delete NODE", short: "Delete a node that has none below it", operation: "delete-tree-node",
			without: []string{"object_code"},
			query: func(ctx context.Context, s *session.Session, args []string, query url.Values) error {
				found, err := node(ctx, s, args[0])
				if err == nil {
					query.Set("object_code", found.ObjectCode)
				}
				return err
			},
			example: "  idp nodes delete company/rd --grants refuse --yes",
		}),
		of(operation{
			use: "enable NODE", short: "Enable a node", operation: "enable-tree-node",
			example: "  idp nodes enable company/rd --recursive",
		}),
		of(operation{
			use: "disable NODE", short: "Disable a node", operation: "disable-tree-node",
			example: "  idp nodes disable company/rd",
		}),
		linksCommand(a), linkCommand(a), unlinkCommand(a),
	)
}

// nodeFlag is a flag that names a node, or a tree for its root.
func nodeFlag(flag, usage, id string, required bool) reference {
	return reference{flag: flag, usage: usage, id: id, find: rootOrNode, known: knownNodes, required: required}
}

// isNode tells the name of a node from the code of a tree.
func isNode(name string) bool { return strings.Contains(name, "/") || digits.MatchString(name) }

// treeOrParent lists a tree, or what is below a node.
func treeOrParent(ctx context.Context, s *session.Session, args []string, query url.Values) error {
	if !isNode(args[0]) {
		tree, err := treeKind.find(ctx, s, args[0], nil)
		query.Set("object_code", tree.Text("code"))
		return err
	}
	parent, err := node(ctx, s, args[0])
	if err == nil {
		query.Set("object_code", parent.ObjectCode)
		query.Set("parent_id", parent.ID)
	}
	return err
}

// createNode makes the command that adds a node: its tree and code are one argument, as everywhere.
func createNode(a *App) *cobra.Command {
	return a.operation(operation{
		use: "create TREE/CODE", short: "Add a node", operation: "create-tree-node", view: nodeView,
		arguments: 1, path: noPath, without: []string{"object_code", "code"},
		references: []reference{
			nodeFlag("under", "the node above it; absent: the root", "parent_id", false),
			nodeFlag("pointer", "the node that it stands for", "pointer_id", false),
		},
		body: func(_ context.Context, _ *session.Session, args []string, body members) error {
			tree, code, ok := strings.Cut(args[0], "/")
			if !ok || tree == "" || code == "" {
				return failure.Usagef("a new node is named by its tree and its code, such as company/rd")
			}
			if at := strings.LastIndex(code, "/"); at >= 0 && body["parent_id"] == nil {
				return failure.Usagef("a code is no path: below another node it is "+
					"idp nodes create %s/%s --under %s/%s; for a code with / below the root, --under %s",
					tree, code[at+1:], tree, code[:at], tree)
			}
			body["object_code"], body["code"] = tree, code
			body.otherwise("name", code)
			body.otherwise("parent_id", "") // the root
			return nil
		},
		example: "  idp nodes create company/rd --name 研发中心\n" +
			"  idp nodes create company/platform --name 平台组 --under company/rd --dry-run",
	})
}

// moveNode makes the command that moves a node.
func moveNode(a *App) *cobra.Command {
	target := ""
	return a.operation(operation{
		use: "move NODE --to NODE", short: "Move a node, with all below it, under another one",
		operation: "update-tree-node", view: nodeView, arguments: 1, path: firstOf(nodeID),
		complete: a.words(knownNodes), without: everyMember("update-tree-node"),
		flags: func(command *cobra.Command) {
			command.Flags().StringVar(&target, "to", "", "the node under which it comes, or its tree (required)")
			a.completeFlag(command, "to", knownNodes)
		},
		body: func(ctx context.Context, s *session.Session, args []string, body members) (err error) {
			if target == "" {
				return failure.Usagef("--to is needed: the node under which it comes")
			}
			if isNode(target) {
				body["parent_id"], err = nodeID(ctx, s, target)
				return err
			}
			moved, err := node(ctx, s, args[0])
			if err == nil && moved.ObjectCode != target {
				return failure.Usagef("--to %s is neither a node, such as %s/%s, nor the node's tree", target,
					moved.ObjectCode, target)
			}
			body["parent_id"] = "" // the root of the tree
			return err
		},
		example: "  idp nodes move company/rd --to company/sales --dry-run\n  idp nodes move company/rd --to company",
	})
}

// everyMember are the members of an operation's body.
func everyMember(id string) []string {
	var out []string
	for _, p := range session.Operation(id).Members {
		out = append(out, p.Name)
	}
	return out
}

// treeCommand draws a tree.
func treeCommand(a *App) *cobra.Command {
	depth := 0
	command := &cobra.Command{
		Use: "tree TREE|NODE", Short: "Draw a tree, or what is below a node", Args: exactly(1),
		ValidArgsFunction: a.words(knownNodes),
		Example:           "  idp nodes tree company --depth 2\n  idp nodes tree company/rd -o json",
		Long: "Draw a tree, or what is below a node, with the number of members of each node.\n\n" +
			"Scope: organization:read",
	}
	command.Flags().IntVar(&depth, "depth", 0, "how many levels; 0: all")
	command.RunE = a.run(func(ctx context.Context, s *session.Session, args []string) error {
		id, err := rootOrNode(ctx, s, args[0])
		if err != nil {
			return err
		}
		call := &session.Call{Operation: session.Operation("get-subtree"), Path: []string{id}, Query: url.Values{}}
		if depth > 0 {
			call.Query.Set("depth", fmt.Sprint(depth))
		}
		printer, err := s.Printer()
		if err != nil {
			return err
		}
		if s.Curl || !printer.ForPeople() || len(s.Fields) > 0 {
			return s.Run(ctx, call)
		}
		body, err := s.Body(ctx, call)
		if err != nil {
			return err
		}
		var root branch
		if err := json.Unmarshal(body, &root); err != nil {
			return fmt.Errorf("the answer is not as documented: %w", err)
		}
		return root.draw(s.Out, "", "")
	})
	return command
}

// rootOrNode finds the root of a tree by the tree's code, or any node.
func rootOrNode(ctx context.Context, s *session.Session, name string) (string, error) {
	if isNode(name) {
		return nodeID(ctx, s, name)
	}
	tree, err := treeKind.find(ctx, s, name, nil)
	return tree.Text("root_node_id"), err
}

// branch is a node with what is below it.
type branch struct {
	Code, Name  string
	Status      string
	MemberCount int64  `json:"member_count"`
	ChildCount  int64  `json:"child_count"`
	IsDynamic   string `json:"is_dynamic"`
	Children    []branch
}

// draw writes a line for the node, and lines for its children. rest is what lines below begin with.
func (b branch) draw(w io.Writer, first, rest string) error {
	note := fmt.Sprintf("%d", b.MemberCount)
	if b.IsDynamic == "1" {
		note += ", dynamic"
	}
	if b.Status == "0" {
		note += ", disabled"
	}
	if len(b.Children) == 0 && b.ChildCount > 0 {
		note += fmt.Sprintf(", %d below", b.ChildCount)
	}
	name, code := output.Printable(b.Name), output.Printable(b.Code)
	if _, err := fmt.Fprintf(w, "%s%s  %s (%s)\n", first, name, code, note); err != nil {
		return err
	}
	for i, child := range b.Children {
		branchLine, below := "├── ", "│   "
		if i == len(b.Children)-1 {
			branchLine, below = "└── ", "    "
		}
		if err := child.draw(w, rest+branchLine, rest+below); err != nil {
			return err
		}
	}
	return nil
}
