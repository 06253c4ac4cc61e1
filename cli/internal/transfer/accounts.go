package transfer

import (
	"context"
	"net/http"
	"net/url"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
	"github.com/idplatform/idplatform/cli/internal/session"
)

func accounts() *Kind {
	return &Kind{
		Noun: "accounts", Things: "accounts", Short: "Sub-accounts of users in applications",
		Conflicts: []string{fail, skip, update},
		Conflict: "update changes the sub-account with the same name in the application; its user stays, and so\n" +
			"does is_default until another one of the user becomes it.",
		Filters: []Filter{{"app", "only sub-accounts in this application"}},
		Notes: "application is a name or an id; user a username, email, mobile or id. password is kept for form\n" +
			"fill, and never exported.",
		ImportExample: "  idp accounts import accounts.csv --set application=crm\n" +
			"  idp accounts import accounts.jsonl --on-conflict skip --dry-run",
		ExportExample: "  idp accounts export accounts.csv\n  idp accounts export --app crm -o jsonl",
		ImportScopes:  "applications:write, applications:read, users:read",
		ExportScopes:  "applications:read, users:read",
		columns: []column{
			{name: "application"}, {name: "user"}, {name: "account"}, {name: "display_name"}, {name: "status"},
			{name: "is_default"}, {name: "password", writeOnly: true},
			{name: "sys_ext_props", form: extra}, {name: "free_ext_props", form: extra},
		},
		send: func(ctx context.Context, i *importer) error { return i.sendBatches(ctx, accountBatches{}) },
		read: readAccounts,
	}
}

// accountBatches makes requests for sub-accounts: one for each application.
type accountBatches struct{}

func (accountBatches) group(records []*record) [][]int {
	return by(records, func(r *record) string { return r.text("application") })
}

func (accountBatches) done([]*record) {}

func (accountBatches) names(records []*record) []name {
	names := []name{{anApplication, records[0].text("application")}}
	for _, r := range records {
		names = append(names, name{aUser, r.text("user")}, holder(r))
		if account := r.text("account"); account != "" {
			names = append(names, self(r))
		}
	}
	return names
}

// self is the name of a record's sub-account.
func self(r *record) name { return name{anAccount, r.text("application") + "\n" + r.text("account")} }

// holder is the name of the sub-account that a record's user has, if the application allows one each.
func holder(r *record) name { return name{aHolder, r.text("application") + "\n" + r.text("user")} }

// request leaves out what the platform would refuse as a conflict, of which a refusal names one at a time.
func (accountBatches) request(records []*record, found ids) request {
	out := request{operation: "create-accounts", faults: map[int]fault{}, about: aboutItems}
	application, noApplication := found.of(name{anApplication, records[0].text("application")})
	items := make([]any, len(records))
	made, held := map[string]bool{}, map[string]bool{} // by this request
	for n, r := range records {
		user, noUser := found.of(name{aUser, r.text("user")})
		if reason := both(noApplication, noUser); reason != "" {
			out.faults[n] = fault{reason: reason}
			continue
		}
		account := compared(r.text("account"))
		if _, reason := found.of(self(r)); reason == "" || account != "" && made[account] {
			out.faults[n] = fault{"account: is taken", true}
			continue
		}
		has, one := found[holder(r).key()] // "": none yet, but one is allowed
		if one && (has != "" || held[user]) {
			out.faults[n] = fault{"user: " + hasAnother, true}
			continue
		}
		made[account], held[user] = true, true
		item := without(r, "application", "user")
		item["user_id"] = quoted(user)
		items[n] = item
	}
	out.path, out.body = []string{application}, map[string]any{"items": items}
	return out
}

const hasAnother = "has another sub-account, and the application allows one each"

// change makes the requests that change a sub-account: one that replaces it, with what the file does not have as it is,
// and one that switches it on or off.
func (accountBatches) change(
	ctx context.Context, i *importer, r *record, found ids,
) (calls []*session.Call, reason string, err error) {
	id, reason := found.of(self(r))
	switch {
	case reason != "" && i.DryRun && found[holder(r).key()] == "":
		return nil, "", nil // the dry run has not made it
	case reason != "":
		return nil, "user: " + hasAnother, nil
	}
	path := []string{found[name{anApplication, r.text("application")}.key()], id}
	put := &session.Call{Operation: session.Operation("replace-account"), Path: path}
	var is output.Object
	err = i.patiently(ctx, func() (err error) {
		is, err = i.Record(ctx, put)
		return err
	}, func() bool { return false })
	if err != nil {
		return nil, "", err
	}
	item := without(r, "application", "user", "status")
	item["user_id"] = quoted(found[name{aUser, r.text("user")}.key()])
	for _, member := range put.Operation.Members {
		if _, given := item[member.Name]; !given && is.Get(member.Name) != nil {
			item[member.Name] = encoded(is.Get(member.Name))
		}
	}
	put.Body, put.Header = encoded(item), http.Header{"If-Match": {`"` + is.Text("version") + `"`}}
	calls = append([]*session.Call{put}, switched(path, is.Text("status"), r.text("status"))...)
	for _, call := range calls[1:] {
		call.Key = i.progress.key("switch ", r.number)
	}
	return calls, "", nil
}

// switched are the requests that switch a sub-account on or off; none if it is as the file says, or the file says
// nothing.
func switched(path []string, is, status string) []*session.Call {
	if status == "" || status == is {
		return nil
	}
	call := &session.Call{Operation: session.Operation("disable-account"), Path: path}
	if status == "1" {
		call.Operation, call.Query = session.Operation("enable-account"), url.Values{"id": {path[1]}}
	}
	return []*session.Call{call}
}

// readAccounts exports the sub-accounts of all applications, or of one.
func readAccounts(ctx context.Context, s *session.Session, filters map[string]string, out *writer) error {
	applications, err := applicationsOf(ctx, s, filters["app"])
	if err != nil {
		return err
	}
	for _, application := range applications {
		path := []string{application.Text("id")}
		err := pages(ctx, s, "list-accounts", path, nil, func(page []output.Object) error {
			usernames, err := usernamesOf(ctx, s, page, "user_id")
			if err != nil {
				return err
			}
			for _, account := range page {
				line := output.Object{
					{Name: "application", Value: application.Text("name")},
					{Name: "user", Value: usernames[account.Text("user_id")]},
				}
				for _, m := range account {
					if m.Name != "status" || m.Value != "1" {
						line = append(line, m)
					}
				}
				if err := out.write(line); err != nil {
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

// applicationsOf lists the applications, or the one with a name or an id.
func applicationsOf(ctx context.Context, s *session.Session, wanted string) ([]output.Object, error) {
	var list []output.Object
	err := eachApplication(ctx, s, func(application output.Object) error {
		if wanted == "" || folded(application.Text("name")) == folded(wanted) || application.Text("id") == wanted {
			list = append(list, application)
		}
		return nil
	})
	if err == nil && wanted != "" && len(list) == 0 {
		err = failure.NotFoundf("there is no application %q", wanted)
	}
	return list, err
}
