// Package credential stores users' credentials: the identities at social-login providers that are bound to a user.
package credential

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

// Credential is a stored credential record. It has the same JSON form in the API, in events and in the store.
type Credential struct {
	docstore.Meta
	UserID       int64  `json:"user_id" required:"true" doc:"The owning user's id, as a number" example:"1048577"`
	ProviderCode string `json:"provider_code" required:"true" doc:"Code of the social-login provider" example:"wechat_scan_qr"`
	IDPConfigID  int64  `json:"idp_config_id" doc:"Id of the connection, as a number; 0 = none" example:"0"`
	ID1          string `json:"id1" required:"true" doc:"The provider's unique marker of the user" example:"o6_bmjrPTlm6_2sgVt7hMZOPfL2M"`
	ID2          string `json:"id2" doc:"Second marker" example:""`
	Metadata     string `json:"metadata" doc:"Further markers" example:""`
	Status       string `json:"status" enum:"1,0" doc:"1: people can sign in by it" example:"1"`
	Username     string `json:"username" doc:"What the provider calls the person" example:"li.wei"`
	DisplayName  string `json:"display_name" doc:"How the provider shows the person" example:"李伟"`
}

// Limits of members, in characters.
const (
	maxText     = 256
	maxMetadata = 4096
	maxID       = 1<<53 - 1
)

const (
	byIdentity    = "identity"
	byUserID      = "user_id"
	byIDPConfigID = "idp_config_id"
	byTimeCreated = "time_created"
)

var credentials = outbox.Define("credential", "/user-stored-credentials", docstore.Schema[Credential]{
	Name: "credentials", Noun: "stored credential",
	Sortable: []string{byTimeCreated, "provider_code", "id1", "username", "display_name"},
	Indexes: []docstore.Index[Credential]{
		docstore.Unique(docstore.ByText(byIdentity, (*Credential).identity), "id1"),
		docstore.ByNumber(byUserID, func(c *Credential) docstore.Value { return docstore.Number(c.UserID) }),
		docstore.ByNumber(byIDPConfigID, func(c *Credential) docstore.Value { return docstore.Number(c.IDPConfigID) }),
		docstore.ByText("provider_code", func(c *Credential) string { return c.ProviderCode }),
		docstore.ByText("id1", func(c *Credential) string { return c.ID1 }),
		docstore.ByText("id2", func(c *Credential) string { return c.ID2 }),
		docstore.ByText("metadata", func(c *Credential) string { return digest(c.Metadata) }),
		docstore.ByText("status", func(c *Credential) string { return c.Status }),
		docstore.ByText("username", func(c *Credential) string { return c.Username }),
		docstore.ByText("display_name", func(c *Credential) string { return c.DisplayName }),
		docstore.ByNumber(byTimeCreated, func(c *Credential) docstore.Value { return docstore.Moment(c.TimeCreated) }),
	},
})

// identity is unique among the credentials of a tenant.
func (c *Credential) identity() string {
	key, _ := json.Marshal([]any{c.ProviderCode, c.IDPConfigID, c.ID1}) // cannot fail
	return string(key)
}

// digest keeps the index small: metadata may be long and is compared only as a whole.
func digest(s string) string {
	if s == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// Deps are what Credentials need. All are required.
type Deps struct {
	Store *docstore.Store
	Bus   *bus.Bus // for questions about connections
}

// Credentials are the use cases.
type Credentials struct{ Deps }

// New makes the use cases.
func New(d Deps) *Credentials { return &Credentials{d} }

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{credentials.Def()} }

// Doc is a credential as read or written.
type Doc = docstore.Doc[Credential]

// Filter holds values that must be equal. Empty and zero members select all, but IDPConfigID: 0 selects the credentials
// of no connection, and only -1 selects all, as over HTTP if it is absent.
type Filter struct {
	UserID       int64  `query:"user_id" minimum:"1" example:"1048577"`
	ProviderCode string `query:"provider_code" maxLength:"256"`
	IDPConfigID  int64  `query:"idp_config_id" minimum:"-1" default:"-1" doc:"0: those of no connection; -1: all"`
	ID1          string `query:"id1" maxLength:"256"`
	ID2          string `query:"id2" maxLength:"256"`
	Metadata     string `query:"metadata" maxLength:"4096"`
	Status       string `query:"status" enum:"1,0"`
	Username     string `query:"username" maxLength:"256"`
	DisplayName  string `query:"display_name" maxLength:"256"`
	docstore.Paging
}

