package people

import (
	"context"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/directory"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim"
	"github.com/idplatform/idplatform/services/provisioning/internal/scim/mapping"
)

// findKnown returns the link that a POST means; nil if there is none. Its externalId says who a user is; the userName
// does so only where the request or the link has no externalId. namesake is the user who has the userName and another
// externalId; nil if there is none. The error is apperr.AlreadyExists if one of the two is active.
func (s *Users) findKnown(ctx context.Context, c *connection.Connection, w target) (known, namesake *directory.User,
	err error) {
	if w.externalID != "" {
		known, err = directory.UserByExternal(ctx, s.Store, c.ID, w.externalID)
		if err != nil && !apperr.IsNotFound(err) {
			return nil, nil, err
		}
	}
	if known == nil {
		named, err := directory.UsersByName(ctx, s.Store, c.ID, w.profile.Username)
		if err != nil {
			return nil, nil, err
		}
		known, namesake = amongNamesakes(named, w.externalID)
	}
	switch {
	case known != nil && known.Live() && known.Record.Status == mapping.Active:
		return nil, nil, scim.With(scim.Uniqueness, apperr.Taken("userName"))
	case namesake != nil && namesake.Record.Status == mapping.Active && known == nil:
		return nil, nil, errNamesake(namesake)
	}
	return known, namesake, nil
}

// amongNamesakes returns, of the links with the name of a target, the one that it means, and the one of another
// externalId whose user has the name. A user who is there goes before one who is deleted.
func amongNamesakes(named []*directory.User, externalID string) (known, namesake *directory.User) {
	for _, u := range named {
		switch {
		case externalID == "" || u.ExternalID == "":
			if known == nil || known.Deleted && !u.Deleted {
				known = u
			}
		case !u.Deleted:
			namesake = u
		}
	}
	return known, namesake
}

// errNamesake says that a user with another externalId has the userName, or another unique attribute, of a new user.
func errNamesake(u *directory.User) error {
	state := "the client sees it"
	if u.Gone {
		state = "the client has deleted it"
	}
	e := apperr.Taken("userName")
	e.Detail = "the user " + u.ID + " has this userName and another externalId, so it is somebody else; " + state +
		". An administrator can delete that user: then the userName is free"
	return scim.With(scim.Uniqueness, e)
}
