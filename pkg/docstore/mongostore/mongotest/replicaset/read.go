package replicaset

import (
	"go.mongodb.org/mongo-driver/v2/bson"
)

// firstBatch is the size of the first batch if the client names none
// (https://www.mongodb.com/docs/manual/core/cursors/#cursor-batches).
const firstBatch = 101

// cursor is the rest of a result.
type cursor struct {
	ns   string
	rest []bson.Raw
}

// view returns what a statement of a command reads and writes.
func (s *Server) view(c *command, tx *transaction) (*view, error) {
	d, err := s.database(c.db)
	if err != nil {
		return nil, err
	}
	if tx == nil {
		return &view{db: d, tree: d.tree}, nil
	}
	if tx.db != d {
		return nil, unsupported("transaction over several databases")
	}
	return &view{db: d, tree: tx.tree, tx: tx}, nil
}

// collection finds a collection; nil if there is none. A snapshot that is older than the collection's last index cannot
// be read (https://www.mongodb.com/docs/manual/reference/read-concern-snapshot/, "SnapshotUnavailable").
func (v *view) collection(name string) (*collection, error) {
	c := v.db.collections[name]
	if v.tx == nil || c == nil {
		return c, nil
	}
	if c.changed > v.tx.snapshot {
		return nil, refuse(codeSnapshotUnavailable,
			"Unable to read from a snapshot due to pending collection catalog changes to %s", name)
	}
	v.tx.used[c] = true
	return c, nil
}

func (s *Server) checkRead(c *command, tx *transaction) error {
	level := "local"
	if c.envelope.ReadConcern != nil && c.envelope.ReadConcern.Level != "" {
		level = c.envelope.ReadConcern.Level
	}
	switch {
	// the same here, because every answered write is on a majority
	case tx == nil && (level == "majority" || level == "local"):
	case tx != nil && (level == "snapshot" || !c.envelope.Start):
	default:
		return unsupported("read concern %s at this place", level)
	}
	return nil
}

