package saml

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// Participant is an application in a session, under the name that it knows the person by. Its id is a hash of all.
type Participant struct {
	docstore.Meta
	SessionID   string     `json:"session_id"`
	AppID       string     `json:"app_id"`
	Name        NameID     `json:"name"`
	SessionEnds clock.Time `json:"session_ends"` // when the document is removed
}

const (
	bySession = "session_id"
	byName    = "name"
)

var participants = docstore.Define(docstore.Schema[Participant]{
	Name: "saml_participants", Noun: "participant",
	Indexes: []docstore.Index[Participant]{
		docstore.ByText(bySession, func(p *Participant) string { return p.SessionID }),
		docstore.ByText(byName, func(p *Participant) string { return hash(p.AppID, p.Name.Value) }),
	},
	Due: func(p *Participant) clock.Time { return p.SessionEnds },
})

// Used is a message that must not be taken twice: a request of an application, whose id is remembered, or a request of
// ours, which is answered once. Its id is a hash of the application and the message's id.
type Used struct {
	docstore.Meta
	AppID       string     `json:"app_id"`
	Chain       string     `json:"chain,omitempty"` // of a request of ours: what it is a part of
	TimeExpires clock.Time `json:"time_expires"`
}

var messages = docstore.Define(docstore.Schema[Used]{
	Name: "saml_messages", Noun: "message",
	Due: func(u *Used) clock.Time { return u.TimeExpires },
})

// Collections are those that the package stores in.
func Collections() []*docstore.Def {
	return []*docstore.Def{keys.Def(), participants.Def(), messages.Def()}
}

// Expiring is a collection whose documents are removed when they are due, by a service.DueTask.
type Expiring struct {
	Name string
	Due  func(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error)
	Do   func(ctx context.Context, id string) error
}

// Expiring lists the collections whose documents are removed when they are due.
func (p *Provider) Expiring() []Expiring {
	return []Expiring{
		{"forget SAML participants", participants.Due, func(ctx context.Context, id string) error {
			return remove(ctx, p.Store, participants, id)
		}},
		{"forget SAML messages", messages.Due, func(ctx context.Context, id string) error {
			return remove(ctx, p.Store, messages, id)
		}},
	}
}

func remove[T any](ctx context.Context, s *docstore.Store, c *docstore.Collection[T], id string) error {
	return docstore.Do(ctx, s, func(tx *docstore.Tx) error {
		v, err := c.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		_, err = c.Delete(ctx, tx, v)
		return err
	})
}

// hash makes an id of texts that have no NUL.
func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

var errReplayed = page("This sign-in is finished already. Please open the application again.")

// enter notes that the application is in the session, and that its request is answered.
func (p *Provider) enter(
	ctx context.Context, c questions.Client, m message, person protocol.Person, name NameID,
) error {
	entry := Participant{
		Meta:      docstore.Meta{ID: hash(person.SessionID, c.AppID, name.Format, name.Value)},
		SessionID: person.SessionID, AppID: c.AppID, Name: name, SessionEnds: person.SessionEnds,
	}
	for tries := 1; ; tries++ {
		err := docstore.Do(ctx, p.Store, func(tx *docstore.Tx) error {
			if m.ID != "" {
				if err := remember(ctx, tx, c.AppID, m.ID, "", tx.Now.Add(maxAge+skew)); err != nil {
					return err
				}
			}
			found, err := participants.LoadMany(ctx, tx, []string{entry.ID})
			if err != nil || len(found) > 0 {
				return err
			}
			fresh := entry
			_, err = participants.Insert(ctx, tx, &fresh)
			return err
		})
		refused, taken := errors.AsType[*docstore.DuplicateError](err)
		switch {
		case !taken || tries == 3:
			return err
		case refused.Collection == messages.Def().Name:
			return errReplayed
		} // else another request of the session has entered at the same moment
	}
}

// remember stores a message's id. The error is *docstore.DuplicateError if it is stored already; it may come from the
// end of the transaction only.
func remember(ctx context.Context, tx *docstore.Tx, appID, id, chain string, until clock.Time) error {
	_, err := messages.Insert(ctx, tx, &Used{
		Meta: docstore.Meta{ID: hash(appID, id)}, AppID: appID, Chain: chain, TimeExpires: until,
	})
	return err
}
