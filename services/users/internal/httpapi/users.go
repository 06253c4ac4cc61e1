package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

func (a *api) registerUsers(s *rest.Server) {
	rest.DescribedAs[user.ManagedBy, rest.OrNull[user.ManagedBy]](s)
	rest.Handle(s, rest.Op{
		ID: "create-user", Method: http.MethodPost, Path: "/v1/users", Scope: auth.UsersWrite, Summary: "Create a user",
		Doc:    "With `password` the scope `users:secrets` is needed, too.",
		Errors: []apperr.Kind{apperr.AlreadyExists}, Request: exampleNewUser,
	}, a.createUser)
	rest.Handle(s, rest.Op{
		ID: "list-users", Method: http.MethodGet, Path: "/v1/users", Scope: auth.UsersRead,
		Summary: "List and search users",
		Doc: "`keyword` alone matches the start of username, display_name, email, mobile or employee_number, or an " +
			"id exactly. With `search_type=generic` every word of it must be the start of a word in these members, " +
			"in real_name or in the texts of the ext props; in Chinese, Japanese and Korean text any run of " +
			"characters matches. Case, accents and width are ignored.",
	}, a.listUsers)
	users := rest.Resource[user.User, user.User, docstore.Paging]{
		Server: s, ID: "user", One: "a user", Path: "/v1/users", Read: auth.UsersRead, Write: auth.UsersWrite,
	}
	users.Get(rest.Op{}, a.users.Get)
	users.Update(rest.Op{
		Doc:     "JSON merge patch (RFC 7396). Password, lock and real-name members have operations of their own.",
		Errors:  []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState, apperr.ManagedElsewhere},
		Request: map[string]any{"display_name": "李 伟", "email": nil},
	}, a.users.Update)
	users.Delete(rest.Op{
		Doc: "The user's stored credentials and avatar are deleted, too; other services end memberships, grants and " +
			"sub-accounts when they receive the event `user.deleted`.",
	}, a.users.Delete)
	users.Action("unlock", rest.Op{}, a.users.Unlock)
	users.Action("reinstate", rest.Op{
		Summary: "Take back a resignation", Errors: []apperr.Kind{apperr.InvalidState},
		Doc: "One that has taken effect, or one that is scheduled.",
	}, a.users.Reinstate)
	rest.Handle(s, rest.Op{
		ID: "delete-users", Method: http.MethodDelete, Path: "/v1/batch/users", Scope: auth.UsersWrite,
		Summary: "Delete users",
		Doc:     "All or nothing. Ids of users that do not exist are ignored.",
	}, a.deleteUsers)
}

// NewUser is a user to create. Members of locks and real names must be those of a new user.
type NewUser struct {
	rest.MembersOf[user.User]
	Username string `json:"username"`
	Password string `json:"password,omitempty" writeOnly:"true" doc:"8…256 characters; needs the scope users:secrets"`
}

func (a *api) createUser(ctx context.Context, in *rest.Creation[NewUser]) (rest.Record[user.User], error) {
	var draft struct {
		user.User
		Password string `json:"password"`
	}
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[user.User]{}, err
	}
	if draft.Password != "" && !auth.PrincipalFrom(ctx).Has(auth.UsersSecrets) {
		return rest.Record[user.User]{}, apperr.New(apperr.Forbidden, "the scope %s is needed to set a password",
			auth.UsersSecrets)
	}
	return rest.RecordOf[user.User](a.users.Create(ctx, draft.User, draft.Password))
}

// UserFilter holds what users can be selected by.
type UserFilter struct {
	SearchType   string        `query:"search_type" enum:"generic" doc:"generic: full text; absent: the basic members"`
	Keyword      string        `query:"keyword" maxLength:"256" doc:"What to search for" example:"li"`
	ModifiedFrom string        `query:"time_modified_from" maxLength:"64" doc:"Changed at this time or later; RFC 3339 or a date" example:"2026-01-31"`
	ModifiedTo   string        `query:"time_modified_to" maxLength:"64" doc:"Changed before this time"`
	Status       string        `query:"status" enum:"1,0,resigned"`
	Locked       docstore.Flag `query:"locked" doc:"Locked now, or not"`
	docstore.Selection
}

func (f UserFilter) read() (user.Filter, error) {
	filter := user.Filter{Keyword: strings.TrimSpace(f.Keyword), FullText: f.SearchType == "generic",
		Status: user.Status(f.Status)}
	var faults apperr.Faults
	filter.ModifiedFrom = rest.ReadTime(&faults, "time_modified_from", f.ModifiedFrom)
	filter.ModifiedTo = rest.ReadTime(&faults, "time_modified_to", f.ModifiedTo)
	if f.Locked != "" {
		locked := f.Locked.Or(false)
		filter.Locked = &locked
	}
	filter.IDs = f.ReadIDs(&faults)
	return filter, faults.Err()
}

type listUsersInput struct {
	UserFilter
	docstore.Paging
}

func (a *api) listUsers(ctx context.Context, in *listUsersInput) (rest.List[user.User], error) {
	filter, err := in.read()
	if err != nil {
		return rest.List[user.User]{}, err
	}
	page, err := a.users.List(ctx, filter, in.Paging)
	return rest.ListOf[user.User](in.Paging, page, err)
}

type idsInput struct {
	Body struct {
		IDs []string `json:"ids" minItems:"1" maxItems:"1000" doc:"1…1000 ids" example:"[\"1048577\"]"`
	}
}

func (a *api) deleteUsers(ctx context.Context, in *idsInput) (rest.Empty, error) {
	return rest.Empty{}, a.users.DeleteMany(ctx, in.Body.IDs)
}

var exampleNewUser = map[string]any{
	"username": "li.wei", "display_name": "李伟", "email": "li.wei@acme.test", "mobile": "+8613800000000",
	"employee_number": "A-17",
	"locale":          "zh-CN", "zoneinfo": "Asia/Shanghai",
}
