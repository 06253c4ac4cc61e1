package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/applications/internal/account"
)

func (a *api) registerAccounts(s *rest.Server) {
	rest.Handle(s, rest.Op{
		ID: "create-account", Method: http.MethodPost, Path: "/v1/applications/{id}/accounts",
		Scope:   auth.ApplicationsWrite,
		Summary: "Create a sub-account", Errors: []apperr.Kind{apperr.AlreadyExists}, Request: exampleNewAccount,
		Doc: "A user's first sub-account in an application is the default. If `multi_account_enabled` is 1, a " +
			"later one becomes the default if its `is_default` is 1.",
	}, a.createAccount)
	rest.Handle(s, rest.Op{
		ID: "create-accounts", Method: http.MethodPost, Path: "/v1/batch/applications/{id}/accounts",
		Scope:   auth.ApplicationsWrite,
		Summary: "Create sub-accounts", Errors: []apperr.Kind{apperr.AlreadyExists},
		Doc:     "All or nothing. Each item is handled as by `create-account`.",
		Request: map[string]any{"items": []any{exampleNewAccount}},
	}, a.createAccounts)
	rest.Handle(s, rest.Op{
		ID: "list-accounts", Method: http.MethodGet, Path: "/v1/applications/{id}/accounts",
		Scope:   auth.ApplicationsRead,
		Summary: "List sub-accounts", Doc: "All filters must match. `keyword` is a part of account or display name.",
	}, a.listAccounts)
	rest.Handle(s, rest.Op{
		ID: "query-accounts", Method: http.MethodPost, Path: "/v1/applications/{id}/accounts-query",
		IfMatchParam: rest.NoRecord,
		Scope:        auth.ApplicationsRead, NoReplay: true,
		Summary: "Query sub-accounts",
		Doc:     "By conditions on user_id, account, display_name and status; `contains` on account and display_name.",
		Request: map[string]any{"conditions": []any{map[string]any{"field": "account", "op": "prefix", "value": "li"}},
			"match": "all"},
	}, a.queryAccounts)
	rest.Handle(s, rest.Op{
		ID: "list-accounts-of-user", Method: http.MethodGet, Path: "/v1/accounts", Scope: auth.ApplicationsRead,
		Summary: "List a user's sub-accounts",
		Doc: "In all applications. An unknown user has none. `page_sort` by account or display_name sorts within " +
			"each application.",
	}, a.listAccountsOfUser)
	a.registerAccount(s)
}

func (a *api) registerAccount(s *rest.Server) {
	const one = "/v1/applications/{app_id}/accounts/{id}"
	rest.Handle(s, rest.Op{
		ID: "get-account", Method: http.MethodGet, Path: one, Scope: auth.ApplicationsRead,
		Summary: "Get a sub-account",
	}, a.getAccount)
	rest.Handle(s, rest.Op{
		ID: "replace-account", Method: http.MethodPut, Path: one, Scope: auth.ApplicationsWrite,
		Summary: "Replace a sub-account",
		Doc: "Replaces all editable members; an absent `status` or `is_default` stays as it is. The user can't be " +
			"changed.",
		Errors: []apperr.Kind{apperr.AlreadyExists}, Request: exampleNewAccount,
	}, a.replaceAccount)
	rest.Handle(s, rest.Op{
		ID: "delete-account", Method: http.MethodDelete, Path: one, Scope: auth.ApplicationsWrite,
		Summary: "Delete a sub-account",
		Doc:     "If it was the default, the user's oldest other sub-account becomes the default.",
	}, a.deleteAccount)
	rest.Handle(s, rest.Op{
		ID: "enable-account", Method: http.MethodPost, Path: one + "/enable", Scope: auth.ApplicationsWrite,
		Summary: "Enable a sub-account",
	}, a.enableAccount)
	rest.Handle(s, rest.Op{
		ID: "disable-account", Method: http.MethodPost, Path: one + "/disable", Scope: auth.ApplicationsWrite,
		Summary: "Disable a sub-account",
	}, a.disableAccount)
}

type createAccountInput struct {
	rest.ByID
	Body rest.JSON[rest.Input[account.Account]]
}

func (a *api) createAccount(ctx context.Context, in *createAccountInput) (rest.Record[account.Account], error) {
	var draft account.Account
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[account.Account]{}, err
	}
	return rest.RecordOf[account.Account](a.accounts.Create(ctx, in.ID, draft))
}

type createAccountsInput struct {
	rest.ByID
	Body struct {
		Items []rest.JSON[rest.Input[account.Account]] `json:"items" minItems:"1" maxItems:"1000" nullable:"false" doc:"1…1000 sub-accounts; all or none"`
	}
}

func (a *api) createAccounts(ctx context.Context, in *createAccountsInput) (rest.BatchOf[account.Account], error) {
	drafts := make([]account.Account, len(in.Body.Items))
	for i, item := range in.Body.Items {
		if err := item.Into(&drafts[i]); err != nil {
			return rest.BatchOf[account.Account]{}, err
		}
	}
	return rest.BatchFrom[account.Account](a.accounts.CreateMany(ctx, in.ID, drafts))
}

