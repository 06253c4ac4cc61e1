package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

func (a *api) registerUsers(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "create-user", Method: http.MethodPost, Path: "/v1/users", Scope: auth.UsersWrite, Summary: "Create a user",
		Doc:    "With `password` the scope `users:secrets` is needed, too.",
		Errors: []apperr.Kind{apperr.AlreadyExists}, Request: exampleNewUser, Response: exampleUser,
	}, a.createUser)
	rest.Handle(s, rest.Op{
		ID: "list-users", Method: http.MethodGet, Path: "/v1/users", Scope: auth.UsersRead,
		Summary: "List and search users",
		Doc: "`keyword` alone matches the start of username, display_name, email, mobile or employee_number, or an " +
			"id exactly. With `search_type=generic` every word of it must be the start of a word in these members, " +
			"in real_name or in the texts of the ext props; in Chinese, Japanese and Korean text any run of " +
			"characters matches. Case, accents and width are ignored.",
		Response: map[string]any{"items": []any{exampleUser}, "total": 1, "page_num": 1, "page_size": 20},
	}, a.listUsers)
	rest.Handle(s, rest.Op{
		ID: "get-user", Method: http.MethodGet, Path: "/v1/users/{id}", Scope: auth.UsersRead, Summary: "Get a user",
		Response: exampleUser,
	}, rest.One[User](a.users.Get))
	rest.Handle(s, rest.Op{
		ID: "update-user", Method: http.MethodPatch, Path: "/v1/users/{id}", Scope: auth.UsersWrite,
		Summary: "Change a user",
		Doc:     "JSON merge patch (RFC 7396). Password, lock and real-name members have operations of their own.",
		Errors:  []apperr.Kind{apperr.AlreadyExists, apperr.InvalidState, apperr.ManagedElsewhere},
		Request: map[string]any{"display_name": "李 伟", "email": nil}, Response: exampleUser,
	}, rest.Update[User, UserInput](a.users.Update))
	rest.Handle(s, rest.Op{
		ID: "delete-user", Method: http.MethodDelete, Path: "/v1/users/{id}", Scope: auth.UsersWrite,
		Summary: "Delete a user",
		Doc: "The user's stored credentials and avatar are deleted, too; other services end memberships, grants and " +
			"sub-accounts when they receive the event `user.deleted`.",
		Response: map[string]any{"id": "1048577"},
	}, rest.Delete(a.users.Delete))
	rest.Handle(s, rest.Op{
		ID: "delete-users", Method: http.MethodDelete, Path: "/v1/batch/users", Scope: auth.UsersWrite,
		Summary: "Delete users",
		Doc:     "All or nothing. Ids of users that do not exist are ignored.",
		Request: map[string]any{"ids": []string{"1048577"}}, Response: map[string]any{},
	}, a.deleteUsers)
}

type createUserInput struct {
	Body rest.JSON[NewUser]
}

func (a *api) createUser(ctx context.Context, in *createUserInput) (rest.Record[User], error) {
	var draft struct {
		user.User
		Password string `json:"password"`
	}
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[User]{}, err
	}
	if draft.Password != "" && !auth.PrincipalFrom(ctx).Has(auth.UsersSecrets) {
		return rest.Record[User]{}, apperr.New(apperr.Forbidden, "the scope %s is needed to set a password",
			auth.UsersSecrets)
	}
	return rest.RecordOf[User](a.users.Create(ctx, draft.User, draft.Password))
}

// UserFilter holds what users can be selected by.
type UserFilter struct {
	SearchType   string        `query:"search_type" enum:"generic" doc:"generic: full text; absent: the basic members"`
	Keyword      string        `query:"keyword" maxLength:"256" doc:"What to search for" example:"li"`
	ModifiedFrom string        `query:"time_modified_from" maxLength:"64" doc:"Changed at this time or later; RFC 3339 or a date" example:"2026-01-31"`
	ModifiedTo   string        `query:"time_modified_to" maxLength:"64" doc:"Changed before this time"`
	Status       string        `query:"status" enum:"1,0,resigned"`
	Locked       docstore.Flag `query:"locked" doc:"Locked now, or not"`
	rest.Selection
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

func (a *api) listUsers(ctx context.Context, in *listUsersInput) (rest.List[User], error) {
	filter, err := in.read()
	if err != nil {
		return rest.List[User]{}, err
	}
	page, err := a.users.List(ctx, filter, in.Paging)
	return rest.ListOf[User](in.Paging, page, err)
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

var exampleUser = json.RawMessage(
	`{"id":"1048577","tenant_id":"acme","version":1,"time_created":"2026-01-31T09:30:00.000Z","time_modified":"2026-01-31T09:30:00.000Z",` +
		`"username":"li.wei","display_name":"李伟","email":"li.wei@acme.test","mobile":"+8613800000000","employee_number":"A-17","gender":"","locale":"zh-CN","zoneinfo":"Asia/Shanghai",` +
		`"status":"1","email_verified":false,"mobile_verified":false,"must_change_password":false,"sys_ext_props":{},"free_ext_props":{},"locked":false,"lock_reason":"","locked_until":null,` +
		`"real_name_status":"none","real_name":"","id_number_masked":"","avatar_url":"","password_set":false,"time_password_changed":null,"time_last_login":null,"time_resigned":null,"managed_by":null}`)
