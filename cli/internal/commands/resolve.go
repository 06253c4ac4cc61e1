package commands

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/naming"
	"github.com/idplatform/idplatform/cli/internal/session"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// digits are what ids look like.
var digits = regexp.MustCompile(`^[0-9]{1,16}$`)

const mostNear = 5 // names that an error suggests

// found is a record that a name fits.
type found struct{ id, shown string }

// finder finds the id of a record by what people call it.
type finder func(ctx context.Context, s *session.Session, name string) (string, error)

// one returns the id of the only record that fits.
func one(kind, name string, fits []found) (string, error) {
	switch len(fits) {
	case 0:
		return "", none(kind, name, nil)
	case 1:
		return fits[0].id, nil
	}
	return "", several(kind, name, "name one by its id", fits)
}

// several is the error of a name that more than one record has.
func several(kind, name, advice string, fits []found) error {
	text := fmt.Sprintf("several fit %s %q; %s", kind, name, advice)
	for i, f := range fits {
		if i == 0 {
			text += ":"
		}
		text += fmt.Sprintf("\n  %s  %s", f.id, f.shown)
	}
	return failure.Usagef("%s", text)
}

// none is the error of a name that no record has, with names that are near it.
func none(kind, name string, near []string) error {
	if len(near) == 0 {
		return failure.NotFoundf("there is no %s %q", kind, name)
	}
	return failure.NotFoundf("there is no %s %q; near it: %s", kind, name, strings.Join(near, ", "))
}

// near returns those of all names that somebody may have meant: they begin alike, or one is a part of the other.
func near(name string, all []string) []string {
	folded := cases.Fold().String(name)
	likeness := func(other string) int {
		other = cases.Fold().String(other)
		common := 0
		for common < min(len(other), len(folded)) && other[common] == folded[common] {
			common++
		}
		if 2*common >= len(folded) || strings.Contains(other, folded) || strings.Contains(folded, other) {
			return 1 + common
		}
		return 0
	}
	out := slices.DeleteFunc(slices.Clone(all), func(other string) bool { return other == "" || likeness(other) == 0 })
	slices.SortStableFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(likeness(b), likeness(a)), cmp.Compare(len(a), len(b)))
	})
	return out[:min(len(out), mostNear)]
}

// userID finds a user by id, username, email, mobile or employee number.
func userID(ctx context.Context, s *session.Session, name string) (string, error) {
	client, err := s.Client()
	if err != nil {
		return "", err
	}
	questions := []idp.UserIdentity{{Username: &name}}
	switch {
	case strings.Contains(name, "@"):
		questions = append(questions, idp.UserIdentity{Email: &name})
	case strings.HasPrefix(name, "+"):
		questions = append(questions, idp.UserIdentity{Mobile: &name})
	case digits.MatchString(name):
		questions = append(questions, idp.UserIdentity{ID: &name}, idp.UserIdentity{EmployeeNumber: &name})
	default:
		questions = append(questions, idp.UserIdentity{EmployeeNumber: &name})
	}
	answers, err := client.UsersExist(ctx, idp.UsersExistRequest{Items: questions})
	if err != nil {
		return "", failure.WithScope(err, "users:read")
	}
	var fits []found
	several := false
	for i, answer := range answers.Items {
		several = several || answer.Several != nil && *answer.Several
		if !answer.Exists || answer.UserID == nil {
			continue
		}
		fit := found{*answer.UserID, "by " + questionOf(questions[i])}
		if len(fits) == 0 || fits[0].id != fit.id {
			fits = append(fits, fit)
		}
	}
	switch {
	case several:
		return "", severalUsers(ctx, client, name, fits)
	case len(fits) == 0:
		return "", noUser(ctx, client, name)
	}
	return one("user", name, fits)
}

// severalUsers is the error of a name that several users have: those in fits, and some whom a search finds.
func severalUsers(ctx context.Context, client *idp.Client, name string, fits []found) error {
	const advice = "name one by its username or id"
	page, err := client.ListUsers(ctx, idp.ListUsersParams{Keyword: name, PageSize: 100, Count: new(false)})
	if err != nil {
		return several("user", name, advice, fits)
	}
	key := func(text string) string { return cases.Fold().String(norm.NFKC.String(text)) } // nearly as the platform
	same := func(other string) bool { return key(other) == key(name) }
	for _, user := range page.Items {
		known := slices.ContainsFunc(fits, func(f found) bool { return f.id == user.ID })
		has := slices.ContainsFunc([]string{user.Email, user.Mobile, user.EmployeeNumber}, same)
		if has && !known && len(fits) < mostNear {
			fits = append(fits, found{user.ID, strings.TrimSpace(user.Username + " " + user.DisplayName)})
		}
	}
	return several("user", name, advice, fits)
}

