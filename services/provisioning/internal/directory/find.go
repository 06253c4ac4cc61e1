package directory

import (
	"context"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/filter"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/schema"
)

// GetUser returns a user that a connection sees. The error is apperr.NotFound.
func GetUser(ctx context.Context, r docstore.Reader, connectionID, id string) (*User, error) {
	u, err := LinkOf(ctx, r, id)
	if err != nil {
		return nil, err
	}
	if u.ConnectionID != connectionID || u.Gone {
		return nil, apperr.Missing("user")
	}
	return u, nil
}

// LinkOf returns the link of a user to whichever connection. The error is apperr.NotFound.
func LinkOf(ctx context.Context, r docstore.Reader, id string) (*User, error) {
	if len(id) > maxID {
		return nil, apperr.Missing("user")
	}
	doc, err := users.Find(ctx, r, id)
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

const maxID = 64 // characters of an id that is looked up

// UserByExternal returns the link with an externalId, also one that is gone. The error is apperr.NotFound.
func UserByExternal(ctx context.Context, r docstore.Reader, connectionID, externalID string) (*User, error) {
	return oneUser(ctx, r, docstore.Eq(byExternal, docstore.Text(within(connectionID, externalID))))
}

// UsersByName returns the links with a userName: the one that clients see first, then those that are gone, at most
// maxNamesakes.
func UsersByName(ctx context.Context, r docstore.Reader, connectionID, userName string) ([]*User, error) {
	a, _ := schema.User.Core.Attribute("userName")
	return byName(ctx, r, users, byUserName, within(connectionID, filter.Key(a, userName)))
}

// maxNamesakes is how many links of one name are looked at.
const maxNamesakes = 100

// byName returns the links with a name, those that clients see first.
func byName[T any](
	ctx context.Context, r docstore.Reader, c *docstore.Collection[T], live, name string,
) ([]*T, error) {
	var found []*T
	for _, index := range []string{live, byGone} {
		if len(found) == maxNamesakes {
			break
		}
		page, err := c.Page(ctx, r, docstore.Query{
			Filter: docstore.Eq(index, docstore.Text(name)), Limit: maxNamesakes - len(found),
		})
		if err != nil {
			return nil, err
		}
		for i := range page.Docs {
			one, err := page.Docs[i].Value()
			if err != nil {
				return nil, err
			}
			found = append(found, one)
		}
	}
	return found, nil
}

func oneUser(ctx context.Context, r docstore.Reader, f docstore.Filter) (*User, error) {
	doc, err := users.First(ctx, r, f)
	if err != nil {
		return nil, err
	}
	return doc.Value()
}

// CountActiveBefore counts the active users of a connection that were made before a moment.
func CountActiveBefore(ctx context.Context, r docstore.Reader, connectionID string, at clock.Time) (int64, error) {
	active := docstore.Eq(byActive, docstore.Text(connectionID))
	all, err := users.Count(ctx, r, active)
	if err != nil {
		return 0, err
	}
	later, err := users.Count(ctx, r, docstore.And(active, docstore.Range(byCreated,
		docstore.Text(within(connectionID, momentText(at))), docstore.Text(connectionID+"0")))) // 0 follows /
	return max(0, all-later), err
}

// Names returns the displayNames of those of the ids that are users whom a connection sees.
func Names(ctx context.Context, s *docstore.Store, connectionID string, ids []string) (map[string]string, error) {
	names := make(map[string]string, len(ids))
	const chunk = 500
	for from := 0; from < len(ids); from += chunk {
		part := ids[from:min(from+chunk, len(ids))]
		texts, err := users.Texts(ctx, s, byShown, docstore.ID(part...), len(part))
		if err != nil {
			return nil, err
		}
		for _, t := range texts {
			if name, mine := strings.CutPrefix(t.Text, connectionID+"/"); mine {
				names[t.ID] = strings.TrimSuffix(name, "\x00")
			}
		}
	}
	return names, nil
}

// Forget deletes the link of a user.
func Forget(ctx context.Context, tx *docstore.Tx, id string) error {
	return users.DeleteWhere(ctx, tx, docstore.ID(id), nil)
}

// CheckExternal returns apperr.AlreadyExists if another user than the one with the id has the externalId of a link.
func CheckExternal(ctx context.Context, tx *docstore.Tx, link Link, id string) error {
	if link.ExternalID == nil || *link.ExternalID == "" {
		return nil
	}
	u, err := UserByExternal(ctx, tx, link.ConnectionID, *link.ExternalID)
	if apperr.IsNotFound(err) || err == nil && u.ID == id {
		return nil
	}
	if err != nil {
		return err
	}
	return apperr.Taken("externalId")
}

// IDsOf lists the ids of the users that are linked to a connection, also of those that are gone, after an id.
func IDsOf(ctx context.Context, s *docstore.Store, connectionID, after string, limit int) ([]string, error) {
	page, err := users.Page(ctx, s, docstore.Query{
		Filter: docstore.Eq(byLinked, docstore.Text(connectionID)), AfterID: after, Limit: limit,
	})
	ids := make([]string, len(page.Docs))
	for i := range page.Docs {
		ids[i] = page.Docs[i].ID
	}
	return ids, err
}
