package commands

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// identity is whom a grant or a question is about.
type identity struct{ kind, id string }

const everyone = "everyone"

// identityKinds are the words before the colon of an identity's name, with the platform's types and what finds them.
var identityKinds = map[string]struct {
	kind string
	find finder
}{
	"user":        {"user", userID},
	"node":        {"node", nodeID},
	"tree":        {"core_object", treeKind.id},
	"core_object": {"core_object", treeKind.id},
	"app":         {"application", applicationID},
	"application": {"application", applicationID},
	"group":       {"group", groupID},
}

// groupID finds the id by which rules name a group.
func groupID(ctx context.Context, s *session.Session, name string) (string, error) {
	group, err := findGroup(ctx, s, name)
	return group.Text("identity_id"), err
}

// findGroup finds the authorization unit of a group.
func findGroup(ctx context.Context, s *session.Session, name string) (output.Object, error) {
	return groupKind.find(ctx, s, name, url.Values{"identity_type": {"group"}})
}

// unitID finds the authorization unit of a group.
func unitID(ctx context.Context, s *session.Session, name string) (string, error) {
	group, err := findGroup(ctx, s, strings.TrimPrefix(name, groupPrefix))
	return group.Text("id"), err
}

const groupPrefix = "group:"

const identityHelp = "user:NAME (or NAME alone), node:TREE/CODE, tree:CODE, app:NAME, group:NAME, everyone"

// identityOf finds an identity: li.wei, user:li.wei, node:company/rd, group:auditors, everyone. A name without a kind
// is of the kind otherwise.
func identityOf(ctx context.Context, s *session.Session, name, otherwise string) (identity, error) {
	if name == everyone || otherwise == everyone {
		return identity{everyone, "*"}, nil
	}
	word, rest, hasKind := strings.Cut(name, ":")
	if _, known := identityKinds[word]; !hasKind || !known {
		word, rest = otherwise, name
	}
	known, ok := identityKinds[word]
	if !ok {
		return identity{}, failure.Usagef("there is no kind of identity %q: %s", word, identityHelp)
	}
	if rest == "" {
		return identity{}, failure.Usagef("an identity needs a name: %s", identityHelp)
	}
	id, err := known.find(ctx, s, rest)
	return identity{known.kind, id}, err
}

// nameOfIdentity is what identityOf reads, of an identity whose id and type an answer has.
func nameOfIdentity(kind, name string) string {
	switch kind {
	case everyone:
		return everyone
	case "core_object":
		return "tree:" + name
	case "application":
		return "app:" + name
	}
	return kind + ":" + name
}

// identityNames finds what identities are called. Those whose records cannot be found, or read, keep their ids.
func identityNames(ctx context.Context, s *session.Session, all []identity) (map[identity]string, error) {
	ids, out := map[string][]string{}, map[identity]string{}
	for _, who := range all {
		if !slices.Contains(ids[who.kind], who.id) {
			ids[who.kind] = append(ids[who.kind], who.id)
		}
	}
	for kind, of := range ids {
		names := map[string]string{}
		if find := namesOfKind[kind]; find != nil {
			var err error
			if names, err = find(ctx, s, of); err != nil && idp.CodeOf(err) != idp.CodeForbidden {
				return nil, err
			}
		}
		for _, id := range of {
			out[identity{kind, id}] = nameOfIdentity(kind, cmp.Or(names[id], id))
		}
	}
	return out, nil
}

// namesOfKind finds names by ids. The id of a group is its name.
var namesOfKind = map[string]func(context.Context, *session.Session, []string) (map[string]string, error){
	"user": usernames, "node": nodeNames, "application": applicationNames, "core_object": treeNames,
}

func usernames(ctx context.Context, s *session.Session, ids []string) (map[string]string, error) {
	users, err := usersByID(ctx, s, ids)
	out := map[string]string{}
	for id, user := range users {
		out[id] = user.Username
	}
	return out, err
}

func applicationNames(ctx context.Context, s *session.Session, ids []string) (map[string]string, error) {
	applications, err := recordsByID(ctx, s, "get-application", ids)
	out := map[string]string{}
	for id, application := range applications {
		out[id] = application.Text("name")
	}
	return out, err
}

// treeNames reads all trees: there are few.
func treeNames(ctx context.Context, s *session.Session, _ []string) (map[string]string, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	trees, err := treeKind.read(ctx, client, nil)
	out := map[string]string{}
	for _, tree := range trees {
		out[tree.Text("id")] = tree.Text("code")
	}
	return out, err
}
