package users_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/users"
)

// A user whose account cannot be read does not delay other users of its tenant or of another.
func TestAnUnreadableUserDelaysNobody(t *testing.T) {
	t.Parallel()
	log := &basic.LogBuffer{}
	s := testkit.Start(t, users.Spec(cheap()), testkit.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	c, other := in(s, "acme"), in(s, "globex")
	bad, good, foreign := addUser(t, c, "bad"), addUser(t, c, "good"), addUser(t, other, "foreign")
	for _, u := range []struct {
		user  object
		after time.Duration
	}{{bad, time.Minute}, {good, 2 * time.Minute}} {
		c.Post(path(u.user, "resign"), object{"effective_time": s.Clock.Now().Add(u.after)}).OK(nil)
	}
	other.Post(path(foreign, "resign"), object{"effective_time": s.Clock.Now().Add(2 * time.Minute)}).OK(nil)

	type broken struct {
		docstore.Meta
		Reason int `json:"resign_reason"` // in the stored document it is a text
	}
	accounts := docstore.Define(docstore.Schema[broken]{Name: "accounts", Indexes: []docstore.Index[broken]{
		docstore.Unique(docstore.ByText("id_number", func(*broken) string { return "" }), "id_number"),
	}})
	ctx := request.System(t.Context(), "acme")
	_, err := docstore.Write(ctx, s.Deps.Store, func(tx *docstore.Tx) (docstore.Doc[broken], error) {
		if err := accounts.DeleteWhere(ctx, tx, docstore.ID(bad["id"].(string)), nil); err != nil {
			return docstore.Doc[broken]{}, err
		}
		return accounts.Insert(ctx, tx, &broken{Meta: docstore.Meta{ID: bad["id"].(string)}, Reason: 7})
	})
	require.NoError(t, err)

	s.Clock.Advance(2 * time.Minute)
	untilAction(s, good, "resigned")
	untilAction(s, foreign, "resigned")
	require.Equal(t, "resigned", c.Get(path(bad)).Object()["status"],
		"reads apply the resignation, although it cannot be stored")
	require.Equal(t, 1, strings.Count(log.String(), "a document that is due is postponed"))
	require.Contains(t, log.String(), `task="apply due changes of users" tenant=acme id=`+bad["id"].(string))
}
