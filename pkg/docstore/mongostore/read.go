package mongostore

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/idplatform/idplatform/pkg/docstore"
)

// maxBatch is how many documents one command returns; the server also bounds their size (16 MB).
const maxBatch = 10_000

// Get returns the documents that exist among ids, in no particular order.
func (e *Engine) Get(ctx context.Context, def *docstore.Def, tenant string, ids []string) ([]docstore.Row, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return e.rows(ctx, def, tenant, selection(def, tenant, docstore.ID(ids...)), nil, false, options.Find())
}

// Find returns the rows that a query selects, in its order.
func (e *Engine) Find(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find) ([]docstore.Row, error) {
	q.Filter = q.Filter.For(q.Sort...)
	o := options.Find().SetSort(sorting(q.Sort)).SetLimit(int64(q.Limit)).SetBatchSize(int32(min(q.Limit, maxBatch)))
	if q.Offset > 0 {
		o.SetSkip(int64(q.Offset))
	}
	if q.Bare {
		projection := bson.D{{Key: fieldKey, Value: 1}}
		for _, order := range q.Sort {
			projection = append(projection, bson.E{Key: entryField(order.Index), Value: 1})
		}
		o.SetProjection(projection)
	}
	return e.rows(ctx, def, tenant, after(def, tenant, q), q.Sort, q.Bare, o)
}

func (e *Engine) rows(ctx context.Context, def *docstore.Def, tenant string, query bson.D, sort []docstore.Order,
	bare bool, o *options.FindOptionsBuilder) ([]docstore.Row, error) {
	asking, cancel := e.bounded(ctx)
	defer cancel()
	cursor, err := e.collection(def).Find(asking, query, o)
	if err != nil {
		return nil, failure(ctx, "find in "+def.Name, err)
	}
	var documents []bson.Raw
	if err := cursor.All(asking, &documents); err != nil {
		return nil, failure(ctx, "find in "+def.Name, err)
	}
	rows := make([]docstore.Row, len(documents))
	for i, raw := range documents {
		if rows[i], err = row(def, tenant, raw, sort, bare); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// Page finds and then counts.
func (e *Engine) Page(ctx context.Context, def *docstore.Def, tenant string, q docstore.Find,
	exactTo int64) ([]docstore.Row, docstore.Total, error) {
	rows, err := e.Find(ctx, def, tenant, q)
	if err != nil {
		return nil, docstore.Total{}, err
	}
	total, err := e.Count(ctx, def, tenant, q.Filter, exactTo)
	return rows, total, err
}

// Count counts exactly up to exactTo. No counters are stored: all transactions of a tenant would change the counter's
// document and conflict.
func (e *Engine) Count(ctx context.Context, def *docstore.Def, tenant string, filter docstore.Filter,
	exactTo int64) (docstore.Total, error) {
	o := options.Count()
	if exactTo > 0 {
		o.SetLimit(exactTo + 1)
	}
	asking, cancel := e.bounded(ctx)
	defer cancel()
	n, err := e.collection(def).CountDocuments(asking, selection(def, tenant, filter.For()), o)
	return docstore.UpTo(exactTo, n), failure(ctx, "count in "+def.Name, err)
}

// Due lists documents of all tenants whose Entry.Due is at most before, earliest first.
func (e *Engine) Due(ctx context.Context, def *docstore.Def, before int64, limit int) ([]docstore.Ref, error) {
	o := options.Find().SetSort(ascending(fieldDue)).SetLimit(int64(limit)).
		SetProjection(bson.D{{Key: fieldID, Value: 1}, {Key: fieldTenant, Value: 1}})
	asking, cancel := e.bounded(ctx)
	defer cancel()
	cursor, err := e.collection(def).
		Find(asking, bson.D{{Key: fieldDue, Value: bson.D{{Key: "$lte", Value: bson.DateTime(before)}}}}, o)
	if err != nil {
		return nil, failure(ctx, "find what is due in "+def.Name, err)
	}
	var found []struct {
		ID     string `bson:"id"`
		Tenant string `bson:"tenant_id"`
	}
	if err := cursor.All(asking, &found); err != nil {
		return nil, failure(ctx, "find what is due in "+def.Name, err)
	}
	refs := make([]docstore.Ref, len(found))
	for i, d := range found {
		refs[i] = docstore.Ref{Tenant: d.Tenant, ID: d.ID}
	}
	return refs, nil
}

// NextDue returns the earliest Entry.Due of all tenants' documents; 0 if none has one.
func (e *Engine) NextDue(ctx context.Context, def *docstore.Def) (int64, error) {
	o := options.Find().SetSort(ascending(fieldDue)).SetLimit(1).SetProjection(bson.D{{Key: fieldDue, Value: 1}})
	asking, cancel := e.bounded(ctx)
	defer cancel()
	cursor, err := e.collection(def).Find(asking, present(fieldDue), o)
	if err != nil {
		return 0, failure(ctx, "find what is due next in "+def.Name, err)
	}
	var found []struct {
		Due bson.DateTime `bson:"_due"`
	}
	if err := cursor.All(asking, &found); err != nil || len(found) == 0 {
		return 0, failure(ctx, "find what is due next in "+def.Name, err)
	}
	return int64(found[0].Due), nil
}

// NextTenant returns the tenant that follows after among the tenants with documents, in the order of keys. '0' is the
// byte after the '/' that ends a tenant in a key.
func (e *Engine) NextTenant(ctx context.Context, def *docstore.Def, after string) (string, error) {
	query := bson.D{}
	if after != "" {
		query = bson.D{{Key: fieldKey, Value: bson.D{{Key: "$gte", Value: tenantInKey.Replace(after) + "0"}}}}
	}
	o := options.Find().SetSort(bson.D{{Key: fieldKey, Value: 1}}).SetLimit(1).
		SetProjection(bson.D{{Key: fieldTenant, Value: 1}})
	asking, cancel := e.bounded(ctx)
	defer cancel()
	cursor, err := e.collection(def).Find(asking, query, o)
	if err != nil {
		return "", failure(ctx, "find tenants in "+def.Name, err)
	}
	var found []struct {
		Tenant string `bson:"tenant_id"`
	}
	if err := cursor.All(asking, &found); err != nil || len(found) == 0 {
		return "", failure(ctx, "find tenants in "+def.Name, err)
	}
	return found[0].Tenant, nil
}