func (s *Server) find(c *command, tx *transaction) (bson.D, error) {
	var args struct {
		Collection string   `bson:"find"`
		Filter     bson.Raw `bson:"filter"`
		Sort       bson.D   `bson:"sort"`
		Skip       int64    `bson:"skip"`
		Limit      int64    `bson:"limit"`
		Batch      *int64   `bson:"batchSize"`
		Single     bool     `bson:"singleBatch"`
		Projection bson.Raw `bson:"projection"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	if err := s.checkRead(c, tx); err != nil {
		return nil, err
	}
	v, err := s.view(c, tx)
	if err != nil {
		return nil, err
	}
	collection, err := v.collection(args.Collection)
	if err != nil {
		return nil, err
	}
	query, err := parseFilter(args.Filter)
	if err != nil {
		return nil, err
	}
	sort, err := parseSort(args.Sort)
	if err != nil {
		return nil, err
	}
	var found []bson.Raw
	if collection != nil {
		if found, err = v.find(collection, query, sort, int(args.Skip), int(args.Limit)); err != nil {
			return nil, err
		}
	}
	for i, doc := range found {
		if found[i], err = projected(doc, args.Projection); err != nil {
			return nil, err
		}
	}
	size := firstBatch
	if args.Batch != nil {
		size = int(*args.Batch) // with 0 the first batch is empty, and there is a cursor
	}
	return s.firstBatch(c.db+"."+args.Collection, found, size, args.Single), nil
}

func parseSort(d bson.D) ([]sortField, error) {
	fields := make([]sortField, len(d))
	for i, e := range d {
		switch e.Value {
		case int32(1), int64(1):
		case int32(-1), int64(-1):
			fields[i].desc = true
		default:
			return nil, unsupported("sort by %v", e.Value)
		}
		fields[i].path = e.Key
	}
	return fields, nil
}

func (s *Server) firstBatch(ns string, found []bson.Raw, limit int, single bool) bson.D {
	batch, rest := cut(found, limit)
	id := int64(0)
	if len(rest) > 0 && !single {
		s.numbered++
		id = s.numbered
		s.cursors[id] = &cursor{ns, rest}
	}
	return cursorReply("firstBatch", ns, id, batch)
}

// cut is the next batch: at most limit documents, and no more than fit into a reply.
func cut(docs []bson.Raw, limit int) (batch, rest []bson.Raw) {
	limit = min(limit, len(docs))
	size := 0
	for i := range limit {
		if size += len(docs[i]); size > maxDocument && i > 0 {
			return docs[:i], docs[i:]
		}
	}
	return docs[:limit], docs[limit:]
}

func cursorReply(name, ns string, id int64, batch []bson.Raw) bson.D {
	if batch == nil {
		batch = []bson.Raw{}
	}
	return bson.D{
		{Key: "cursor", Value: bson.D{{Key: name, Value: batch}, {Key: "id", Value: id}, {Key: "ns", Value: ns}}},
	}
}

func (s *Server) getMore(c *command, _ *transaction) (bson.D, error) {
	var args struct {
		ID         int64  `bson:"getMore"`
		Collection string `bson:"collection"`
		Batch      int64  `bson:"batchSize"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	open := s.cursors[args.ID]
	if open == nil {
		return nil, refuse(codeCursorNotFound, "cursor id %d not found", args.ID)
	}
	limit := int(args.Batch)
	if limit == 0 {
		limit = len(open.rest)
	}
	var batch []bson.Raw
	batch, open.rest = cut(open.rest, limit)
	if len(open.rest) == 0 {
		delete(s.cursors, args.ID)
		args.ID = 0
	}
	return cursorReply("nextBatch", open.ns, args.ID, batch), nil
}

func (s *Server) killCursors(c *command, _ *transaction) (bson.D, error) {
	var args struct {
		Collection string  `bson:"killCursors"`
		Cursors    []int64 `bson:"cursors"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	for _, id := range args.Cursors {
		delete(s.cursors, id)
	}
	return bson.D{{Key: "cursorsKilled", Value: args.Cursors}}, nil
}

// aggregate counts documents as drivers do: $match, $skip, $limit, and $group by a constant with the sum of 1.
func (s *Server) aggregate(c *command, tx *transaction) (bson.D, error) {
	if isCurrentOp(c) {
		return s.currentOp(c)
	}
	var args struct {
		Collection string     `bson:"aggregate"`
		Pipeline   []bson.Raw `bson:"pipeline"`
		Cursor     bson.Raw   `bson:"cursor"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	if err := s.checkRead(c, tx); err != nil {
		return nil, err
	}
	query, skip, limit, err := parseCount(args.Pipeline)
	if err != nil {
		return nil, err
	}
	v, err := s.view(c, tx)
	if err != nil {
		return nil, err
	}
	collection, err := v.collection(args.Collection)
	if err != nil {
		return nil, err
	}
	var counted []bson.Raw
	if collection != nil {
		found, err := v.find(collection, query, nil, skip, limit)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 { // there is no group without members
			counted = append(counted,
				marshal(bson.D{{Key: "_id", Value: int32(1)}, {Key: "n", Value: int32(len(found))}}))
		}
	}
	return s.firstBatch(c.db+"."+args.Collection, counted, firstBatch, false), nil
}

// parseCount parses the pipeline by which drivers count.
func parseCount(pipeline []bson.Raw) (query *filter, skip, limit int, err error) {
	var skipped, limited int64
	grouped := false
	for i, stage := range pipeline {
		name := commandName(stage)
		v := stage.Lookup(name)
		ok := true
		switch {
		case name == "$match" && i == 0:
			query, err = parseFilter(v.Document())
		case name == "$skip" && !grouped && limited == 0:
			skipped, ok = v.AsInt64OK()
		case name == "$limit" && !grouped:
			limited, ok = v.AsInt64OK()
		case name == "$group" && i == len(pipeline)-1:
			grouped = true
			one, _ := v.Document().Lookup("n", "$sum").AsInt64OK()
			ok = one == 1 && v.Document().Lookup("_id").Type == bson.TypeInt32
		default:
			ok = false
		}
		if err != nil {
			return nil, 0, 0, err
		}
		if !ok {
			return nil, 0, 0, unsupported("aggregation %s at this place", name)
		}
	}
	if query == nil || !grouped {
		return nil, 0, 0, unsupported("aggregation other than counting")
	}
	return query, int(skipped), int(limited), nil
}
