package directory

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/testkit/basic"
	"github.com/idplatform/idplatform/services/questions"
)

func TestMain(m *testing.M) { basic.Main(m) }

// The answer to a change that comes after the user's deletion is known does not undo that: the link would count as
// alive, and its name could never be used again.
func TestALateAnswerUndoesNoDeletion(t *testing.T) {
	t.Parallel()
	store := basic.Store(t, basic.NewClock(), Collections()...)
	ctx := request.System(t.Context(), "acme")
	put := func(sequence int64, link Link) (u *User) {
		link.ConnectionID = "7"
		require.NoError(t, docstore.Do(ctx, store, func(tx *docstore.Tx) (err error) {
			u, err = PutUser(ctx, tx, "1", questions.UserState{
				User: json.RawMessage(`{"id":"1","username":"li.wei","version":1}`), Sequence: sequence,
			}, link)
			return err
		}))
		return u
	}
	require.False(t, put(10, Link{}).Deleted)
	require.True(t, put(30, Link{Deleted: true}).Deleted)
	require.True(t, put(20, Link{}).Deleted)
	require.False(t, put(40, Link{}).Deleted, "it was made again")
}
