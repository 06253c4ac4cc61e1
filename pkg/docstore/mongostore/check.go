package mongostore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// checkSample is how many documents Check reads at each end of a collection.
const checkSample = 250

// Check looks for damage: missing indexes and, in a sample of each collection, index entries that do not match their
// document.
func (e *Engine) Check(ctx context.Context) error {
	if err := e.Ping(ctx); err != nil {
		return err
	}
	var faults []error
	for _, def := range e.defs {
		names, err := indexNames(ctx, e.collection(def))
		if err != nil {
			return err
		}
		for _, x := range indexes(def) {
			if !slices.Contains(names, x.name) && !(e.noPartial && x.partial != nil) {
				faults = append(faults, fmt.Errorf("collection %s has no index %s", def.Name, x.name))
			}
		}
		for _, direction := range []int{1, -1} {
			wrong, err := e.checkSample(ctx, def, direction)
			if err != nil {
				return err
			}
			faults = append(faults, wrong...)
		}
	}
	return errors.Join(faults...)
}

func (e *Engine) checkSample(ctx context.Context, def *docstore.Def, direction int) (faults []error, _ error) {
	o := options.Find().SetSort(bson.D{{Key: fieldKey, Value: direction}}).SetLimit(checkSample)
	cursor, err := e.collection(def).Find(ctx, bson.D{}, o)
	if err != nil {
		return nil, failure(ctx, "read a sample", err)
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	for cursor.Next(ctx) {
		id := cursor.Current.Lookup(fieldKey)
		entry, err := def.Extract(e, cursor.Current)
		if err != nil {
			faults = append(faults, fmt.Errorf("collection %s, document %s: %w", def.Name, id, err))
			continue
		}
		right, err := hasEntries(def, entry, cursor.Current)
		if err != nil {
			return nil, err
		}
		if !right {
			faults = append(faults, fmt.Errorf("collection %s, document %s: its index entries do not match its content",
				def.Name, id))
		}
	}
	return faults, failure(ctx, "read a sample", cursor.Err())
}
