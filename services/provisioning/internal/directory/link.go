package directory

import (
	"context"
	"encoding/json"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/services/questions"
)

// Link says how a link is after a change: nil members stay as they are.
type Link struct {
	ConnectionID string
	ExternalID   *string
	Gone         *bool
	Deleted      bool   // the record itself is deleted
	Event        string // created, adopted, gone or revived; "" for none
}

// PutUser stores the state of a user, and changes its link or makes it. The error, when the transaction ends, is
// apperr.AlreadyExists if the externalId is another's.
func PutUser(ctx context.Context, tx *docstore.Tx, id string, state questions.UserState, link Link) (*User, error) {
	u, isNew, err := loadUser(ctx, tx, id, link.ConnectionID)
	if err != nil {
		return nil, err
	}
	if u.ConnectionID != link.ConnectionID {
		return nil, apperr.Missing("user")
	}
	if len(state.User) > 0 {
		took, err := u.read(state)
		if err != nil {
			return nil, err
		}
		u.Deleted = u.Deleted && !took // an answer that comes after the deletion does not undo it
	}
	u.Deleted = u.Deleted || link.Deleted
	if link.ExternalID != nil {
		u.ExternalID = *link.ExternalID
	}
	if link.Gone != nil {
		u.Gone = *link.Gone
	}
	var doc UserDoc
	if isNew {
		if err := u.takeEarly(ctx, tx); err != nil {
			return nil, err
		}
		doc, err = users.Insert(ctx, tx, u)
	} else {
		doc, err = users.Replace(ctx, tx, u)
	}
	if err != nil {
		return nil, err
	}
	if link.Event != "" && doc.Written() {
		if err := tellLink(ctx, tx, link.Event, &doc, u.ConnectionID, "User", u.ID, u.ExternalID); err != nil {
			return nil, err
		}
	}
	return doc.Value()
}

func loadUser(ctx context.Context, tx *docstore.Tx, id, connectionID string) (u *User, isNew bool, err error) {
	found, err := users.LoadMany(ctx, tx, []string{id})
	if err != nil {
		return nil, false, err
	}
	if len(found) == 0 {
		return &User{Meta: docstore.Meta{ID: id}, ConnectionID: connectionID}, true, nil
	}
	return found[0], false, nil
}

// linkRecord is the record of the events about links.
type linkRecord struct {
	ID           string     `json:"id"`
	TenantID     string     `json:"tenant_id"`
	Version      int64      `json:"version"`
	ConnectionID string     `json:"connection_id"`
	Type         string     `json:"type"`
	ExternalID   string     `json:"external_id"`
	TimeModified clock.Time `json:"time_modified"`
}

func tellLink[T any](
	ctx context.Context, tx *docstore.Tx, action string, doc *docstore.Doc[T],
	connectionID, kind, id, externalID string,
) error {
	record, err := json.Marshal(linkRecord{
		ID: id, TenantID: tenantOf(ctx), Version: doc.Version, ConnectionID: connectionID, Type: kind,
		ExternalID: externalID, TimeModified: tx.Now,
	})
	if err != nil {
		return err
	}
	source := map[string]string{"User": "/provisioning/users", "Group": "/provisioning/groups"}[kind]
	return outbox.Append(ctx, tx, outbox.Event{ // without former values: they are those of the copy
		Entity: "scim_link", Action: action, Source: source, Subject: id, Revision: doc.Revision(), Record: record,
	})
}
