package mongostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/idplatform/idplatform/pkg/docstore"
)

const (
	// rebuildBatch is how many documents are read and written at a time when index entries are made again.
	rebuildBatch = 500
	// reportEach is how many documents are rebuilt between two log entries; a multiple of rebuildBatch.
	reportEach = 20_000
	// prepareTimeout suffices to build indexes over millions of documents.
	prepareTimeout = 2 * time.Hour
)

var errSameValues = errors.New("mongostore: several documents of a tenant have the same value for a unique index")

// Prepare creates collections and indexes, drops the engine's indexes that are no longer declared, and makes index
// entries again where the declaration has changed. Several replicas may do each step at the same time, and a step may
// be interrupted and repeated: the same declarations lead to the same database. Replicas with older declarations must
// have stopped, since they would write entries by their own declarations.
func (e *Engine) Prepare(ctx context.Context, defs []*docstore.Def) error {
	// replaces the client's timeout, which is for single operations
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	// A transaction cannot wait for a collection to be created, so all exist before the first transaction.
	for _, name := range []string{outboxCollection, sequencesCollection, schemasCollection, countsCollection} {
		if err := e.create(ctx, name); err != nil {
			return err
		}
	}
	if err := e.indexOutbox(ctx); err != nil {
		return err
	}
	for _, def := range defs {
		if err := e.create(ctx, def.Name); err != nil {
			return err
		}
		if err := e.prepare(ctx, def); err != nil {
			return fmt.Errorf("collection %s: %w", def.Name, err)
		}
	}
	e.defs = defs
	return nil
}

// indexOutbox makes the outbox's index, if it is missing: to make one waits for all transactions on the collection, and
// a process that was killed may have left some, which nothing ends before the server does.
func (e *Engine) indexOutbox(ctx context.Context) error {
	outbox := e.db.Collection(outboxCollection)
	have, err := indexNames(ctx, outbox)
	if err != nil || slices.Contains(have, recordIndex) {
		return err
	}
	byRecord := mongo.IndexModel{Keys: ascending("record", "sequence"), Options: options.Index().SetName(recordIndex)}
	_, err = outbox.Indexes().CreateOne(ctx, byRecord)
	return failure(ctx, "create index "+recordIndex, err)
}

func (e *Engine) create(ctx context.Context, name string) error {
	err := e.db.CreateCollection(ctx, name)
	if hasCode(err, codeNamespaceExists) {
		return nil
	}
	return failure(ctx, "create collection "+name, err)
}

// prepare drops undeclared indexes, makes the entries again if necessary, builds the indexes over them, and at last
// stores the signature of the declaration.
func (e *Engine) prepare(ctx context.Context, def *docstore.Def) error {
	have, err := e.dropIndexes(ctx, def)
	if err != nil {
		return err
	}
	schemas, is := e.db.Collection(schemasCollection), bson.D{{Key: fieldKey, Value: def.Name}}
	var stored struct {
		Signature string `bson:"signature"`
	}
	err = schemas.FindOne(ctx, is).Decode(&stored)
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return failure(ctx, "read the schema", err)
	}
	want := signature(def)
	if stored.Signature == want {
		return e.makeIndexes(ctx, def, have)
	}
	if err := e.rebuild(ctx, def); err != nil {
		return err
	}
	if err := e.makeIndexes(ctx, def, have); err != nil {
		return err
	}
	note := bson.D{{Key: "$set", Value: bson.D{{Key: "signature", Value: want}}}}
	return upserted(ctx, "write the schema", func() error {
		_, err := schemas.UpdateOne(ctx, is, note, options.UpdateOne().SetUpsert(true))
		return err
	})
}

// upserted runs an upsert. Of two upserts that find no document, the server refuses the second one's insert; when it is
// repeated, the document exists.
func upserted(ctx context.Context, doing string, upsert func() error) error {
	err := upsert()
	if hasCode(err, codeDuplicateKey) {
		err = upsert()
	}
	return failure(ctx, doing, err)
}

// dropIndexes drops the engine's indexes that are not declared, and lists those that remain.
func (e *Engine) dropIndexes(ctx context.Context, def *docstore.Def) (have []string, _ error) {
	names, err := indexNames(ctx, e.collection(def))
	if err != nil {
		return nil, err
	}
	declared := indexes(def)
	for _, name := range names {
		if slices.ContainsFunc(declared, func(x index) bool { return x.name == name }) {
			have = append(have, name)
		} else if isOurs(name) {
			err := e.collection(def).Indexes().DropOne(ctx, name)
			if err != nil && !hasCode(err, codeIndexNotFound) {
				return nil, failure(ctx, "drop index "+name, err)
			}
		}
	}
	return have, nil
}

