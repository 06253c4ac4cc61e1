package mongostore

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
)

func TestFailure(t *testing.T) {
	t.Parallel()
	require.NoError(t, failure(t.Context(), "do", nil))
	for name, c := range map[string]struct {
		err  error
		want apperr.Kind
	}{
		"network":         {mongo.CommandError{Labels: []string{"NetworkError"}}, apperr.Unavailable},
		"no server":       {errors.New("server selection error"), apperr.Unavailable},
		"closed":          {mongo.ErrClientDisconnected, apperr.Unavailable},
		"not primary":     {mongo.CommandError{Code: 10107}, apperr.Unavailable},
		"shutdown":        {mongo.CommandError{Code: 91}, apperr.Unavailable},
		"retryable write": {mongo.WriteException{Labels: []string{labelRetryableWrite}}, apperr.Unavailable},
		"conflict":        {mongo.CommandError{Code: 112, Labels: []string{labelTransient}}, apperr.Unavailable},
		"timeout":         {fmt.Errorf("wait: %w", context.DeadlineExceeded), apperr.Unavailable},
		"bad value":       {mongo.CommandError{Code: 2}, apperr.Internal},
		"not authorized":  {mongo.CommandError{Code: 13}, apperr.Internal},
	} {
		err := failure(t.Context(), "do", c.err)
		require.Equal(t, c.want, apperr.KindOf(err), name)
		require.ErrorContains(t, err, "mongostore: do", name)
	}
	labelled := failure(t.Context(), "do", mongo.CommandError{Labels: []string{labelTransient}})
	require.True(t, hasLabel(labelled, labelTransient), "the driver must still find it")

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	err := failure(cancelled, "do", mongo.CommandError{Labels: []string{"NetworkError"}})
	require.ErrorIs(t, err, context.Canceled)
	require.NotEqual(t, apperr.Unavailable, apperr.KindOf(err), "the caller gave up")
}

func TestDuplicate(t *testing.T) {
	t.Parallel()
	detail := func(keys ...string) bson.Raw {
		pattern, values := bson.D{}, bson.D{}
		for _, k := range keys {
			pattern = append(pattern, bson.E{Key: k, Value: 1})
			values = append(values, bson.E{Key: k, Value: "v of " + k})
		}
		raw, err := bson.Marshal(bson.D{{Key: "keyPattern", Value: pattern}, {Key: "keyValue", Value: values}})
		require.NoError(t, err)
		return raw
	}
	numbers, err := bson.Marshal(bson.D{{Key: "keyPattern", Value: bson.D{{Key: "_ix.rank", Value: 1}}},
		{Key: "keyValue", Value: bson.D{{Key: "_ix.rank", Value: int64(5)}}}})
	require.NoError(t, err)
	ada := newThing("a")
	ada.Name, ada.Rank, ada.Keys = "ada", 7, []string{"k1", "k2"}
	one := newThing("b")
	one.Keys = []string{"k1"}
	for name, c := range map[string]struct {
		of   *thing
		e    mongo.WriteError
		want docstore.DuplicateError
	}{
		"by keys": {
			ada, mongo.WriteError{Raw: detail("tenant_id", "_ix.name")},
			docstore.DuplicateError{Index: "name", Value: "v of _ix.name"},
		},
		"by keys, of a list": {
			ada, mongo.WriteError{Raw: detail("tenant_id", "_ix.keys")},
			docstore.DuplicateError{Index: "keys", Value: "v of _ix.keys"},
		},
		"a number": {ada, mongo.WriteError{Raw: numbers}, docstore.DuplicateError{Index: "rank", Value: "5"}},
		"the id":   {ada, mongo.WriteError{Raw: detail("_id")}, docstore.DuplicateError{Value: "a"}},
		"by message": {
			ada,
			mongo.WriteError{Message: `E11000 … index: unique.name.text.3 dup key: { tenant_id: "t1", _ix.name: "x" }`},
			docstore.DuplicateError{Index: "name", Value: "ada"},
		},
		"by message, a list": {
			ada, mongo.WriteError{Message: `E11000 … index: unique.keys.list.3 dup key: {…}`},
			docstore.DuplicateError{Index: "keys"},
		},
		"by message, a list of one": {
			one, mongo.WriteError{Message: `E11000 … index: unique.keys.list.3 dup key: {…}`},
			docstore.DuplicateError{Index: "keys", Value: "k1"},
		},
		"by message, the id": {
			ada, mongo.WriteError{Message: `E11000 … index: _id_ dup key: { _id: "t1/a" }`},
			docstore.DuplicateError{Value: "a"},
		},
		"by message, of no index": {
			ada, mongo.WriteError{Message: `E11000 duplicate key error collection: db.things`},
			docstore.DuplicateError{Value: "a"},
		},
	} {
		of := entry(c.of)
		c.want.Collection, c.want.Entry = "things", of
		require.Equal(t, &c.want, duplicate(def, of, c.e), name)
	}
}
