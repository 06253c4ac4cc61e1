package commands

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idplatform/idplatform/cli/internal/config"
	"github.com/idplatform/idplatform/cli/internal/plan"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

const (
	completeLimit = 300 * time.Millisecond // a shell that waits for longer feels broken
	completeSize  = 50
)

// source lists what a word may become: the value, and after a tab what it is.
type source func(ctx context.Context, client *idp.Client, prefix string) ([]string, error)

// known are the values of the platform that complete a word.
type known struct {
	kind string // of values, which are remembered by it
	list source
}

// The kinds of records that words of commands name.
var (
	knownUsers        = known{"users", usersLike}
	knownNodes        = known{"nodes", nodesLike}
	knownApplications = known{"applications", applicationsLike}
)

// fixed are values that the platform need not be asked for.
func fixed(values ...string) known {
	return known{strings.Join(values, " "), func(_ context.Context, _ *idp.Client, prefix string) ([]string, error) {
		others := func(value string) bool { return !strings.HasPrefix(value, prefix) }
		return slices.DeleteFunc(slices.Clone(values), others), nil
	}}
}

// noWords completes nothing, such as the name of something new.
func noWords(context.Context, *idp.Client, string) ([]string, error) { return nil, nil }

// complete makes the completion of a first argument.
func (a *App) complete(kind string, list source) cobra.CompletionFunc {
	return a.words(known{kind, list})
}

// words makes the completion of arguments: the first of all completes the first one, the last also those after it.
func (a *App) words(all ...known) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && len(all) == 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.suggest(command.Context(), all[min(len(args), len(all)-1)], prefix)
	}
}

// completeFlag makes the completion of a flag.
func (a *App) completeFlag(command *cobra.Command, flag string, of known) {
	_ = command.RegisterFlagCompletionFunc(flag, func(
		command *cobra.Command, _ []string, prefix string,
	) ([]string, cobra.ShellCompDirective) {
		return a.suggest(command.Context(), of, prefix)
	}) // the flag is there
}

// suggest asks the platform for values. If it does not answer soon, there are none.
func (a *App) suggest(ctx context.Context, of known, prefix string) ([]string, cobra.ShellCompDirective) {
	quiet, options := a.terminal, a.options
	quiet.Err, options.Wait, options.Verbose = io.Discard, 0, false
	s := session.New(quiet, options)
	s.Hasty = completeLimit
	client, err := s.Client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := session.AwaitedBy(ctx, completeLimit)
	defer cancel()
	values, err := s.Remembered(of.kind+" "+prefix, func() ([]string, error) { return of.list(ctx, client, prefix) })
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return values, cobra.ShellCompDirectiveNoFileComp
}

// completeWords makes the completion of a flag by words that need no platform.
func (a *App) completeWords(command *cobra.Command, flag string, words ...string) {
	_ = command.RegisterFlagCompletionFunc(flag,
		cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

func tenantsLike(ctx context.Context, client *idp.Client, prefix string) ([]string, error) {
	var out []string
	for tenant, err := range client.ListAllTenants(ctx, idp.ListTenantsParams{}) {
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(tenant.ID, prefix) {
			out = append(out, tenant.ID)
		}
		if len(out) == completeSize {
			break
		}
	}
	return out, nil
}

// setsLike completes the name of a set that was applied.
func setsLike(ctx context.Context, client *idp.Client, prefix string) ([]string, error) {
	page, err := client.ListKVObjects(ctx, plan.Bucket, idp.ListKVObjectsParams{
		Prefix: plan.SetPrefix + prefix, PageSize: completeSize, Count: new(false),
	})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, object := range page.Items {
		out = append(out, strings.TrimPrefix(object.Key, plan.SetPrefix))
	}
	return out, nil
}

func usersLike(ctx context.Context, client *idp.Client, prefix string) ([]string, error) {
	page, err := client.ListUsers(ctx, idp.ListUsersParams{Keyword: prefix, PageSize: completeSize, Count: new(false)})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, user := range page.Items {
		if strings.HasPrefix(user.Username, prefix) {
			out = append(out, user.Username+"\t"+user.DisplayName)
		}
	}
	return out, nil
}

// nodesLike completes first the tree, then the node.
func nodesLike(ctx context.Context, client *idp.Client, prefix string) ([]string, error) {
	tree, rest, inTree := strings.Cut(prefix, "/")
	var out []string
	if !inTree {
		trees, err := client.ListCoreObjects(ctx, idp.ListCoreObjectsParams{})
		for _, t := range trees {
			if strings.HasPrefix(t.Code, prefix) {
				out = append(out, t.Code+"\t"+t.Name)
			}
		}
		return out, err
	}
	for n, err := range client.ListAllTreeNodes(ctx, idp.ListTreeNodesParams{ObjectCode: tree}) {
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(n.Code, rest) {
			out = append(out, tree+"/"+n.Code+"\t"+n.Name)
		}
		if len(out) == completeSize {
			break
		}
	}
	return out, nil
}

func applicationsLike(ctx context.Context, client *idp.Client, prefix string) ([]string, error) {
	page, err := client.ListApplications(ctx, idp.ListApplicationsParams{
		Name: prefix, PageSize: completeSize, Count: new(false),
	})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, application := range page.Items {
		if strings.HasPrefix(application.Name, prefix) {
			out = append(out, application.Name+"\t"+application.Descr)
		}
	}
	return out, nil
}

// contextNames completes a context.
func (a *App) contextNames(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	file, err := config.Load(a.terminal.ConfigPath)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(file.Contexts)), cobra.ShellCompDirectiveNoFileComp
}
