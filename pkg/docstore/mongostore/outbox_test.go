package mongostore

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/idplatform/idplatform/pkg/apperr"
)

func TestReserve(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, func(string, bson.Raw) bson.D {
		return bson.D{{Key: "value", Value: bson.D{{Key: "_id", Value: "reserved.seq"},
			{Key: "value", Value: int64(30)}}}}
	})
	o := s.options(t)
	s.hello = nil // so that Open sends no probe
	o.AllowStandalone = true
	e, err := Open(t.Context(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	first, err := e.Reserve(t.Context(), "seq", 10)
	require.NoError(t, err)
	require.EqualValues(t, 21, first)
	c := s.the(t, "findAndModify")
	require.Equal(t, `{"_id": "reserved.seq"}`, c.Lookup("query").String())
	require.Equal(t, `{"$inc": {"value": {"$numberLong":"10"}}}`, c.Lookup("update").String())
	require.True(t, c.Lookup("upsert").Boolean())
	require.True(t, c.Lookup("new").Boolean())
}

// Two first reservations may both find no counter. The server refuses the second, which must try again.
func TestReserveLosesTheRaceToInsert(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, once("findAndModify", failed(codeDuplicateKey)))
	first, err := s.open(t).Reserve(t.Context(), "seq", 1)
	require.NoError(t, err)
	require.EqualValues(t, 7, first)
	require.Len(t, s.all(), 2)
}

func TestReserveFails(t *testing.T) {
	t.Parallel()
	s := newFakeServer(t, func(command string, _ bson.Raw) bson.D {
		if command == "findAndModify" {
			return failed(10107)
		}
		return nil
	})
	_, err := s.open(t).Reserve(t.Context(), "seq", 1)
	require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
}