func questionOf(q idp.UserIdentity) string {
	switch {
	case q.Username != nil:
		return "username"
	case q.Email != nil:
		return "email"
	case q.Mobile != nil:
		return "mobile"
	case q.ID != nil:
		return "id"
	}
	return "employee number"
}

// noUser is the error of a name that no user has, with those that begin so.
func noUser(ctx context.Context, client *idp.Client, name string) error {
	page, err := client.ListUsers(ctx, idp.ListUsersParams{
		SearchType: "generic", Keyword: name, PageSize: mostNear, Count: new(false),
	})
	if err != nil {
		return none("user", name, nil) // then there is nothing to suggest
	}
	var names []string
	for _, user := range page.Items {
		names = append(names, strings.TrimSpace(user.Username+" "+user.DisplayName))
	}
	return none("user", name, names)
}

// node finds a tree node by id, or by the code of its tree and its own: company/rd.
func node(ctx context.Context, s *session.Session, name string) (*idp.TreeNode, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	kind := "code"
	if digits.MatchString(name) {
		kind = "id"
	} else if strings.HasPrefix(name, "arn:") {
		kind = "arn"
	} else if !strings.Contains(name, "/") {
		return nil, failure.Usagef("a node is named by its tree and its code, such as company/%s, or by its id", name)
	}
	nodes, err := client.CheckTreeNodes(ctx, idp.CheckTreeNodesRequest{Type: kind, Ids: []string{name}})
	if err != nil {
		return nil, failure.WithScope(err, "organization:read")
	}
	if found, ok := nodes[name]; ok && found.ID != "" {
		return &found, nil
	}
	tree, code, _ := strings.Cut(name, "/")
	like, err := nodesLike(ctx, client, tree+"/")
	if err != nil {
		like = nil // then there is nothing to suggest
	}
	return nil, none("node", name, nearWithin(tree+"/", code, values(like)))
}

// nearWithin compares only what comes after a prefix, which all have.
func nearWithin(prefix, name string, all []string) []string {
	var rest []string
	for _, other := range all {
		rest = append(rest, strings.TrimPrefix(other, prefix))
	}
	out := near(name, rest)
	for i := range out {
		out[i] = prefix + out[i]
	}
	return out
}

// values are the words of a completion, without what they mean.
func values(like []string) []string {
	out := make([]string, len(like))
	for i, word := range like {
		out[i], _, _ = strings.Cut(word, "\t")
	}
	return out
}

func nodeID(ctx context.Context, s *session.Session, name string) (string, error) {
	found, err := node(ctx, s, name)
	if err != nil {
		return "", err
	}
	return found.ID, nil
}

// applicationID finds an application by its id or its name, without regard to case.
func applicationID(ctx context.Context, s *session.Session, name string) (string, error) {
	client, err := s.Client()
	if err != nil {
		return "", err
	}
	if digits.MatchString(name) {
		switch application, err := client.GetApplication(ctx, name); {
		case err == nil:
			return application.ID, nil
		case idp.CodeOf(err) != idp.CodeNotFound:
			return "", failure.WithScope(err, "applications:read")
		}
	}
	var fits []found
	folded := cases.Fold().String(name)
	for application, err := range client.ListAllApplications(ctx, idp.ListApplicationsParams{Name: name}) {
		if err != nil {
			return "", failure.WithScope(err, "applications:read")
		}
		if cases.Fold().String(application.Name) == folded {
			fits = append(fits, found{application.ID, application.Name})
		}
	}
	if len(fits) == 0 {
		like, err := applicationsLike(ctx, client, "")
		if err != nil {
			like = nil // then there is nothing to suggest
		}
		return "", none("application", name, near(name, values(like)))
	}
	return one("application", name, fits)
}

// object is what a check asks about: the resource crm:invoice, or the application crm itself.
type object struct{ application, kind, code string }

// objectOf reads application:code, or application alone. kind is data, api or ui.
func objectOf(ctx context.Context, s *session.Session, name, kind string) (object, error) {
	application, code, hasCode := naming.Cut(name)
	if application == "" || hasCode && code == "" {
		return object{}, failure.Usagef("an object is named application:code, such as crm:invoice; %q is not", name)
	}
	id, err := applicationID(ctx, s, application)
	if !hasCode {
		kind = "app"
	}
	return object{id, kind, code}, err
}

// firstOf finds a record by the first argument.
func firstOf(find finder) func(context.Context, *session.Session, []string) ([]string, error) {
	return func(ctx context.Context, s *session.Session, args []string) ([]string, error) {
		id, err := find(ctx, s, args[0])
		return []string{id}, err
	}
}
