package account

import (
	"context"
	"slices"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/applications/internal/application"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
	"github.com/idplatform/idplatform/services/questions"
)

// Filter selects sub-accounts of an application. The zero Filter selects all.
type Filter struct {
	UserID, Account, DisplayName, Status string // equal; account and display name without regard to case and width
	Keyword                              string // a part of account or display name
}

func (f Filter) where(appID string) docstore.Filter {
	all := []docstore.Filter{ofApplication(appID)}
	for _, m := range []struct{ field, value string }{
		{"user_id", f.UserID}, {"account", f.Account}, {"display_name", f.DisplayName}, {"status", f.Status},
	} {
		if m.value != "" {
			all = append(all, fields[m.field].equal(appID, m.value))
		}
	}
	if f.Keyword != "" {
		all = append(all, docstore.Or(
			fields["account"].containing(appID, f.Keyword), fields["display_name"].containing(appID, f.Keyword)))
	}
	return docstore.And(all...)
}

func ofApplication(appID string) docstore.Filter { return docstore.Eq(byApp, docstore.Text(appID)) }

// field describes a member that conditions can be about.
type field struct {
	index  string
	part   string // the index for searches by a part; "" if there is none
	folded bool   // compared without regard to case and width
}

var fields = map[string]field{
	"user_id":      {index: byHolder},
	"account":      {index: byAccount, part: byAccountPart, folded: true},
	"display_name": {index: byDisplayName, part: byNamePart, folded: true},
	"status":       {index: byStatus},
}

func (f field) text(appID, value string) string {
	if f.folded {
		value = textindex.Key(value)
	}
	return within(appID, value)
}

func (f field) equal(appID string, values ...string) docstore.Filter {
	texts := make([]docstore.Value, len(values))
	for i, value := range values {
		texts[i] = docstore.Text(f.text(appID, value))
	}
	return docstore.In(f.index, texts...)
}

func (f field) containing(appID, part string) docstore.Filter {
	return textindex.Containing(f.part, f.index, within(appID, ""), textindex.Key(part))
}

// Condition is one condition of a query.
type Condition struct {
	Field  string
	Op     string // eq, in, prefix or contains
	Values []string
}

// Conditions select sub-accounts of an application that meet all conditions, or any.
type Conditions struct {
	List []Condition
	Any  bool
}

// Limits of a query. Each condition is a search of its own.
const (
	MaxConditions = 20
	MaxValues     = 200
)

func (c Conditions) where(appID string) (docstore.Filter, error) {
	var faults apperr.Faults
	var parts []docstore.Filter
	for i, condition := range c.List {
		wrong := faults.Within(apperr.Item("conditions", i))
		f, ok := fields[condition.Field]
		wrong.Check(ok, "field", "must be user_id, account, display_name or status")
		many := condition.Op == "in"
		wrong.Check(many || len(condition.Values) == 1, "value", "must be one text")
		good := len(condition.Values) > 0 && len(condition.Values) <= MaxValues &&
			!slices.Contains(condition.Values, "")
		wrong.Check(good, "value", "must not be empty, nor have more than %d items", MaxValues)
		if len(condition.Values) == 0 {
			continue
		}
		switch condition.Op {
		case "eq", "in":
			parts = append(parts, f.equal(appID, condition.Values...))
		case "prefix":
			parts = append(parts, docstore.Prefix(f.index, f.text(appID, condition.Values[0])))
		case "contains":
			wrong.Check(!ok || f.part != "", "op", "is possible for account and display_name")
			parts = append(parts, f.containing(appID, condition.Values[0]))
		default:
			wrong.Add("op", "must be eq, in, prefix or contains")
		}
	}
	if err := faults.Err(); err != nil {
		return docstore.Filter{}, err
	}
	if c.Any && len(parts) > 0 {
		return docstore.And(ofApplication(appID), docstore.Or(parts...)), nil
	}
	return docstore.And(append(parts, ofApplication(appID))...), nil
}

// List returns a page of an application's sub-accounts. The error is apperr.NotFound or InvalidParameters (paging).
func (s *Accounts) List(
	ctx context.Context, appID string, f Filter, p docstore.Paging,
) (docstore.Page[Account], error) {
	if _, err := application.Find(ctx, s.Store, appID); err != nil {
		return docstore.Page[Account]{}, err
	}
	return accounts.List(ctx, s.Store, f.where(appID), p)
}

// OfUser returns a page of a user's sub-accounts in all applications; for a moment also those in an application that
// was just deleted. The error is apperr.InvalidParameters (paging).
func (s *Accounts) OfUser(ctx context.Context, userID string, p docstore.Paging) (docstore.Page[Account], error) {
	return accounts.List(ctx, s.Store, docstore.Eq(byUser, docstore.Text(userID)), p)
}

// Query is List by conditions. The error may also be apperr.InvalidParameters at a condition.
func (s *Accounts) Query(
	ctx context.Context, appID string, c Conditions, p docstore.Paging,
) (docstore.Page[Account], error) {
	where, err := c.where(appID)
	if err != nil {
		return docstore.Page[Account]{}, err
	}
	if _, err := application.Find(ctx, s.Store, appID); err != nil {
		return docstore.Page[Account]{}, err
	}
	return accounts.List(ctx, s.Store, where, p)
}

// maxOfUser bounds the sub-accounts that a user can choose from.
const maxOfUser = 100

// EnabledOf returns the enabled sub-accounts of a user in an application, the first 100, in the order of ids.
func (s *Accounts) EnabledOf(ctx context.Context, q questions.AccountsQuestion) (questions.SubAccounts, error) {
	found := questions.SubAccounts{Accounts: []questions.SubAccount{}}
	where := Filter{UserID: q.UserID, Status: toggle.On}.where(q.AppID)
	page, err := accounts.Page(ctx, s.Store, docstore.Query{Filter: where, Limit: maxOfUser})
	if err != nil {
		return found, err
	}
	for i := range page.Docs {
		a, err := page.Docs[i].Value()
		if err != nil {
			return found, err
		}
		found.Accounts = append(found.Accounts, questions.SubAccount{
			ID: a.ID, Account: a.Account, DisplayName: a.DisplayName, IsDefault: a.IsDefault == toggle.On,
		})
	}
	return found, nil
}