func (f Filter) where() docstore.Filter {
	var all []docstore.Filter
	if f.UserID != 0 {
		all = append(all, docstore.Eq(byUserID, docstore.Number(f.UserID)))
	}
	if f.IDPConfigID >= 0 {
		all = append(all, docstore.Eq(byIDPConfigID, docstore.Number(f.IDPConfigID)))
	}
	for _, m := range []struct{ index, text string }{
		{"provider_code", f.ProviderCode}, {"id1", f.ID1}, {"id2", f.ID2}, {"metadata", digest(f.Metadata)},
		{"status", f.Status}, {"username", f.Username}, {"display_name", f.DisplayName},
	} {
		if m.text != "" {
			all = append(all, docstore.Eq(m.index, docstore.Text(m.text)))
		}
	}
	return docstore.And(all...)
}

// List returns a page of credentials. The error is apperr.InvalidParameters (paging).
func (s *Credentials) List(ctx context.Context, f Filter) (docstore.Page[Credential], error) {
	return credentials.List(ctx, s.Store, f.where(), f.Paging)
}

// Get returns a credential. The error is apperr.NotFound.
func (s *Credentials) Get(ctx context.Context, id string) (Doc, error) {
	return credentials.Find(ctx, s.Store, id)
}

// mayBind refuses a caller who may not sign in as the user (user.MayTakeOver): whoever has the social identity may.
func (s *Credentials) mayBind(ctx context.Context, c *Credential) error {
	return user.MayTakeOver(ctx, s.Bus, strconv.FormatInt(c.UserID, 10))
}

// Create binds a social identity to a user. The error is apperr.InvalidParameters, AlreadyExists, Forbidden (see
// mayBind), or Unavailable if a service must be asked and does not answer.
func (s *Credentials) Create(ctx context.Context, draft Credential) (Doc, error) {
	draft.normalize()
	if err := s.check(ctx, &draft, 0); err != nil {
		return Doc{}, err
	}
	if err := s.mayBind(ctx, &draft); err != nil {
		return Doc{}, err
	}
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return Doc{}, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (Doc, error) {
		if err := checkUser(ctx, tx, draft.UserID); err != nil {
			return Doc{}, err
		}
		c := draft
		c.Meta = docstore.Meta{ID: id}
		return credentials.Insert(ctx, tx, &c)
	})
}

// Update applies edit, which must not change the user. The error is apperr.NotFound or one of Create's.
func (s *Credentials) Update(ctx context.Context, id string, edit func(*Credential) error) (Doc, error) {
	// The identity-sources service is asked before the transaction, which then checks that the connection is the one
	// that was asked about.
	doc, err := s.Get(ctx, id)
	if err != nil {
		return Doc{}, err
	}
	current, err := doc.Value()
	if err != nil {
		return Doc{}, err
	}
	proposal := *current
	if err := edit(&proposal); err != nil {
		return Doc{}, err
	}
	proposal.normalize()
	if err := s.check(ctx, &proposal, current.IDPConfigID); err != nil {
		return Doc{}, err
	}
	if err := s.mayBind(ctx, current); err != nil {
		return Doc{}, err
	}
	return credentials.Edit(ctx, s.Store, id, func(_ *docstore.Tx, c *Credential) error {
		meta, userID := c.Meta, c.UserID
		if err := edit(c); err != nil {
			return err
		}
		c.Meta = meta
		c.normalize()
		if c.UserID != userID {
			return apperr.Invalid("user_id", "can't be changed")
		}
		if c.IDPConfigID != proposal.IDPConfigID {
			return docstore.Mismatch(meta.Version)
		}
		return nil
	})
}

// Delete deletes a credential. The error is apperr.NotFound.
func (s *Credentials) Delete(ctx context.Context, id string) (docstore.Deleted, error) {
	return credentials.Remove(ctx, s.Store, id, nil)
}