func (e *Engine) makeIndexes(ctx context.Context, def *docstore.Def, have []string) error {
	for _, x := range indexes(def) {
		if slices.Contains(have, x.name) {
			continue
		}
		_, err := e.collection(def).Indexes().CreateOne(ctx, x.model())
		switch {
		case err == nil:
		case hasCode(err, codeNotImplemented) && !e.transactional && x.partial != nil:
			e.noPartial = true
			e.log.Error("this server has no partial indexes; uniqueness is not enforced", "collection", def.Name,
				"index", x.name)
		case hasCode(err, codeDuplicateKey):
			return fmt.Errorf("index %s: %w", x.name, errSameValues)
		default:
			return failure(ctx, "create index "+x.name, err)
		}
	}
	return nil
}

func indexNames(ctx context.Context, of *mongo.Collection) ([]string, error) {
	specs, err := of.Indexes().ListSpecifications(ctx)
	if err != nil {
		return nil, failure(ctx, "list indexes", err)
	}
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	return names, nil
}

// rebuild makes the entries of all documents again, a batch at a time in the order of keys. It does not change a
// document that is written at the same time: its writer has made the entries.
func (e *Engine) rebuild(ctx context.Context, def *docstore.Def) error {
	all := bson.D{}
	for done := 0; ; {
		batch, err := e.batch(ctx, def, all)
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			if done > 0 {
				e.log.Info("index entries are rebuilt", "collection", def.Name, "documents", done)
			}
			return nil
		}
		var updates []mongo.WriteModel
		for _, raw := range batch {
			update, err := e.rebuilt(def, raw)
			if err != nil {
				return err
			}
			if update != nil {
				updates = append(updates, update)
			}
		}
		if len(updates) > 0 {
			_, err := e.collection(def).BulkWrite(ctx, updates, options.BulkWrite().SetOrdered(false))
			if hasCode(err, codeDuplicateKey) {
				return errSameValues
			}
			if err != nil {
				return failure(ctx, "write index entries", err)
			}
		}
		if done += len(batch); done%reportEach == 0 {
			e.log.Info("rebuilding index entries", "collection", def.Name, "done", done)
		}
		last := batch[len(batch)-1].Lookup(fieldKey)
		all = bson.D{{Key: fieldKey, Value: bson.D{{Key: "$gt", Value: last}}}}
	}
}

func (e *Engine) batch(ctx context.Context, def *docstore.Def, query bson.D) ([]bson.Raw, error) {
	cursor, err := e.collection(def).Find(ctx, query, options.Find().SetSort(ascending(fieldKey)).
		SetLimit(rebuildBatch))
	if err != nil {
		return nil, failure(ctx, "read documents", err)
	}
	var batch []bson.Raw
	err = cursor.All(ctx, &batch)
	return batch, failure(ctx, "read documents", err)
}

// rebuilt is the update that gives a stored document its entries; nil if it has them already.
func (e *Engine) rebuilt(def *docstore.Def, raw bson.Raw) (mongo.WriteModel, error) {
	entry, err := def.Extract(e, raw)
	if err != nil {
		return nil, fmt.Errorf("mongostore: document %s: %w", raw.Lookup(fieldKey), err)
	}
	fresh, err := hasEntries(def, entry, raw)
	if fresh || err != nil {
		return nil, err
	}
	set, unset := bson.D{{Key: fieldEntries, Value: entries(def, entry)}}, bson.D{}
	if entry.Due != 0 {
		set = append(set, bson.E{Key: fieldDue, Value: bson.DateTime(entry.Due)})
	} else {
		unset = append(unset, bson.E{Key: fieldDue, Value: ""})
	}
	update := bson.D{{Key: "$set", Value: set}}
	if len(unset) > 0 {
		update = append(update, bson.E{Key: "$unset", Value: unset})
	}
	entry.Counts = countsOf(raw)
	is := stampOf(entry.Tenant, entry.ID, entry.Stamp)
	return mongo.NewUpdateOneModel().SetFilter(is).SetUpdate(update), nil
}

// hasEntries reports whether a stored document has the right key, Due time and index entries.
func hasEntries(def *docstore.Def, e *docstore.Entry, raw bson.Raw) (bool, error) {
	want, err := bson.Marshal(entries(def, e))
	if err != nil {
		return false, fmt.Errorf("mongostore: encode entries: %w", err)
	}
	have, _ := raw.Lookup(fieldEntries).DocumentOK()
	due, _ := raw.Lookup(fieldDue).DateTimeOK()
	id, _ := raw.Lookup(fieldKey).StringValueOK()
	return bytes.Equal(want, have) && due == e.Due && id == key(e.Tenant, e.ID), nil
}
