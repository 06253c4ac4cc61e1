package cas

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// lifetime is how long a ticket can be validated.
const lifetime = 60 * time.Second

// Ticket is a service ticket (§3.1). Its id is the SHA-256 of the ticket, so nobody can use what the store has. Once it
// is validated, it stays until the session ends, because the application knows its own session by the ticket.
type Ticket struct {
	docstore.Meta
	AppID       string     `json:"app_id"`
	SessionID   string     `json:"session_id"`
	Service     string     `json:"service"`
	User        string     `json:"user"`
	Attributes  Attributes `json:"attributes,omitzero"` // none once it is validated
	SessionEnds clock.Time `json:"session_ends"`
	Name        string     `json:"name,omitempty"` // the ticket itself, once it is validated
	TimeExpires clock.Time `json:"time_expires"`   // when the document is removed
}

// Attributes are what an application learns of the person beside the name (Appendix A).
type Attributes struct {
	AuthTime       clock.Time `json:"auth_time"`
	FromNewLogin   bool       `json:"from_new_login"`
	Groups         []string   `json:"groups,omitempty"`
	UserID         string     `json:"user_id"`
	Username       string     `json:"username,omitempty"`
	DisplayName    string     `json:"display_name,omitempty"`
	Email          string     `json:"email,omitempty"`
	EmployeeNumber string     `json:"employee_number,omitempty"`
}

const bySession = "session_id"

var tickets = docstore.Define(docstore.Schema[Ticket]{
	Name: "cas_tickets", Noun: "ticket",
	Indexes: []docstore.Index[Ticket]{docstore.ByText(bySession, func(t *Ticket) string { return t.SessionID })},
	Due:     func(t *Ticket) clock.Time { return t.TimeExpires },
})

// Collections are those that the package stores in.
func Collections() []*docstore.Def { return []*docstore.Def{tickets.Def()} }

// Due lists the tickets that can be removed, of all tenants.
func Due(ctx context.Context, s *docstore.Store, limit int) ([]docstore.Ref, error) {
	return tickets.Due(ctx, s, limit)
}

// Expire removes a ticket that is due.
func (s *Server) Expire(ctx context.Context, id string) error {
	return docstore.Do(ctx, s.store, func(tx *docstore.Tx) error {
		t, err := tickets.Load(ctx, tx, id)
		if err != nil || tx.Now.Before(t.TimeExpires) { // it was validated meanwhile
			return err
		}
		_, err = tickets.Delete(ctx, tx, t)
		return err
	})
}

// issue stores a new ticket. It has 29 characters: clients need take no more than 32 (§3.1.1).
func (s *Server) issue(
	ctx context.Context, r protocol.Request, service string, p protocol.Person,
) (name string, err error) {
	name = "ST-" + rand.Text()
	t := &Ticket{
		Meta: docstore.Meta{ID: idOf(name)}, AppID: r.AppID, SessionID: p.SessionID,
		Service:     withoutSession(service),
		SessionEnds: p.SessionEnds, TimeExpires: s.store.Now().Add(lifetime),
	}
	if err := t.describe(r, p); err != nil {
		return "", err
	}
	if t.Attributes.Groups, err = s.groups(ctx, p.UserID); err != nil {
		return "", err
	}
	return name, docstore.Do(ctx, s.store, func(tx *docstore.Tx) error {
		_, err := tickets.Insert(ctx, tx, t)
		return err
	})
}

// describe sets what the application learns of the person, except for the groups.
func (t *Ticket) describe(r protocol.Request, p protocol.Person) error {
	var user struct {
		Username       string `json:"username"`
		DisplayName    string `json:"display_name"`
		Email          string `json:"email"`
		EmployeeNumber string `json:"employee_number"`
	}
	if err := json.Unmarshal(p.User, &user); err != nil {
		return fmt.Errorf("the record of a user: %w", err)
	}
	t.Attributes = Attributes{
		AuthTime: p.AuthTime, FromNewLogin: p.New || r.Fresh, UserID: p.UserID,
		Username: user.Username, DisplayName: user.DisplayName, Email: user.Email, EmployeeNumber: user.EmployeeNumber,
	}
	t.User = user.Username
	if p.SubAccount != nil {
		t.User = p.SubAccount.Account
	}
	return nil
}

func idOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}