// DeleteOf deletes the credentials of users in the transaction that deletes the users.
func DeleteOf(ctx context.Context, tx *docstore.Tx, userIDs ...string) error {
	var numbers []docstore.Value
	for _, id := range userIDs {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil { // otherwise it is nobody's
			numbers = append(numbers, docstore.Number(n))
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	return credentials.DeleteWhere(ctx, tx, docstore.In(byUserID, numbers...))
}

// Bind stores the credential by which a user signs in at a connection, in place of an earlier one of the same
// connection. The error, when the transaction ends, is apperr.AlreadyExists if it is another user's.
func Bind(ctx context.Context, tx *docstore.Tx, id, userID string, draft questions.UserCredential) error {
	number, err := strconv.ParseInt(userID, 10, 64)
	if err != nil {
		return apperr.Invalid("credential", "is of no user")
	}
	theirs, err := credentials.LoadWhere(ctx, tx, docstore.And(docstore.Eq(byUserID, docstore.Number(number)),
		docstore.Eq(byIDPConfigID, docstore.Number(draft.IDPConfigID))), "", maxBound)
	if err != nil {
		return err
	}
	c := &Credential{UserID: number, Status: "1"}
	for _, one := range theirs {
		if one.ProviderCode == draft.ProviderCode {
			c = one
		}
	}
	c.ProviderCode, c.IDPConfigID, c.ID1 = draft.ProviderCode, draft.IDPConfigID, draft.ID1
	if c.ID == "" {
		c.ID = id
		_, err = credentials.Insert(ctx, tx, c)
		return err
	}
	_, err = credentials.Replace(ctx, tx, c)
	return err
}

// maxBound is how many credentials of one user at one connection Bind looks at.
const maxBound = 100

// CountOf counts the credentials of a connection. It answers a question of the identity-sources service.
func (s *Credentials) CountOf(ctx context.Context, connectionID int64) (int64, error) {
	return credentials.Count(ctx, s.Store, docstore.Eq(byIDPConfigID, docstore.Number(connectionID)))
}

func (c *Credential) normalize() {
	if c.Status == "" {
		c.Status = "1"
	}
}

// check notes every fault, and asks whether the connection exists unless it is the known one. The error is
// apperr.InvalidParameters or Unavailable.
func (s *Credentials) check(ctx context.Context, c *Credential, known int64) error {
	var faults apperr.Faults
	faults.Check(c.UserID > 0 && c.UserID <= maxID, "user_id", "must be a user's id")
	faults.Check(c.IDPConfigID >= 0 && c.IDPConfigID <= maxID, "idp_config_id", "must be a connection's id")
	faults.Check(c.ProviderCode != "", "provider_code", "must not be empty")
	faults.Check(c.ID1 != "", "id1", "must not be empty")
	faults.Check(c.Status == "1" || c.Status == "0", "status", `must be "1" or "0"`)
	for _, m := range []struct {
		location, text string
		most           int
	}{
		{"provider_code", c.ProviderCode, maxText}, {"id1", c.ID1, maxText}, {"id2", c.ID2, maxText},
		{"metadata", c.Metadata, maxMetadata},
		{"username", c.Username, maxText}, {"display_name", c.DisplayName, maxText},
	} {
		faults.Check(utf8.RuneCountInString(m.text) <= m.most, m.location, "must have at most %d characters", m.most)
		faults.Check(m.location == "metadata" || !strings.ContainsFunc(m.text, unicode.IsControl), m.location,
			"must not have control characters")
	}
	if err := faults.Err(); err != nil {
		return err
	}
	if c.IDPConfigID == 0 || c.IDPConfigID == known {
		return nil
	}
	question := questions.ConnectionID{ID: strconv.FormatInt(c.IDPConfigID, 10)}
	answer, err := questions.ConnectionExists.Ask(ctx, s.Bus, question)
	if err != nil {
		return err
	}
	if !answer.Exists {
		return apperr.Invalid("idp_config_id", "is not a connection")
	}
	return nil
}

func checkUser(ctx context.Context, tx *docstore.Tx, id int64) error {
	exists, err := user.Has(ctx, tx, strconv.FormatInt(id, 10))
	if err == nil && !exists {
		return apperr.Invalid("user_id", "is not a user")
	}
	return err
}
