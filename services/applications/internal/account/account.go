// Package account is the domain of sub-accounts: the accounts that users have in applications.
package account

import (
	"encoding/json"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/secret"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/applications/internal/toggle"
)

// Account is a sub-account record. It has the same JSON form in the API, in events and in the store.
type Account struct {
	docstore.Meta
	AppID  string `json:"app_id" readOnly:"true" doc:"The application" example:"1048577"`
	UserID string `json:"user_id" required:"true" doc:"Whose it is" example:"1048601"`
	Profile
}

// Profile holds the members that create and update may set.
type Profile struct {
	Account      string          `json:"account" required:"true" doc:"1…256 characters; unique in the application without regard to case and width" example:"liwei"`
	DisplayName  string          `json:"display_name" doc:"Up to 256 characters" example:"李伟"`
	Status       string          `json:"status" enum:"1,0" doc:"Changed by enable and disable" example:"1"`
	IsDefault    string          `json:"is_default" enum:"1,0" doc:"1 for exactly one of a user's sub-accounts in an application" example:"1"`
	Password     secret.Text     `json:"password" doc:"Is kept, without effect: nothing fills in forms; reads as ****** if there is one, which keeps it when written back" example:""`
	SysExtProps  json.RawMessage `json:"sys_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	FreeExtProps json.RawMessage `json:"free_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
}

// Doc is a sub-account as read or written.
type Doc = docstore.Doc[Account]

// The indexes. Their values start with the application's id, so that an application's sub-accounts are one range.
const (
	byApp         = "app_id"
	byAccount     = "account"
	byUser        = "user_id" // over all applications
	byHolder      = "holder"  // the application's id, the user's
	byDefault     = "default" // the same, only for default sub-accounts
	byDisplayName = "display_name"
	byStatus      = "status"
	byAccountPart = "account_part"
	byNamePart    = "display_name_part"
	byTimeCreated = "time_created"
)

var accounts = outbox.Define("account", "/applications/accounts", docstore.Schema[Account]{
	Name: "accounts", Noun: "sub-account",
	Sortable: []string{byTimeCreated, byAccount, byDisplayName},
	Indexes: []docstore.Index[Account]{
		docstore.Facet(docstore.ByText(byApp, func(a *Account) string { return a.AppID }),
			byTimeCreated, byAccount, byDisplayName),
		docstore.Unique(docstore.ByText(byAccount, func(a *Account) string {
			return within(a.AppID, textindex.Key(a.Account))
		}), "account"),
		docstore.Grouped(docstore.ByText(byUser, func(a *Account) string { return a.UserID }), byTimeCreated),
		docstore.ByText(byHolder, func(a *Account) string { return within(a.AppID, a.UserID) }),
		docstore.Unique(docstore.ByText(byDefault, func(a *Account) string {
			if a.IsDefault != toggle.On {
				return ""
			}
			return within(a.AppID, a.UserID)
		}), "is_default"),
		docstore.ByText(byDisplayName, func(a *Account) string {
			return within(a.AppID, textindex.Key(a.DisplayName))
		}),
		docstore.ByText(byStatus, func(a *Account) string { return within(a.AppID, a.Status) }),
		docstore.ByList(byAccountPart, func(a *Account) []string { return parts(a.AppID, a.Account) }),
		docstore.ByList(byNamePart, func(a *Account) []string { return parts(a.AppID, a.DisplayName) }),
		docstore.ByNumber(byTimeCreated, func(a *Account) docstore.Value { return docstore.Moment(a.TimeCreated) }),
	},
	Sealed: func(a *Account) []docstore.Sealed {
		// It is for one application and one user, which never change. Nothing sends it yet.
		return []docstore.Sealed{docstore.Seal("password", &a.Password, docstore.NotSent)}
	},
})

func within(appID, text string) string { return appID + "/" + text }

func parts(appID, text string) []string {
	return textindex.Grams(within(appID, ""), textindex.Key(text))
}

// holder is a user who has sub-accounts of an application, with their number. Every transaction that adds or removes
// one changes this document, so that two of them cannot run at the same time.
type holder struct {
	docstore.Meta        // the id is the application's and the user's
	AppID         string `json:"app_id"`
	Accounts      int64  `json:"accounts"`
}

const bySeveral = "several"

var holders = docstore.Define(docstore.Schema[holder]{
	Name: "account_holders", Noun: "user with sub-accounts", NoIfMatch: true,
	Indexes: []docstore.Index[holder]{
		docstore.ByText(bySeveral, func(h *holder) string {
			if h.Accounts < 2 {
				return ""
			}
			return h.AppID
		}),
	},
})

func holderID(appID, userID string) string { return appID + "." + userID }

// departure records the last event about a user who has left or returned. With it each event counts once, however often
// it is delivered, and a user who leaves after the users service was asked gets no sub-account.
type departure struct {
	docstore.Meta       // the id is the user's
	Sequence      int64 `json:"sequence"` // of the last event
	Gone          bool  `json:"gone"`     // deleted or resigned, not reinstated
}

var departures = docstore.Define(docstore.Schema[departure]{Name: "departed_users", Noun: "user", NoIfMatch: true})

// remainder is a deleted application some of whose sub-accounts still have to be deleted.
type remainder struct{ docstore.Meta }

var remainders = docstore.Define(docstore.Schema[remainder]{
	Name: "deleted_applications", Noun: "deleted application", NoIfMatch: true,
	Due: func(r *remainder) clock.Time { return r.TimeCreated },
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def {
	return []*docstore.Def{accounts.Def(), holders.Def(), departures.Def(), remainders.Def()}
}

// Limits of members, in characters.
const (
	maxAccount     = 256
	maxDisplayName = 256
	maxPassword    = 1024
	maxID          = 64
)

// check reports every fault.
func (a *Account) check(faults *apperr.Faults) {
	faults.Check(a.UserID != "" && len(a.UserID) <= maxID && !strings.ContainsAny(a.UserID, "/."), "user_id",
		"must be a user's id")
	faults.Name("account", a.Account, maxAccount)
	faults.Text("display_name", a.DisplayName, maxDisplayName)
	faults.Switch("status", &a.Status, toggle.On)
	faults.Check(a.IsDefault == "" || a.IsDefault == toggle.On || a.IsDefault == toggle.Off, "is_default",
		`must be "1" or "0"`)
	if password, given := a.Password.Given(); given {
		faults.Text("password", password, maxPassword)
	}
	faults.Props("sys_ext_props", &a.SysExtProps)
	faults.Props("free_ext_props", &a.FreeExtProps)
}
