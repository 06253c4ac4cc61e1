package replicaset

import "go.mongodb.org/mongo-driver/v2/bson"

type findAndModifyArgs struct {
	Collection string        `bson:"findAndModify"`
	Query      bson.Raw      `bson:"query"`
	Update     bson.RawValue `bson:"update"`
	Remove     bool          `bson:"remove"`
	New        bool          `bson:"new"`
	Upsert     bool          `bson:"upsert"`
}

func (s *Server) findAndModify(c *command, tx *transaction) (bson.D, error) {
	var args findAndModifyArgs
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	if err := s.checkWrite(c, tx); err != nil {
		return nil, err
	}
	query, err := parseFilter(args.Query)
	if err != nil {
		return nil, err
	}
	var to change
	if !args.Remove {
		if to, err = parseChange(args.Update); err != nil {
			return nil, err
		}
	}
	if tx == nil && c.session != nil {
		if done := c.session.done[0]; done != nil {
			return append(done[:len(done):len(done)], bson.E{Key: "retriedStmtId", Value: int32(0)}), nil
		}
	}
	result, err := s.runStatement(c, tx, func(v *view) (bson.D, error) { return s.modifyOne(v, &args, query, to) })
	if err == nil && tx == nil && c.session != nil {
		c.session.done[0] = result
	}
	return result, err
}

// modifyOne runs a findAndModify with a parsed query and change.
func (s *Server) modifyOne(v *view, args *findAndModifyArgs, query *filter, to change) (bson.D, error) {
	target, err := s.target(v, args.Collection)
	if err != nil {
		return nil, err
	}
	found, err := v.find(target, query, nil, 0, 1)
	if err != nil {
		return nil, err
	}
	switch {
	case len(found) == 0 && args.Upsert:
		after, err := v.upsert(target, query, args.Query, to)
		if err != nil {
			return nil, err
		}
		last := bson.D{
			{Key: "n", Value: int32(1)},
			{Key: "updatedExisting", Value: false},
			{Key: "upserted", Value: after.Lookup("_id")},
		}
		if !args.New {
			return modified(nil, last), nil
		}
		return modified(after, last), nil
	case len(found) == 0:
		return modified(nil, bson.D{{Key: "n", Value: int32(0)}, {Key: "updatedExisting", Value: false}}), nil
	case args.Remove:
		return modified(found[0], bson.D{{Key: "n", Value: int32(1)}}), v.put(target, found[0], nil)
	}
	if _, err := v.replace(target, found[0], to); err != nil {
		return nil, err
	}
	value := found[0]
	if args.New {
		key, err := target.key(found[0])
		if err != nil {
			return nil, err
		}
		value = v.get(key)
	}
	return modified(value, bson.D{{Key: "n", Value: int32(1)}, {Key: "updatedExisting", Value: true}}), nil
}

// modified is the reply to a findAndModify.
func modified(value bson.Raw, last bson.D) bson.D {
	reply := bson.D{{Key: "lastErrorObject", Value: last}}
	if value == nil {
		return append(reply, bson.E{Key: "value", Value: nil})
	}
	return append(reply, bson.E{Key: "value", Value: value})
}
