// Package gate holds removals that come in large numbers: a mistake in the client's directory would otherwise disable a
// company. It also holds memberships that give people scopes of the platform's API. What is held changes nothing until
// a person has approved it.
package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/patch"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// Request is a held request.
type Request struct {
	docstore.Meta
	ConnectionID string     `json:"connection_id" doc:"Whose request it is" example:"1048577"`
	Type         string     `json:"type" enum:"User,Group" doc:"Of the resource"`
	ResourceID   string     `json:"resource_id" doc:"The user or node; empty of a group that would be new" example:"1048577"`
	Display      string     `json:"display" doc:"Its name" example:"li.wei"`
	Method       string     `json:"method" doc:"Of the request" example:"DELETE"`
	Path         string     `json:"path" doc:"Of the request" example:"/scim/v2/Users/1048577"`
	Body         string     `json:"body" doc:"As sent, without passwords"`
	Tag          string     `json:"resource_version" doc:"The resource's entity tag then" example:"W/\"1\""`
	Reason       string     `json:"reason" doc:"Why it is held" example:"too many users are disabled or deleted"`
	Scopes       []string   `json:"scopes" doc:"Scopes of this API that it gives people: who approves it must have them" example:"[]"`
	Approved     bool       `json:"approved" doc:"It is being carried out"`
	Revived      bool       `json:"revived" doc:"The client has taken it back since: it will be skipped"`
	Stays        []string   `json:"stays,omitempty" doc:"Members that the client has added again since: they stay" example:"[]"`
	TimeDue      clock.Time `json:"time_due" nullable:"true" doc:"Since when it is to be carried out"`
}

const (
	byConnection = "connection_id"
	byResource   = "resource"
	byKind       = "kind" // removes or gives
	byTime       = "time_created"
)

// place is the connection and the resource: of one resource one request is held. A PATCH takes only some members of a
// group, so different ones are held beside each other.
func (r *Request) place() string {
	switch {
	case r.ResourceID == "":
		return r.ConnectionID + "/new/" + r.Display
	case r.Type == "Group" && r.Method == http.MethodPatch && r.removes():
		sum := sha256.Sum256([]byte(r.Body))
		return placeOf(r.ConnectionID, r.ResourceID) + "/" + hex.EncodeToString(sum[:8])
	}
	return placeOf(r.ConnectionID, r.ResourceID)
}

func placeOf(connectionID, resourceID string) string { return connectionID + "/" + resourceID }

// removes reports whether a request is held because of what it removes, not because of the scopes that it gives.
func (r *Request) removes() bool { return len(r.Scopes) == 0 }

// giving selects the held requests of a connection that give scopes.
func giving(connectionID string) docstore.Filter {
	return docstore.Eq(byKind, docstore.Text(connectionID+"/gives"))
}

var requests = docstore.Define(docstore.Schema[Request]{
	Name: "held_requests", Noun: "held request", NoIfMatch: true, Revision: 2, Sortable: []string{byTime},
	Due: func(r *Request) clock.Time { return r.TimeDue },
	Indexes: []docstore.Index[Request]{
		docstore.ByText(byConnection, func(r *Request) string {
			if r.Approved {
				return ""
			}
			return r.ConnectionID
		}),
		docstore.Unique(docstore.ByText(byResource, (*Request).place), "id"),
		docstore.ByText(byKind, func(r *Request) string {
			switch {
			case r.Approved:
				return ""
			case r.removes():
				return r.ConnectionID + "/removes"
			}
			return r.ConnectionID + "/gives"
		}),
		docstore.ByNumber(byTime, func(r *Request) docstore.Value { return docstore.Moment(r.TimeCreated) }),
	},
})

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{counts.Def(), requests.Def()} }

// MaxHeld is how many requests of a connection are kept. More are refused all the same.
const MaxHeld = 100_000

// RetryAfter is when the client of a held request should try again.
const RetryAfter = time.Hour

// Gate are the use cases.
type Gate struct {
	Store *docstore.Store
	// Do carries out an approved request. The error is apperr.VersionMismatch if the resource has changed since, and
	// apperr.NotFound if it is gone.
	Do func(ctx context.Context, c *connection.Connection, r *Request) error
	// Remove carries out only what an approved request removes, whatever else has changed of the resource since.
	Remove func(ctx context.Context, c *connection.Connection, r *Request) error
}

type approvedKey struct{}

// IsApproved reports whether a person has approved what is being done.
func IsApproved(ctx context.Context) bool { return ctx.Value(approvedKey{}) != nil }

// Approved is a context in which nothing is held.
func Approved(ctx context.Context) context.Context {
	return context.WithValue(ctx, approvedKey{}, true)
}

// Pass counts what a request removes, or holds the request if that is too much. A request that is held is stored, and
// the error is apperr.Unavailable.
func (g *Gate) Pass(ctx context.Context, c *connection.Connection, r Request, removals ...Removal) error {
	if IsApproved(ctx) || len(removals) == 0 {
		return nil
	}
	return g.pass(docstore.InTurn(ctx, "gate "+removals[0].id(c.ID)), c, r, removals)
}

