package mongostore

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/idplatform/idplatform/pkg/docstore"
)

type statementKind int

const (
	insertOne statementKind = iota
	replaceOne
	deleteOne
	updateMany
	deleteMany
)

// statement is one write of a transaction. It is sent together with others.
type statement struct {
	kind       statementKind
	collection string
	filter     bson.D
	document   any   // the document to insert, the replacement, or the update
	selects    int64 // the number of documents that the filter must select

	// For documents of declared collections: what errors report.
	def   *docstore.Def
	entry *docstore.Entry // nil for a delete
}

// size is the approximate size of the statement in bytes.
func (s *statement) size() int {
	if raw, ok := s.document.(bson.Raw); ok {
		return len(raw)
	}
	return 0
}

// forClient is the statement as part of a client's bulk write.
func (s *statement) forClient() mongo.ClientWriteModel {
	switch s.kind {
	case insertOne:
		return &mongo.ClientInsertOneModel{Document: s.document}
	case replaceOne:
		return &mongo.ClientReplaceOneModel{Filter: s.filter, Replacement: s.document}
	case deleteOne:
		return &mongo.ClientDeleteOneModel{Filter: s.filter}
	case updateMany:
		return &mongo.ClientUpdateManyModel{Filter: s.filter, Update: s.document}
	default:
		return &mongo.ClientDeleteManyModel{Filter: s.filter}
	}
}

// forCollection is the statement as part of a collection's bulk write.
func (s *statement) forCollection() mongo.WriteModel {
	switch s.kind {
	case insertOne:
		return &mongo.InsertOneModel{Document: s.document}
	case replaceOne:
		return &mongo.ReplaceOneModel{Filter: s.filter, Replacement: s.document}
	case deleteOne:
		return &mongo.DeleteOneModel{Filter: s.filter}
	case updateMany:
		return &mongo.UpdateManyModel{Filter: s.filter, Update: s.document}
	default:
		return &mongo.DeleteManyModel{Filter: s.filter}
	}
}

// send writes statements in their order: with one command if the server has bulkWrite (MongoDB 8.0), otherwise with
// several for each collection.
func (t *tx) send(ctx context.Context, list []statement) error {
	var selected int64
	var err error
	if t.engine.bulkWrite {
		selected, err = t.sendAll(ctx, list)
	} else {
		selected, err = t.sendByCollection(ctx, list)
	}
	if err != nil {
		return err
	}
	for i := range list {
		selected -= list[i].selects
	}
	if selected != 0 && len(t.assumed) > 0 {
		return docstore.ErrStale
	}
	if selected != 0 { // impossible, because the snapshot had all of them
		return errors.New("mongostore: a transaction's writes did not find the documents that it had read")
	}
	return nil
}

func (t *tx) sendAll(ctx context.Context, list []statement) (selected int64, _ error) {
	writes := make([]mongo.ClientBulkWrite, len(list))
	for i := range list {
		writes[i] = mongo.ClientBulkWrite{
			Database: t.engine.db.Name(), Collection: list[i].collection, Model: list[i].forClient(),
		}
	}
	asking, cancel := t.engine.bounded(ctx)
	defer cancel()
	result, err := t.engine.client.BulkWrite(t.in(asking), writes)
	if refused, ok := errors.AsType[mongo.ClientBulkWriteException](err); ok {
		for i, e := range refused.WriteErrors { // there is one error, because an ordered bulk write stops at the first
			return 0, t.refused(ctx, &list[i], e, err)
		}
	}
	if err != nil {
		return 0, failure(ctx, "write", err)
	}
	return result.MatchedCount + result.DeletedCount, nil
}

