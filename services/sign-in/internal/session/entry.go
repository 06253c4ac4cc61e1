package session

import (
	"context"
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
)

// Entry is what events tell of a person at the door of an application.
type Entry struct {
	AppID     string
	Protocol  string
	FlowID    string // "" without a page
	Address   string
	Browser   string
	Reason    string // why it failed or was refused
	RuleID    string // of the permissions service, if it decided
	Fresh     bool   // the person has signed in for it
	SessionID string
}

// told is an Entry in the form of events, the record of sign_in.completed, refused and failed.
type told struct {
	ID          string     `json:"id"`
	TenantID    string     `json:"tenant_id"`
	TimeCreated clock.Time `json:"time_created"`
	UserID      string     `json:"user_id"` // empty if nobody is known
	SessionID   string     `json:"session_id"`
	AppID       string     `json:"app_id"`
	Protocol    string     `json:"protocol"`
	FlowID      string     `json:"flow_id"`
	Fresh       bool       `json:"fresh"`
	Address     string     `json:"address"`
	Browser     string     `json:"browser"`
	Reason      string     `json:"reason"`
	RuleID      string     `json:"rule_id"`
}

var entryKind = outbox.Kind{Entity: "sign_in", Source: "/sign-ins"}

func (e Entry) tell(ctx context.Context, tx *docstore.Tx, action, userID string, doc *Doc) error {
	s, err := doc.Value()
	if err != nil {
		return err
	}
	e.SessionID = s.ID
	return TellEntry(ctx, tx, e, action, userID, s.TenantID, doc)
}

// TellEntry tells of an entry about a document that the transaction has written.
func TellEntry[T any](
	ctx context.Context, tx *docstore.Tx, e Entry, action, userID, tenant string, doc *docstore.Doc[T],
) error {
	record, err := json.Marshal(told{
		ID: doc.ID, TenantID: tenant, TimeCreated: tx.Now, UserID: userID, SessionID: e.SessionID, AppID: e.AppID,
		Protocol: e.Protocol, FlowID: e.FlowID, Fresh: e.Fresh, Address: e.Address, Browser: e.Browser,
		Reason: e.Reason,
		RuleID: e.RuleID,
	})
	if err != nil {
		return err
	}
	return outbox.TellAs(ctx, tx, entryKind, action, doc, record, nil)
}