type listAccountsInput struct {
	rest.ByID
	UserID      string `query:"user_id" maxLength:"64"`
	Account     string `query:"account" maxLength:"256"`
	DisplayName string `query:"display_name" maxLength:"256"`
	Status      string `query:"status" enum:"1,0"`
	Keyword     string `query:"keyword" maxLength:"256" doc:"A part of account or display name"`
	docstore.Paging
}

func (a *api) listAccounts(ctx context.Context, in *listAccountsInput) (rest.List[account.Account], error) {
	page, err := a.accounts.List(ctx, in.ID, account.Filter{
		UserID: in.UserID, Account: in.Account, DisplayName: in.DisplayName, Status: in.Status, Keyword: in.Keyword,
	}, in.Paging)
	return rest.ListOf[account.Account](in.Paging, page, err)
}

type listAccountsOfUserInput struct {
	UserID string `query:"user_id" required:"true" minLength:"1" maxLength:"64" doc:"The user's id" example:"1048601"`
	docstore.Paging
}

func (a *api) listAccountsOfUser(ctx context.Context, in *listAccountsOfUserInput) (rest.List[account.Account], error) {
	page, err := a.accounts.OfUser(ctx, in.UserID, in.Paging)
	return rest.ListOf[account.Account](in.Paging, page, err)
}

type queryAccountsInput struct {
	rest.ByID
	Body AccountQuery
	docstore.Paging
}

// AccountQuery are conditions on sub-accounts.
type AccountQuery struct {
	Conditions []AccountCondition `json:"conditions" maxItems:"20" nullable:"false" doc:"What to select by"`
	Match      string             `json:"match,omitempty" enum:"all,any" doc:"all or any of the conditions" default:"all"`
}

// AccountCondition is one condition.
type AccountCondition struct {
	Field string    `json:"field" enum:"user_id,account,display_name,status" doc:"A member of the sub-account" example:"account"`
	Op    string    `json:"op" enum:"eq,in,prefix,contains" doc:"How it is compared" example:"prefix"`
	Value OneOrMany `json:"value"`
}

// OneOrMany is a text, or an array of texts.
type OneOrMany []string

// UnmarshalJSON accepts both.
func (v *OneOrMany) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*v = OneOrMany{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(v))
}

// Schema is the schema of both.
func (OneOrMany) Schema(huma.Registry) *huma.Schema {
	text := &huma.Schema{Type: huma.TypeString}
	texts := &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}}
	return &huma.Schema{OneOf: []*huma.Schema{text, texts}, Description: "A text; for in, a list of up to 200"}
}

func (a *api) queryAccounts(ctx context.Context, in *queryAccountsInput) (rest.List[account.Account], error) {
	conditions := account.Conditions{Any: in.Body.Match == "any"}
	for _, c := range in.Body.Conditions {
		conditions.List = append(conditions.List, account.Condition{Field: c.Field, Op: c.Op, Values: c.Value})
	}
	page, err := a.accounts.Query(ctx, in.ID, conditions, in.Paging)
	return rest.ListOf[account.Account](in.Paging, page, err)
}

// AccountPath is the path of one sub-account.
type AccountPath struct {
	AppID string `path:"app_id" maxLength:"64" doc:"The application's id" example:"1048577"`
	rest.ByID
}

func (a *api) getAccount(ctx context.Context, in *AccountPath) (rest.Record[account.Account], error) {
	return rest.RecordOf[account.Account](a.accounts.Get(ctx, in.AppID, in.ID))
}

type replaceAccountInput struct {
	AccountPath
	Body rest.JSON[rest.Input[account.Account]]
}

func (a *api) replaceAccount(ctx context.Context, in *replaceAccountInput) (rest.Record[account.Account], error) {
	var draft account.Account
	if err := in.Body.Into(&draft); err != nil {
		return rest.Record[account.Account]{}, err
	}
	return rest.RecordOf[account.Account](a.accounts.Replace(ctx, in.AppID, in.ID, draft))
}

func (a *api) deleteAccount(ctx context.Context, in *AccountPath) (rest.Empty, error) {
	return rest.Empty{}, a.accounts.Delete(ctx, in.AppID, in.ID)
}

type enableAccountInput struct {
	AccountPath
	Same string `query:"id" required:"true" maxLength:"64" doc:"Must repeat the sub-account's id"`
}

func (a *api) enableAccount(ctx context.Context, in *enableAccountInput) (rest.Empty, error) {
	if in.Same != in.ID {
		return rest.Empty{}, apperr.Invalid("query.id", "must be the id of the path")
	}
	return rest.Empty{}, a.accounts.Enable(ctx, in.AppID, in.ID)
}

func (a *api) disableAccount(ctx context.Context, in *AccountPath) (rest.Empty, error) {
	return rest.Empty{}, a.accounts.Disable(ctx, in.AppID, in.ID)
}

var exampleNewAccount = map[string]any{"user_id": "1048601", "account": "liwei", "display_name": "李伟"}
