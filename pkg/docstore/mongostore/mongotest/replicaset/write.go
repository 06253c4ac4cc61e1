package replicaset

import (
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// writes are the commands that change documents.
var writes = map[string]bool{"insert": true, "update": true, "delete": true, "findAndModify": true, "bulkWrite": true}

// statement is one of a write command's statements, and its effect in a view.
type statement struct {
	do    func(*view) (bson.D, error)
	multi bool
}

// outcome is the result of the statements.
type outcome struct {
	results []bson.D // by statement; nil for those that failed or were not run
	retried []int32  // statements that an earlier attempt has done
	errors  bson.A
}

// runStatements runs a command's statements. Each takes effect completely or not at all. If they are ordered, the first
// failure ends them. In a transaction, a write conflict is the error of the whole command.
func (s *Server) runStatements(c *command, tx *transaction, list []statement, ordered bool) (*outcome, error) {
	if len(list) == 0 || len(list) > maxWriteBatch {
		return nil, refuse(codeInvalidLength, "Write batch sizes must be between 1 and %d. Got %d operations.",
			maxWriteBatch, len(list))
	}
	o := &outcome{results: make([]bson.D, len(list))}
	retryable := tx == nil && c.session != nil
	if c.done == nil {
		c.done = map[int]bson.D{}
	}
	for i, st := range list {
		if retryable && st.multi {
			return nil, refuse(codeInvalidOptions, "Cannot use (or request) retryable writes with multi=true")
		}
		if o.results[i] = c.done[i]; o.results[i] != nil {
			continue // done by this command before it had to wait
		}
		if retryable && c.session.done[i] != nil {
			o.results[i], o.retried = c.session.done[i], append(o.retried, int32(i))
			continue
		}
		result, err := s.runStatement(c, tx, st.do)
		var refused *commandError
		switch {
		case err == nil:
			o.results[i], c.done[i] = result, result
			if retryable {
				c.session.done[i] = result
			}
		case errors.As(err, &refused) && refused.code != codeWriteConflict && refused.code != codeSnapshotUnavailable:
			o.errors = append(o.errors, append(bson.D{{Key: "index", Value: int32(i)},
				{Key: "code", Value: refused.code}, {Key: "errmsg", Value: refused.message}}, refused.details...))
			if tx != nil {
				s.end(tx, aborted)
				return o, nil
			}
			if ordered {
				return o, nil
			}
		default:
			return nil, err
		}
	}
	return o, nil
}

// runStatement runs a statement on the transaction's state, or on a copy of the committed state, which becomes the
// committed state if the statement succeeds.
func (s *Server) runStatement(c *command, tx *transaction, do func(*view) (bson.D, error)) (bson.D, error) {
	v, err := s.view(c, tx)
	if err != nil {
		return nil, err
	}
	if tx != nil {
		return do(v)
	}
	v.tree = v.db.tree.Clone()
	result, err := do(v)
	if err != nil || len(v.changed) == 0 {
		return result, err
	}
	s.time++
	v.db.tree, v.db.changed = v.tree, s.time
	if len(v.db.open) > 0 {
		for _, key := range v.changed {
			v.db.locks[key] = &lock{changed: s.time}
		}
	}
	return result, nil
}

// target is the collection to write to. Outside transactions a missing one is created.
func (s *Server) target(v *view, name string) (*collection, error) {
	c, err := v.collection(name)
	if c == nil && err == nil {
		if v.tx != nil {
			return nil, unsupported("collection %s, to be made in a transaction", name)
		}
		s.time++
		c = v.db.create(name, s.time)
	}
	return c, err
}

func (s *Server) checkWrite(c *command, tx *transaction) error {
	w := c.envelope.WriteConcern
	if tx == nil && w != nil && w.W.Type != 0 {
		if level, ok := w.W.StringValueOK(); !ok || level != "majority" {
			return unsupported("write concern %s", w.W)
		}
	}
	if w == nil && tx == nil {
		return nil // the default is "majority" since MongoDB 5.0
	}
	return s.checkSnapshot(c, tx)
}

func (s *Server) checkSnapshot(c *command, tx *transaction) error {
	if tx == nil {
		return nil
	}
	return s.checkRead(c, tx)
}

func (s *Server) insert(c *command, tx *transaction) (bson.D, error) {
	var args struct {
		Collection string     `bson:"insert"`
		Documents  []bson.Raw `bson:"documents"`
		Ordered    *bool      `bson:"ordered"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	if err := s.checkWrite(c, tx); err != nil {
		return nil, err
	}
	var list []statement
	for _, doc := range c.list("documents") {
		list = append(list, s.insertion(args.Collection, doc))
	}
	o, err := s.runStatements(c, tx, list, args.Ordered == nil || *args.Ordered)
	if err != nil {
		return nil, err
	}
	return o.reply(bson.D{{Key: "n", Value: o.sum("n")}}), nil
}

func (s *Server) insertion(collection string, doc bson.Raw) statement {
	return statement{do: func(v *view) (bson.D, error) {
		target, err := s.target(v, collection)
		if err != nil {
			return nil, err
		}
		full, err := withID(doc, doc.Lookup("_id"))
		if err != nil {
			return nil, err
		}
		return bson.D{{Key: "n", Value: int32(1)}}, v.put(target, nil, full)
	}}
}

func (o *outcome) sum(name string) int32 {
	n := int32(0)
	for _, result := range o.results {
		for _, e := range result {
			if count, ok := e.Value.(int32); ok && e.Key == name {
				n += count
			}
		}
	}
	return n
}

func (o *outcome) reply(d bson.D) bson.D {
	if len(o.errors) > 0 {
		d = append(d, bson.E{Key: "writeErrors", Value: o.errors})
	}
	if len(o.retried) > 0 {
		d = append(d, bson.E{Key: "retriedStmtIds", Value: o.retried})
	}
	return d
}

type updateSpec struct {
	Query  bson.Raw      `bson:"q"`
	Update bson.RawValue `bson:"u"`
	Multi  bool          `bson:"multi"`
	Upsert bool          `bson:"upsert"`
}

func (s *Server) update(c *command, tx *transaction) (bson.D, error) {
	var args struct {
		Collection string     `bson:"update"`
		Updates    []bson.Raw `bson:"updates"`
		Ordered    *bool      `bson:"ordered"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	if err := s.checkWrite(c, tx); err != nil {
		return nil, err
	}
	var list []statement
	for _, raw := range c.list("updates") {
		var spec updateSpec
		if err := decode("an update", raw, &spec, nil); err != nil {
			return nil, err
		}
		st, err := s.updating(args.Collection, spec)
		if err != nil {
			return nil, err
		}
		list = append(list, st)
	}
	o, err := s.runStatements(c, tx, list, args.Ordered == nil || *args.Ordered)
	if err != nil {
		return nil, err
	}
	var upserted bson.A
	for i, result := range o.results {
		if id, ok := memberOf(result, "upserted"); ok {
			upserted = append(upserted, bson.D{{Key: "index", Value: int32(i)}, {Key: "_id", Value: id}})
		}
	}
	reply := bson.D{{Key: "n", Value: o.sum("n")}, {Key: "nModified", Value: o.sum("nModified")}}
	if len(upserted) > 0 {
		reply = append(reply, bson.E{Key: "upserted", Value: upserted})
	}
	return o.reply(reply), nil
}

func memberOf(d bson.D, name string) (any, bool) {
	for _, e := range d {
		if e.Key == name {
			return e.Value, true
		}
	}
	return nil, false
}

func (s *Server) updating(collection string, spec updateSpec) (statement, error) {
	query, err := parseFilter(spec.Query)
	if err != nil {
		return statement{}, err
	}
	to, err := parseChange(spec.Update)
	if err != nil {
		return statement{}, err
	}
	return statement{multi: spec.Multi, do: func(v *view) (bson.D, error) {
		target, err := s.target(v, collection)
		if err != nil {
			return nil, err
		}
		limit := 1
		if spec.Multi {
			limit = 0
		}
		found, err := v.find(target, query, nil, 0, limit)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 && spec.Upsert {
			after, err := v.upsert(target, query, spec.Query, to)
			if err != nil {
				return nil, err
			}
			return bson.D{
				{Key: "n", Value: int32(1)},
				{Key: "nModified", Value: int32(0)},
				{Key: "upserted", Value: after.Lookup("_id")},
			}, nil
		}
		modified := int32(0)
		for _, old := range found {
			changed, err := v.replace(target, old, to)
			if err != nil {
				return nil, err
			}
			if changed {
				modified++
			}
		}
		return bson.D{{Key: "n", Value: int32(len(found))}, {Key: "nModified", Value: modified}}, nil
	}}, nil
}

// replace changes one document. A document that stays the same is not written, so it causes no conflict.
func (v *view) replace(c *collection, old bson.Raw, to change) (changed bool, _ error) {
	after, err := to(old, false)
	if err != nil || string(after) == string(old) {
		return false, err
	}
	return true, v.put(c, old, after)
}

func (v *view) upsert(c *collection, query *filter, raw bson.Raw, to change) (bson.Raw, error) {
	start, err := seed(query, raw)
	if err != nil {
		return nil, err
	}
	after, err := to(start, true)
	if err != nil {
		return nil, err
	}
	if after, err = withID(after, after.Lookup("_id")); err != nil {
		return nil, err
	}
	return after, v.put(c, nil, after)
}

func (s *Server) delete(c *command, tx *transaction) (bson.D, error) {
	var args struct {
		Collection string     `bson:"delete"`
		Deletes    []bson.Raw `bson:"deletes"`
		Ordered    *bool      `bson:"ordered"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	if err := s.checkWrite(c, tx); err != nil {
		return nil, err
	}
	var list []statement
	for _, raw := range c.list("deletes") {
		var spec struct {
			Query bson.Raw `bson:"q"`
			Limit int32    `bson:"limit"`
		}
		if err := decode("a delete", raw, &spec, nil); err != nil {
			return nil, err
		}
		st, err := s.deleting(args.Collection, spec.Query, int(spec.Limit))
		if err != nil {
			return nil, err
		}
		list = append(list, st)
	}
	o, err := s.runStatements(c, tx, list, args.Ordered == nil || *args.Ordered)
	if err != nil {
		return nil, err
	}
	return o.reply(bson.D{{Key: "n", Value: o.sum("n")}}), nil
}

func (s *Server) deleting(collection string, query bson.Raw, limit int) (statement, error) {
	parsed, err := parseFilter(query)
	if err != nil {
		return statement{}, err
	}
	return statement{multi: limit == 0, do: func(v *view) (bson.D, error) {
		target, err := v.collection(collection)
		if err != nil || target == nil {
			return bson.D{{Key: "n", Value: int32(0)}}, err
		}
		found, err := v.find(target, parsed, nil, 0, limit)
		if err != nil {
			return nil, err
		}
		for _, old := range found {
			if err := v.put(target, old, nil); err != nil {
				return nil, err
			}
		}
		return bson.D{{Key: "n", Value: int32(len(found))}}, nil
	}}, nil
}