// Hold holds a request whatever it removes; see Pass.
func (g *Gate) Hold(ctx context.Context, c *connection.Connection, r Request) error {
	return g.pass(docstore.InTurn(ctx, "gate "+c.ID), c, r, nil)
}

func (g *Gate) pass(ctx context.Context, c *connection.Connection, r Request, removals []Removal) error {
	id, err := g.Store.NewID(ctx)
	if err != nil {
		return err
	}
	held, err := docstore.Write(docstore.WithoutCommitHook(ctx), g.Store, func(tx *docstore.Tx) (bool, error) {
		one := r
		one.ID, one.ConnectionID = id, c.ID
		one.Scopes = append([]string{}, r.Scopes...)
		if len(removals) > 0 {
			free, err := take(ctx, tx, &one, removals)
			if err != nil || free {
				return false, err
			}
		}
		return true, hold(ctx, tx, &one)
	})
	if err != nil || !held {
		return err
	}
	why := "it removes too much at once"
	if len(r.Scopes) > 0 {
		why = r.Reason
	}
	e := apperr.New(apperr.Unavailable, "the request is held until a person approves it: %s", why)
	e.RetryAfter = RetryAfter
	return e
}

// take counts removals, and reports false if their request must be held.
func take(ctx context.Context, tx *docstore.Tx, of *Request, removals []Removal) (bool, error) {
	c, err := connection.Find(ctx, tx, of.ConnectionID)
	if err != nil {
		return false, err
	}
	of.Reason = removals[0].reason
	if c.State == connection.Held { // what is held waits for a person, however often the client sends it
		before, err := requests.LoadWhere(ctx, tx, docstore.Eq(byResource, docstore.Text(of.place())), "", 1)
		if err != nil || len(before) > 0 && before[0].removes() {
			return false, err
		}
	}
	tooMuch, err := count(ctx, tx, c, removals)
	if tooMuch != nil {
		of.Reason = tooMuch.reason
	}
	return tooMuch == nil, err
}

// hold stores a request, in place of an earlier one for the same resource.
func hold(ctx context.Context, tx *docstore.Tx, r *Request) error {
	before, err := requests.LoadWhere(ctx, tx, docstore.Eq(byResource, docstore.Text(r.place())), "", 1)
	if err != nil {
		return err
	}
	if len(before) > 0 && before[0].Approved {
		return nil // it is being carried out
	}
	if len(before) > 0 {
		meta := before[0].Meta
		*before[0] = *r
		before[0].Meta = meta
		_, err = requests.Replace(ctx, tx, before[0])
	} else {
		n, err := requests.CountTo(ctx, tx.Peek(), docstore.Eq(byConnection, docstore.Text(r.ConnectionID)), MaxHeld)
		if err != nil || n.More || n.N >= MaxHeld {
			return err
		}
		if _, err := requests.Insert(ctx, tx, r); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	_, err = connection.Edit(ctx, tx, r.ConnectionID, "held", func(c *connection.Connection) {
		c.State = connection.Held
	})
	return err
}

// maxStays is how many members of a held request are noted as added again. With more, the whole request is taken back.
const maxStays = 1000

// Revive notes that the client has taken back the held removals of a resource, by making it active again; with members,
// that it has added these to the group again. c may be out of date: then nothing is held that the request knew of.
func (g *Gate) Revive(ctx context.Context, c *connection.Connection, resourceID string, members ...string) error {
	if c.State != connection.Held || IsApproved(ctx) {
		return nil
	}
	place := placeOf(c.ID, resourceID)
	of := docstore.Or(docstore.Eq(byResource, docstore.Text(place)), docstore.Prefix(byResource, place+"/"))
	var ids []string
	if err := requests.Each(ctx, g.Store, of, func(d docstore.Doc[Request]) error {
		r, err := d.Value()
		if err == nil && r.removes() && !r.Revived && r.takes(members) {
			ids = append(ids, r.ID)
		}
		return err
	}); err != nil {
		return err
	}
	for part := range slices.Chunk(ids, atOnce) {
		if err := docstore.Do(docstore.WithoutCommitHook(ctx), g.Store, func(tx *docstore.Tx) error {
			held, err := requests.LoadMany(ctx, tx, part)
			if err != nil {
				return err
			}
			for _, r := range held {
				r.keep(members)
				if _, err := requests.Replace(ctx, tx, r); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// takes reports whether a request takes one of the members from a group; true if there are none.
func (r *Request) takes(members []string) bool {
	if len(members) == 0 || r.Method != http.MethodPatch {
		return true
	}
	operations, err := patch.Parse([]byte(r.Body))
	if err != nil {
		return true
	}
	_, _, change, err := patch.Group(schema.Group, resource.Object{"displayName": r.Display}, operations, nil)
	return err != nil || change.All ||
		slices.ContainsFunc(change.Remove, func(id string) bool { return slices.Contains(members, id) })
}

// keep notes members that stay; none stands for the whole resource.
func (r *Request) keep(members []string) {
	stays := slices.Clone(r.Stays)
	for _, id := range members[:min(len(members), maxStays)] {
		if !slices.Contains(stays, id) {
			stays = append(stays, id)
		}
	}
	r.Stays = stays
	if len(members) == 0 || len(members) > maxStays || len(stays) > maxStays {
		r.Revived, r.Stays = true, nil
	}
}
