package transfer

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/naming"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// name is how people call a record: a user li.wei, a node company/rd.
type name struct{ kind, name string }

// The kinds of named records.
const (
	aUser         = "user"
	aNode         = "node"
	anApplication = "application"
	aTree         = "tree"
	aResource     = "resource" // application:type:code, of a global resource
	aSet          = "set"      // application:code, of a global set
	anAccount     = "account"  // application and account, with a line feed between
	aHolder       = "holder"   // application and user: the sub-account, where there is one each; "" if there is none
)

func (n name) key() string { return n.kind + " " + n.name }

// ids are the ids of names. A name that several records have has "".
type ids map[string]string

// of returns the id of a name, or why there is none.
func (i ids) of(n name) (id, reason string) {
	id, found := i[n.key()]
	switch {
	case !found:
		return "", fmt.Sprintf("there is no %s %q", n.kind, output.Printable(n.name))
	case id == "":
		return "", fmt.Sprintf("several fit %s %q: name it by its id", n.kind, output.Printable(n.name))
	}
	return id, ""
}

// digits are what ids look like.
var digits = regexp.MustCompile(`^[0-9]{1,16}$`)

// find finds the ids of names: a question for each thousand, not for each name.
func (i *importer) find(ctx context.Context, wanted []name) (ids, error) {
	found := ids{}
	byKind := map[string][]string{}
	seen := map[name]bool{}
	for _, n := range wanted {
		if !seen[n] {
			seen[n] = true
			byKind[n.kind] = append(byKind[n.kind], n.name)
		}
	}
	for _, of := range []struct {
		kind string
		find func(context.Context, []string, ids) error
	}{
		{aUser, i.findUsers}, {aNode, i.findNodes}, {anApplication, i.findApplications}, {aTree, i.findTrees},
		{aResource, i.findGlobal}, {aSet, i.findGlobal},
		{anAccount, i.findAccounts}, {aHolder, i.findHolders}, // after applications and users
	} {
		names := byKind[of.kind]
		if len(names) == 0 {
			continue
		}
		err := i.patiently(ctx, func() error { return of.find(ctx, names, found) }, func() bool { return false })
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// findUsers finds users by username, email, mobile or id.
func (i *importer) findUsers(ctx context.Context, names []string, found ids) error {
	client, err := i.Client()
	if err != nil {
		return err
	}
	var questions []idp.UserIdentity
	var asked []string
	for _, n := range names {
		questions, asked = append(questions, idp.UserIdentity{Username: &n}), append(asked, n)
		var other idp.UserIdentity
		switch {
		case strings.Contains(n, "@"):
			other.Email = &n
		case strings.HasPrefix(n, "+"):
			other.Mobile = &n
		case digits.MatchString(n):
			other.ID = &n
		default:
			continue
		}
		questions, asked = append(questions, other), append(asked, n)
	}
	for from := 0; from < len(questions); from += maxBatch {
		to := min(from+maxBatch, len(questions))
		answers, err := client.UsersExist(ctx, idp.UsersExistRequest{Items: questions[from:to]})
		if err != nil {
			return failure.WithScope(err, "users:read")
		}
		for n, answer := range answers.Items {
			key := name{aUser, asked[from+n]}.key()
			if answer.Several != nil && *answer.Several {
				found[key] = ""
			}
			if !answer.Exists || answer.UserID == nil {
				continue
			}
			if other, has := found[key]; has && other != *answer.UserID {
				found[key] = ""
				continue
			}
			found[key] = *answer.UserID
		}
	}
	return nil
}

// findNodes finds nodes by tree/code or id.
func (i *importer) findNodes(ctx context.Context, names []string, found ids) error {
	client, err := i.Client()
	if err != nil {
		return err
	}
	byType := map[string][]string{}
	for _, n := range names {
		kind := "code"
		if digits.MatchString(n) {
			kind = "id"
		}
		byType[kind] = append(byType[kind], n)
	}
	for kind, names := range byType {
		for part := range slices.Chunk(names, maxBatch) {
			nodes, err := client.CheckTreeNodes(ctx, idp.CheckTreeNodesRequest{Type: kind, Ids: part})
			if err != nil {
				return failure.WithScope(err, "organization:read")
			}
			for n, node := range nodes {
				if node.ID != "" {
					found[name{aNode, n}.key()] = node.ID
				}
			}
		}
	}
	return nil
}

// folded is a name of an application without regard to case, as the platform compares them.
func folded(name string) string { return cases.Fold().String(name) }

// findApplications finds applications by name or id. They are few: all are listed, once.
func (i *importer) findApplications(ctx context.Context, names []string, found ids) error {
	if i.applications == nil {
		all, one := map[string]string{}, map[string]bool{}
		err := eachApplication(ctx, i.Session, func(application output.Object) error {
			one[application.Text("id")] = application.Text("multi_account_enabled") != "1"
			all[folded(application.Text("name"))] = application.Text("id")
			all[application.Text("id")] = application.Text("id")
			return nil
		})
		if err != nil {
			return err
		}
		i.applications, i.oneEach = all, one
	}
	for _, n := range names {
		if id, ok := i.applications[folded(n)]; ok {
			found[name{anApplication, n}.key()] = id
		}
	}
	return nil
}

// findAccounts finds sub-accounts of one application that are there already, so that a batch of them need not be sent
// a thousand times: a refusal names one at a time.
func (i *importer) findAccounts(ctx context.Context, names []string, found ids) error {
	application, _, _ := strings.Cut(names[0], "\n")
	id := found[name{anApplication, application}.key()]
	if id == "" {
		return nil
	}
	called := map[string][]string{} // by what is compared
	var accounts []string
	for _, n := range names {
		_, account, _ := strings.Cut(n, "\n")
		accounts = append(accounts, account)
		called[compared(account)] = append(called[compared(account)], n)
	}
	return i.queryAccounts(ctx, id, "account", accounts, func(account output.Object) {
		for _, n := range called[compared(account.Text("account"))] {
			found[name{anAccount, n}.key()] = account.Text("id")
		}
	})
}

// findHolders finds the sub-accounts that users have in one application, if that allows one each.
func (i *importer) findHolders(ctx context.Context, names []string, found ids) error {
	application, _, _ := strings.Cut(names[0], "\n")
	id := found[name{anApplication, application}.key()]
	if !i.oneEach[id] {
		return nil
	}
	called := map[string][]string{}
	var users []string
	for _, n := range names {
		_, user, _ := strings.Cut(n, "\n")
		if user := found[name{aUser, user}.key()]; user != "" {
			found[name{aHolder, n}.key()] = ""
			users, called[user] = append(users, user), append(called[user], n)
		}
	}
	return i.queryAccounts(ctx, id, "user_id", users, func(account output.Object) {
		for _, n := range called[account.Text("user_id")] {
			found[name{aHolder, n}.key()] = account.Text("id")
		}
	})
}

// queryAccounts finds the sub-accounts of an application of which a member has one of some values.
func (i *importer) queryAccounts(
	ctx context.Context, application, member string, values []string, each func(output.Object),
) error {
	var conditions []any
	for part := range slices.Chunk(values, listedIDs) {
		conditions = append(conditions, map[string]any{"field": member, "op": "in", "value": part})
	}
	if len(conditions) == 0 {
		return nil
	}
	return pagesOf(ctx, i.Session, &session.Call{
		Operation: session.Operation("query-accounts"), Path: []string{application},
		Body: encoded(map[string]any{"conditions": conditions, "match": "any"}),
	}, func(page []output.Object) error {
		for _, account := range page {
			each(account)
		}
		return nil
	})
}

// compared is an account without regard to case and width, as the platform compares them.
func compared(account string) string { return norm.NFKC.String(folded(norm.NFKC.String(account))) }

func eachApplication(ctx context.Context, s *session.Session, each func(output.Object) error) error {
	return pages(ctx, s, "list-applications", nil, nil, func(page []output.Object) error {
		for _, application := range page {
			if err := each(application); err != nil {
				return err
			}
		}
		return nil
	})
}

// findTrees finds trees by code.
func (i *importer) findTrees(ctx context.Context, names []string, found ids) error {
	return eachTree(ctx, i.Session, func(tree output.Object) error {
		if slices.Contains(names, tree.Text("code")) {
			found[name{aTree, tree.Text("code")}.key()] = tree.Text("id")
		}
		return nil
	})
}

func eachTree(ctx context.Context, s *session.Session, each func(output.Object) error) error {
	return pages(ctx, s, "list-core-objects", nil, url.Values{}, func(page []output.Object) error {
		for _, tree := range page {
			if err := each(tree); err != nil {
				return err
			}
		}
		return nil
	})
}

// findGlobal finds the resources and sets that every application may grant. They are few: all are listed.
func (i *importer) findGlobal(ctx context.Context, _ []string, found ids) error {
	globals, err := readGlobals(ctx, i.Session)
	if err != nil {
		return err
	}
	for id, g := range globals {
		found[g.key()] = id
	}
	return nil
}

// readGlobals lists global resources and sets: their names by their ids.
func readGlobals(ctx context.Context, s *session.Session) (map[string]name, error) {
	applications := map[string]string{}
	err := eachApplication(ctx, s, func(application output.Object) error {
		applications[application.Text("id")] = application.Text("name")
		return nil
	})
	if err != nil {
		return nil, err
	}
	globals := map[string]name{}
	for kind, operation := range map[string]string{aResource: "list-resources", aSet: "list-resource-sets"} {
		// A list with the global ones of an application that does not exist has these alone.
		query := url.Values{"application_id": {"0"}, "include_global": {"true"}}
		err := pages(ctx, s, operation, nil, query, func(page []output.Object) error {
			for _, g := range page {
				n := naming.Join(applications[g.Text("application_id")], "")
				if kind == aResource {
					n += g.Text("type") + ":"
				}
				globals[g.Text("id")] = name{kind, n + g.Text("code")}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return globals, nil
}

// namesOf finds the names of ids: a question for each thousand.
func namesOf[T any](
	ctx context.Context, s *session.Session, wanted []string, operation string, question func([]string) any,
	read func(output.Object, map[string]T),
) (map[string]T, error) {
	slices.Sort(wanted)
	wanted = slices.DeleteFunc(slices.Compact(wanted), func(id string) bool { return id == "" })
	found := map[string]T{}
	for part := range slices.Chunk(wanted, maxBatch) {
		body, err := reading(s).Body(ctx, &session.Call{
			Operation: session.Operation(operation), Body: encoded(question(part)),
		})
		if err != nil {
			return nil, err
		}
		value, err := output.Parse(body)
		if err != nil {
			return nil, fmt.Errorf("the answer is not as documented: %w", err)
		}
		answer, _ := value.(output.Object)
		read(answer, found)
	}
	return found, nil
}
