package commands

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

var linkView = output.View{
	Columns: []output.Column{
		output.MemberColumn("id"), eitherColumn("FROM", "source", "source_node_id"), output.MemberColumn("type"),
		eitherColumn("TO", "target", "target_node_id"), output.MemberColumn("description"),
	},
	Wide: columns("source_node_id", "target_node_id", "time_created"),
}

// linksCommand lists the links of a node: associations between nodes of any trees.
func linksCommand(a *App) *cobra.Command {
	return a.operation(operation{
		use: "links NODE", short: "List the links between a node and others", operation: "list-tree-associations",
		view: linkView, arguments: 1, path: noPath, complete: a.words(knownNodes), query: queryOf("node_id", nodeID),
		without: []string{"node_id", "source_node_id", "target_node_id"}, join: joinEnds,
		example: "  idp nodes links project/apollo\n  idp nodes links company/rd --type supports",
	})
}

// joinEnds adds what the nodes at both ends of links are called.
func joinEnds(ctx context.Context, s *session.Session, items []output.Object) error {
	if err := joinNodes(ctx, s, items, "source_node_id", "source"); err != nil {
		return err
	}
	return joinNodes(ctx, s, items, "target_node_id", "target")
}

// linkCommand links a node to another one.
func linkCommand(a *App) *cobra.Command {
	return a.operation(operation{
		use: "link NODE --to NODE", short: "Link a node to another one, also of another tree",
		operation: "create-tree-association", view: linkView, arguments: 1, path: noPath,
		complete: a.words(knownNodes), without: []string{"source_node_id"},
		references: []reference{nodeFlag("to", "the other node", "target_node_id", true)},
		body: func(ctx context.Context, s *session.Session, args []string, body members) (err error) {
			body["source_node_id"], err = nodeID(ctx, s, args[0])
			return err
		},
		example: "  idp nodes link project/apollo --to company/rd --type supports",
	})
}

// unlinkCommand removes a link, which is found by its ends.
func unlinkCommand(a *App) *cobra.Command {
	target, kind := "", ""
	return a.operation(operation{
		use: "unlink NODE --from NODE", short: "Remove the link of a node to another one",
		operation: "delete-tree-association", arguments: 1, complete: a.words(knownNodes),
		flags: func(command *cobra.Command) {
			command.Flags().StringVar(&target, "from", "", "the other node (required)")
			command.Flags().StringVar(&kind, "type", "", "of the link, if there are several")
			a.completeFlag(command, "from", knownNodes)
		},
		path: func(ctx context.Context, s *session.Session, args []string) ([]string, error) {
			id, err := linkID(ctx, s, args[0], target, kind)
			return []string{id}, err
		},
		example: "  idp nodes unlink project/apollo --from company/rd --yes",
	})
}

func linkID(ctx context.Context, s *session.Session, from, to, kind string) (string, error) {
	if to == "" {
		return "", failure.Usagef("--from is needed: the other node")
	}
	client, err := s.Client()
	if err != nil {
		return "", err
	}
	query := url.Values{}
	for member, name := range map[string]string{"source_node_id": from, "target_node_id": to} {
		id, err := nodeID(ctx, s, name)
		if err != nil {
			return "", err
		}
		query.Set(member, id)
	}
	if kind != "" {
		query.Set("type", kind)
	}
	o := session.Operation("list-tree-associations")
	answer, err := get(ctx, client, o.Path, query, o.Scope)
	if err != nil {
		return "", err
	}
	list, _ := output.List(answer, "")
	var fits []found
	for _, item := range list {
		if link, isRecord := item.(output.Object); isRecord {
			fits = append(fits, found{link.Text("id"), "--type " + link.Text("type")})
		}
	}
	if len(fits) > 1 {
		return "", several("link", from+" → "+to, "say its --type", fits)
	}
	return one("link", from+" → "+to, fits)
}
