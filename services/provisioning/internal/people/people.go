// Package people makes, changes, shows and removes users for the clients of connections. The users service carries each
// change out, at most once; the link is stored first, as intended, so that a crash between the two is made good.
package people

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/change"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/gate"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/patch"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/resource"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
	"github.com/idplatform/idplatform/services/questions"
)

// Deps are what Users need. All are required.
type Deps struct {
	Store *docstore.Store
	Bus   *bus.Bus
	Gate  *gate.Gate
	Base  string // the URI of the service: https://id.example.com/scim/v2
}

// Users are the use cases.
type Users struct {
	Deps
	// again are turns of changes that others have overtaken, by user: they must not overtake each other, too.
	again [turns]chan struct{}
}

const turns = 64

// New makes the use cases.
func New(d Deps) *Users {
	s := &Users{Deps: d}
	for i := range s.again {
		s.again[i] = make(chan struct{}, 1)
	}
	return s
}

// turn waits for the turn of a change of a user to be made again. leave ends it.
func (s *Users) turn(ctx context.Context, id string) (leave func(), err error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	at := s.again[h.Sum32()%turns]
	select {
	case at <- struct{}{}:
		return func() { <-at }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{intents.Def()} }

// Match reports whether a request allows its change of a resource with an entity tag; nil allows any.
type Match func(tag string) bool

// Check returns apperr.VersionMismatch if the request wants another version of the resource.
func (m Match) Check(tag string) error {
	if m == nil || m(tag) {
		return nil
	}
	return apperr.New(apperr.VersionMismatch, "the resource has changed; its version is now %s", tag)
}

// Call is what a request says beside its body.
type Call struct {
	Connection *connection.Connection
	Match      Match
	Exclusive  bool // of the changes of groups that Match allows for one version, only the first is made
	Ignored    *resource.Ignored
	// RemovesOnly: of a change of a group only the removal of members is made, save of those in Stays.
	RemovesOnly bool
	Stays       []string
	// Method, Path and Body are of the request, to be kept if it is held.
	Method, Path, Body string
}

// Kind is the resource type of a connection's users.
func Kind(c *connection.Connection) *schema.Resource { return schema.User.With(c.Extensions...) }

// ToldKind is Kind, with what the tenant's settings of users say about contact values.
func (s *Users) ToldKind(ctx context.Context, c *connection.Connection) (*schema.Resource, error) {
	settings, err := questions.SettingsOfUsers.Ask(ctx, s.Bus, questions.Nothing{})
	if err != nil && apperr.KindOf(err) != apperr.Unavailable {
		return nil, err
	}
	if settings.SharedContacts {
		return Kind(c).Sharing(), nil
	}
	return Kind(c), nil
}

const maxExternalID = 255 // characters

// target is what a request wants a user to become.
type target struct {
	before, after resource.Object // in canonical form
	profile       mapping.Profile
	externalID    string
}

// targetOf makes the target of a changed resource: what the connection does not own stays as it is.
func (s *Users) targetOf(call Call, before, after resource.Object) (target, error) {
	c := call.Connection
	if zone, has := after["timezone"].(string); has && zone != mapping.Zone(zone) {
		after = maps.Clone(after)
		after["timezone"] = mapping.Zone(zone)
	}
	owns := c.Owns
	if len(before) == 0 { // nobody can be made without a name
		owns = append(slices.Clone(owns), "username")
	}
	restricted, ignored := mapping.Restrict(Kind(c), before, after, owns)
	for _, name := range ignored {
		call.Ignored.Add(name)
	}
	if c.AcceptPassword != "1" {
		if _, has := restricted["password"]; has {
			call.Ignored.Add("password")
			delete(restricted, "password")
		}
	}
	w := target{before: before, after: restricted}
	w.externalID, _ = restricted["externalId"].(string)
	if utf8.RuneCountInString(w.externalID) > maxExternalID {
		return w, scim.Invalid(scim.InvalidValue, "externalId", "must have at most %d characters", maxExternalID)
	}
	if err := schemaRequired(restricted); err != nil {
		return w, err
	}
	var err error
	w.profile, err = mapping.ToProfile(Kind(c), restricted)
	return w, err
}

func schemaRequired(r resource.Object) error { return resource.Required(schema.User, r) }

// Create makes a user, adopts one, or revives the link of one that is gone or inactive. Its errors are those of
// resources (scim.Error), and apperr.AlreadyExists, InvalidState, Unavailable or OutcomeUnknown.
func (s *Users) Create(ctx context.Context, call Call, sent resource.Object) (*directory.User, error) {
	r, err := resource.Read(Kind(call.Connection), sent, call.Ignored)
	if err != nil {
		return nil, err
	}
	w, err := s.targetOf(call, resource.Object{}, r)
	if err != nil {
		return nil, err
	}
	known, namesake, err := s.findKnown(ctx, call.Connection, w)
	if err != nil {
		return nil, err
	}
	if known != nil && !known.Deleted {
		return s.revive(ctx, call, known, w)
	}
	u, err := s.make(ctx, call, known, w)
	if apperr.KindOf(err) == apperr.AlreadyExists && namesake != nil {
		err = errNamesake(namesake)
	}
	return u, err
}

// make makes a user. gone is the link to a deleted one that the request means, which it replaces.
func (s *Users) make(ctx context.Context, call Call, gone *directory.User, w target) (*directory.User, error) {
	c := call.Connection
	status := mapping.Active
	if w.profile.Active != nil && !*w.profile.Active {
		status = mapping.Disabled
	}
	change, err := s.changeOf(ctx, c, questions.CreateUser, w, status)
	if err != nil {
		return nil, err
	}
	change.Unique = c.Adopt == connection.AdoptEmail // so that who has the address can be adopted
	j := update{
		call: call, change: change, claim: claimOf(c, w), replaces: gone, stored: true,
		link: directory.Link{ConnectionID: c.ID, ExternalID: &w.externalID, Event: "created"},
	}
	u, err := s.execute(ctx, j)
	if apperr.KindOf(err) != apperr.AlreadyExists || c.Adopt == connection.AdoptNever {
		return u, err
	}
	found, ours := s.adoptable(ctx, c, w)
	if ours != nil {
		return nil, ours
	}
	if found == nil && j.change.Unique {
		j.change.Unique = false
		return s.execute(ctx, j)
	}
	if found == nil {
		return nil, err
	}
	if ours := s.mayAdopt(ctx, c, found.ID, err); ours != nil {
		return nil, ours
	}
	j.change.Action, j.change.UserID, j.change.Version = questions.UpdateUser, found.ID, found.Version
	j.link.Event = "adopted"
	return s.execute(ctx, j)
}

// claimOf is the text by which of several requests that make the same user only one succeeds.
func claimOf(c *connection.Connection, w target) string {
	if w.externalID != "" {
		return c.ID + "/e/" + w.externalID
	}
	return c.ID + "/n/" + strings.ToLower(w.profile.Username)
}

// revive makes a user active again that the client had deleted or disabled.
func (s *Users) revive(ctx context.Context, call Call, u *directory.User, w target) (*directory.User, error) {
	before, err := u.Resource(Kind(call.Connection), mapping.UserView{})
	if err != nil {
		return nil, err
	}
	if w, err = s.targetOf(call, before, w.after); err != nil { // what it does not own stays as it is
		return nil, err
	}
	action, status := questions.UpdateUser, mapping.Active
	if w.profile.Active != nil && !*w.profile.Active {
		status = mapping.Disabled
	}
	if u.Record.Status == mapping.Resigned {
		action = questions.ReinstateUser
	}
	change, err := s.changeOf(ctx, call.Connection, action, w, status)
	if err != nil {
		return nil, err
	}
	change.UserID = u.ID
	here := false
	link := directory.Link{ConnectionID: u.ConnectionID, Gone: &here, Event: "revived"}
	if w.externalID != "" {
		link.ExternalID = &w.externalID
	}
	revived, err := s.execute(ctx, update{call: call, change: change, link: link, stored: true})
	if err == nil && status == mapping.Active {
		err = s.Gate.Revive(ctx, call.Connection, u.ID)
	}
	return revived, err
}

// Get returns a user. The error is apperr.NotFound.
func (s *Users) Get(ctx context.Context, c *connection.Connection, id string) (*directory.User, error) {
	return directory.GetUser(ctx, s.Store, c.ID, id)
}

// Replace gives a user the attributes of a resource. What it leaves out is cleared, save active, password and
// externalId.
func (s *Users) Replace(ctx context.Context, call Call, id string, sent resource.Object) (*directory.User, error) {
	r, err := resource.Read(Kind(call.Connection), sent, call.Ignored)
	if err != nil {
		return nil, err
	}
	if err := schemaRequired(r); err != nil {
		return nil, err
	}
	_, says := r["active"]
	return s.change(ctx, call, id, says, func(before resource.Object) (resource.Object, error) {
		after := resource.Clone(r)
		for _, name := range []string{"active", "externalId"} {
			if _, has := after[name]; !has && before[name] != nil {
				after[name] = before[name]
			}
		}
		return after, nil
	})
}

// Patch applies operations to a user: all or, with an error, none.
func (s *Users) Patch(ctx context.Context, call Call, id string, operations []patch.Operation) (*directory.User,
	error) {
	says := patch.Names(operations, "active")
	return s.change(ctx, call, id, says, func(before resource.Object) (resource.Object, error) {
		after, _, err := patch.User(Kind(call.Connection), before, operations, call.Ignored)
		return after, err
	})
}

// maxTries bounds how often a change is made again because another one was faster.
const maxTries = 8

// change makes a user what edit makes of its resource. If others change the user at the same time, it reads it again;
// if they always are faster, the error is apperr.VersionMismatch. says reports that the request says whether the user
// is active.
func (s *Users) change(
	ctx context.Context, call Call, id string, says bool, edit func(resource.Object) (resource.Object, error),
) (*directory.User, error) {
	for tries := 1; ; tries++ {
		u, err := s.Get(ctx, call.Connection, id)
		if err != nil {
			return nil, err
		}
		if err := call.Match.Check(u.Tag()); err != nil {
			return nil, err
		}
		changed, err := s.changeOnce(ctx, call, u, edit)
		if err == nil && says && changed.Record.Status == mapping.Active {
			err = s.Gate.Revive(ctx, call.Connection, id)
		}
		switch {
		case apperr.KindOf(err) != apperr.VersionMismatch || tries == maxTries:
			return changed, err
		case tries == 1:
			leave, err := s.turn(ctx, id)
			if err != nil {
				return nil, err
			}
			defer leave()
		}
		if err := s.refresh(ctx, u); err != nil {
			return nil, err
		}
	}
}

func (s *Users) changeOnce(
	ctx context.Context, call Call, u *directory.User, edit func(resource.Object) (resource.Object, error),
) (*directory.User, error) {
	before, err := u.Resource(Kind(call.Connection), mapping.UserView{})
	if err != nil {
		return nil, err
	}
	after, err := edit(before)
	if err != nil {
		return nil, err
	}
	w, err := s.targetOf(call, before, after)
	if err != nil {
		return nil, err
	}
	if same(before, w.after) {
		return u, nil
	}
	action, status := questions.UpdateUser, ""
	was := u.Record.Status
	if a := w.profile.Active; a != nil && *a != (was == mapping.Active) {
		status = mapping.Disabled
		if *a {
			status = mapping.Active
		}
		if *a && was == mapping.Resigned {
			action = questions.ReinstateUser
		}
	}
	change, err := s.changeOf(ctx, call.Connection, action, w, status)
	if err != nil {
		return nil, err
	}
	change.UserID, change.Version = u.ID, u.UserVersion
	j := update{call: call, change: change, link: directory.Link{ConnectionID: u.ConnectionID}}
	if w.externalID != u.ExternalID {
		j.link.ExternalID, j.stored = &w.externalID, true
	}
	if status == mapping.Disabled && was == mapping.Active {
		return s.deactivate(ctx, j, u)
	}
	return s.execute(ctx, j)
}

// deactivate carries out a change that makes a user inactive, unless the gate holds it. If the rest of the change
// conflicts with another user, the user is made inactive all the same: who has left must not stay because of a name.
func (s *Users) deactivate(ctx context.Context, j update, u *directory.User) (*directory.User, error) {
	changed, err := s.gated(ctx, j, u, func() (*directory.User, error) {
		changed, err := s.execute(ctx, j)
		if apperr.KindOf(err) != apperr.AlreadyExists {
			return changed, err
		}
		alone := update{call: j.call, link: directory.Link{ConnectionID: j.link.ConnectionID}, change: j.change}
		alone.change.Profile, alone.change.Credential, alone.change.Password = inactive, nil, ""
		if _, failed := s.execute(ctx, alone); failed != nil {
			return nil, failed
		}
		return nil, conflict{err}
	})
	if c, is := errors.AsType[conflict](err); is {
		return nil, c.error
	}
	return changed, err
}

// conflict is why a user was only made inactive.
type conflict struct{ error }

// inactive is the profile of a user who is only made inactive.
var inactive = json.RawMessage(`{"status":"` + mapping.Disabled + `"}`)

// same reports whether two resources have the same attributes, save those that clients cannot write.
func same(a, b resource.Object) bool {
	left := func(o resource.Object) resource.Object {
		kept := maps.Clone(o)
		for _, name := range []string{"id", "meta", "schemas", "groups"} {
			delete(kept, name)
		}
		return kept
	}
	return reflect.DeepEqual(left(a), left(b))
}

// gated makes a removal, unless the gate holds it.
func (s *Users) gated(ctx context.Context, j update, u *directory.User, execute func() (*directory.User, error)) (
	*directory.User, error,
) {
	if err := s.pass(ctx, j.call, u); err != nil {
		return nil, err
	}
	changed, err := execute()
	if _, made := errors.AsType[conflict](err); err != nil && !made && !change.IsUnclear(err) {
		s.Gate.Release(ctx, j.call.Connection.ID, ofUser)
	}
	return changed, err
}

func (s *Users) pass(ctx context.Context, call Call, u *directory.User) error {
	return s.Gate.Pass(ctx, call.Connection, gate.Request{
		Type: "User", ResourceID: u.ID, Display: u.Record.Username, Method: call.Method, Path: call.Path,
		Body: gate.Redacted(call.Body), Tag: u.Tag(),
	}, ofUser)
}

var ofUser = gate.OfPeople("too many users are disabled or deleted")

// Delete does what the connection's on_delete says, and hides the user from the client.
func (s *Users) Delete(ctx context.Context, call Call, id string) error {
	u, err := s.Get(ctx, call.Connection, id)
	if err != nil {
		return err
	}
	if err := call.Match.Check(u.Tag()); err != nil {
		return err
	}
	gone := true
	change := questions.UserChange{UserID: u.ID, Action: questions.UpdateUser}
	j := update{call: call, stored: true,
		link: directory.Link{ConnectionID: u.ConnectionID, Gone: &gone, Event: "gone"}}
	switch call.Connection.OnDelete {
	case connection.Resign:
		change.Action = questions.ResignUser
	case connection.Delete:
		change.Action, j.link.Deleted = questions.DeleteUser, true
	default:
		if u.Record.Status != mapping.Resigned {
			change.Profile = inactive
		}
	}
	if j.change = change; call.Match != nil {
		j.change.Version = u.UserVersion
	}
	if u.Record.Status == mapping.Active || j.link.Deleted {
		_, err = s.gated(ctx, j, u, func() (*directory.User, error) { return s.execute(ctx, j) })
	} else {
		_, err = s.execute(ctx, j)
	}
	return err
}
