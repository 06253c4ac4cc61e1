package credential

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/questions"
)

// maxLinks is how many credentials a user can have who links another one by signing in.
const maxLinks = 50

// OfIdentity returns the credential of somebody whom the provider of a connection has signed in. The error is
// apperr.NotFound.
func (s *Credentials) OfIdentity(ctx context.Context, in questions.ForeignIdentity) (*Credential, error) {
	draft, ok := credentialOf(in)
	if !ok {
		return nil, apperr.Missing("stored credential")
	}
	doc, err := credentials.First(ctx, s.Store, docstore.Eq(byIdentity, docstore.Text(draft.identity())))
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// credentialOf is the credential of an identity, without a user; false if the connection's id is none.
func credentialOf(in questions.ForeignIdentity) (*Credential, bool) {
	number, err := strconv.ParseInt(in.ConnectionID, 10, 64)
	return &Credential{
		ProviderCode: in.ProviderCode, IDPConfigID: number, ID1: in.Subject, ID2: in.Subject2, Status: "1",
		Username: shown(in.Username), DisplayName: shown(in.DisplayName),
	}, err == nil && number > 0
}

// shown is what a provider calls somebody, as far as a credential can have it.
func shown(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText])
	}
	return text
}

// Link binds an identity to a user who has proven it; mayLink refuses the user in the transaction. Asked twice, it
// binds once. The error is apperr.InvalidParameters, AlreadyExists (it is another user's), InvalidState (maxLinks), or
// mayLink's.
func (s *Credentials) Link(ctx context.Context, in questions.ForeignIdentity, userID string,
	mayLink func(context.Context, *docstore.Tx) error,
) (*Credential, error) {
	draft, ok := credentialOf(in)
	owner, err := strconv.ParseInt(userID, 10, 64)
	if !ok || err != nil {
		return nil, apperr.Invalid("connection_id", "must be a connection's id")
	}
	draft.UserID = owner
	if err := s.check(ctx, draft, draft.IDPConfigID); err != nil { // the connection has just signed the person in
		return nil, err
	}
	id, err := s.Store.NewID(ctx)
	if err != nil {
		return nil, err
	}
	return docstore.Write(ctx, s.Store, func(tx *docstore.Tx) (*Credential, error) {
		if err := mayLink(ctx, tx); err != nil {
			return nil, err
		}
		bound, err := credentials.LoadWhere(ctx, tx, docstore.Eq(byIdentity, docstore.Text(draft.identity())), "", 1)
		if err != nil {
			return nil, err
		}
		if len(bound) > 0 {
			if bound[0].UserID != owner {
				return nil, apperr.New(apperr.AlreadyExists, "the identity is another user's")
			}
			return bound[0], nil
		}
		theirs := docstore.Eq(byUserID, docstore.Number(owner))
		err = credentials.CheckLimit(ctx, tx, theirs, maxLinks, "a user can link at most %d identities")
		if err != nil {
			return nil, err
		}
		c := *draft
		c.Meta = docstore.Meta{ID: id}
		_, err = credentials.Insert(ctx, tx, &c)
		return &c, err
	})
}

// maxListed is how many credentials of a user LinksOf looks at.
const maxListed = 100

// LinksOf returns a user's credentials of connections, the oldest first.
func (s *Credentials) LinksOf(ctx context.Context, userID string) (questions.UserLinks, error) {
	links := questions.UserLinks{Links: []questions.UserLink{}}
	owner, err := strconv.ParseInt(userID, 10, 64)
	if err != nil {
		return links, nil
	}
	page, err := credentials.Page(ctx, s.Store, docstore.Query{
		Filter: docstore.Eq(byUserID, docstore.Number(owner)), Sort: []docstore.Order{{Index: byTimeCreated}},
		Limit: maxListed,
	})
	if err != nil {
		return links, err
	}
	for _, doc := range page.Docs {
		c, err := doc.Value()
		if err != nil {
			return links, err
		}
		if c.IDPConfigID != 0 {
			links.Links = append(links.Links, questions.UserLink{
				ID: c.ID, ConnectionID: strconv.FormatInt(c.IDPConfigID, 10), ProviderCode: c.ProviderCode,
				Name: cmp.Or(c.DisplayName, c.Username), Enabled: c.Status == "1", TimeCreated: c.TimeCreated,
			})
		}
	}
	return links, nil
}

// Unlink deletes a credential of a user who does not want it any more. The error is apperr.NotFound, or InvalidState if
// the user could not sign in without it. Nobody signs in through the disabled connections. hasOther says whether the
// user can sign in by anything but a credential.
func (s *Credentials) Unlink(ctx context.Context, id, userID string, disabled []string,
	hasOther func(context.Context, *docstore.Tx) (bool, error),
) error {
	return docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		c, err := credentials.Load(ctx, tx, id)
		if err != nil {
			return err
		}
		if strconv.FormatInt(c.UserID, 10) != userID || c.IDPConfigID == 0 {
			return apperr.Missing("stored credential")
		}
		others, err := credentials.LoadWhere(ctx, tx, docstore.Eq(byUserID, docstore.Number(c.UserID)), "", maxListed)
		if err != nil {
			return err
		}
		left := slices.ContainsFunc(others, func(o *Credential) bool {
			return o.ID != id && o.IDPConfigID != 0 && o.Status == "1" &&
				!slices.Contains(disabled, strconv.FormatInt(o.IDPConfigID, 10))
		})
		if !left {
			if left, err = hasOther(ctx, tx); err != nil {
				return err
			}
		}
		if !left {
			return apperr.New(apperr.InvalidState, "the user could not sign in without it")
		}
		_, err = credentials.Delete(ctx, tx, c)
		return err
	})
}