func (t *tx) sendByCollection(ctx context.Context, list []statement) (selected int64, _ error) {
	of := map[string][]statement{}
	var names []string
	for _, s := range list {
		if of[s.collection] == nil {
			names = append(names, s.collection)
		}
		of[s.collection] = append(of[s.collection], s)
	}
	asking, cancel := t.engine.bounded(ctx)
	defer cancel()
	for _, name := range names {
		writes := make([]mongo.WriteModel, len(of[name]))
		for i := range writes {
			writes[i] = of[name][i].forCollection()
		}
		result, err := t.engine.db.Collection(name).BulkWrite(t.in(asking), writes)
		if refused, ok := errors.AsType[mongo.BulkWriteException](err); ok && len(refused.WriteErrors) > 0 {
			e := refused.WriteErrors[0]
			return 0, t.refused(ctx, &of[name][e.Index], e.WriteError, err)
		}
		if err != nil {
			return 0, failure(ctx, "write to "+name, err)
		}
		selected += result.MatchedCount + result.DeletedCount
	}
	return selected, nil
}

// refused returns the error for a statement that the server has refused.
func (t *tx) refused(ctx context.Context, s *statement, e mongo.WriteError, err error) error {
	switch {
	case e.Code != codeDuplicateKey:
		return failure(ctx, "write to "+s.collection, err)
	case s.entry != nil:
		return duplicate(s.def, s.entry, e)
	default: // another transaction has committed the same number of a message
		return mongo.CommandError{
			Code: codeDuplicateKey, Message: "mongostore: a message number was taken twice",
			Labels:  []string{labelTransient},
			Wrapped: fmt.Errorf("write to %s: %w", s.collection, err),
		}
	}
}

// sendSingly sends statements one at a time to a server without transactions, and notes how to undo each.
func (t *tx) sendSingly(ctx context.Context, list []statement) error {
	for i := range list {
		if err := t.sendOne(ctx, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) sendOne(ctx context.Context, s *statement) error {
	collection := t.engine.db.Collection(s.collection)
	doing := "write to " + s.collection
	switch s.kind {
	case insertOne:
		_, err := collection.InsertOne(ctx, s.document)
		if refused, ok := errors.AsType[mongo.WriteException](err); ok && len(refused.WriteErrors) > 0 {
			return t.refused(ctx, s, refused.WriteErrors[0], err)
		}
		if err != nil {
			return failure(ctx, doing, err)
		}
		id := s.document.(bson.Raw).Lookup(fieldKey)
		t.undo = append(t.undo, func(ctx context.Context) error {
			_, err := collection.DeleteOne(ctx, bson.D{{Key: fieldKey, Value: id}})
			return err
		})
		return nil
	case replaceOne:
		before, err := collection.FindOneAndReplace(ctx, s.filter, s.document).Raw()
		if err != nil {
			return t.missedOne(ctx, s, err)
		}
		id := before.Lookup(fieldKey)
		t.undo = append(t.undo, func(ctx context.Context) error {
			_, err := collection.ReplaceOne(ctx, bson.D{{Key: fieldKey, Value: id}}, before)
			return err
		})
		return nil
	default:
		before, err := collection.FindOneAndDelete(ctx, s.filter).Raw()
		if err != nil {
			return t.missedOne(ctx, s, err)
		}
		t.undo = append(t.undo, func(ctx context.Context) error {
			_, err := collection.InsertOne(ctx, before)
			return err
		})
		return nil
	}
}

// missedOne returns the reason why one document was not replaced or deleted. Without transactions, another writer may
// have changed it first.
func (t *tx) missedOne(ctx context.Context, s *statement, err error) error {
	if command, ok := errors.AsType[mongo.CommandError](err); ok && command.Code == codeDuplicateKey {
		return duplicate(s.def, s.entry, mongo.WriteError{Message: command.Message, Raw: command.Raw})
	}
	if !errors.Is(err, mongo.ErrNoDocuments) {
		return failure(ctx, "write to "+s.collection, err)
	}
	var found struct {
		Version int64 `bson:"version"`
	}
	err = t.engine.db.Collection(s.collection).FindOne(ctx, s.filter[:1]).Decode(&found) // filter[:1] is the key
	if errors.Is(err, mongo.ErrNoDocuments) {
		return docstore.ErrNotFound
	}
	if err != nil {
		return failure(ctx, "read a version in "+s.collection, err)
	}
	return &docstore.VersionError{Current: found.Version}
}
