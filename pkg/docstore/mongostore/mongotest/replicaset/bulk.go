package replicaset

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// bulkWrite is a client's bulk write, since MongoDB 8.0
// (https://www.mongodb.com/docs/manual/reference/command/bulkWrite/): statements on several collections in one
// command.
func (s *Server) bulkWrite(c *command, tx *transaction) (bson.D, error) {
	var args struct {
		BulkWrite  int32      `bson:"bulkWrite"`
		Ops        []bson.Raw `bson:"ops"`
		NsInfo     []bson.Raw `bson:"nsInfo"`
		Ordered    *bool      `bson:"ordered"`
		ErrorsOnly bool       `bson:"errorsOnly"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	if err := s.checkWrite(c, tx); err != nil {
		return nil, err
	}
	var collections []string
	for _, ns := range c.list("nsInfo") {
		text, _ := ns.Lookup("ns").StringValueOK()
		_, name, _ := strings.Cut(text, ".")
		collections = append(collections, name)
	}
	var list []statement
	var kinds []string
	for _, raw := range c.list("ops") {
		kind := commandName(raw)
		at, _ := raw.Lookup(kind).AsInt64OK()
		if at < 0 || int(at) >= len(collections) {
			return nil, refuse(codeBadValue, "BulkWrite ops entry has an invalid nsInfo index.")
		}
		st, err := s.bulkStatement(kind, collections[at], raw)
		if err != nil {
			return nil, err
		}
		list, kinds = append(list, st), append(kinds, kind)
	}
	o, err := s.runStatements(c, tx, list, args.Ordered == nil || *args.Ordered)
	if err != nil {
		return nil, err
	}
	return o.bulkReply(kinds, args.ErrorsOnly), nil
}

func (s *Server) bulkStatement(kind, collection string, raw bson.Raw) (statement, error) {
	switch kind {
	case "insert":
		var op struct {
			At       int32    `bson:"insert"`
			Document bson.Raw `bson:"document"`
		}
		err := decode("an insert of bulkWrite", raw, &op, nil)
		return s.insertion(collection, op.Document), err
	case "update":
		var op struct {
			At     int32         `bson:"update"`
			Filter bson.Raw      `bson:"filter"`
			Update bson.RawValue `bson:"updateMods"`
			Multi  bool          `bson:"multi"`
			Upsert bool          `bson:"upsert"`
		}
		if err := decode("an update of bulkWrite", raw, &op, nil); err != nil {
			return statement{}, err
		}
		return s.updating(collection, updateSpec{op.Filter, op.Update, op.Multi, op.Upsert})
	case "delete":
		var op struct {
			At     int32    `bson:"delete"`
			Filter bson.Raw `bson:"filter"`
			Multi  bool     `bson:"multi"`
		}
		if err := decode("a delete of bulkWrite", raw, &op, nil); err != nil {
			return statement{}, err
		}
		limit := 1
		if op.Multi {
			limit = 0
		}
		return s.deleting(collection, op.Filter, limit)
	}
	return statement{}, unsupported("bulkWrite of %s", kind)
}

func (o *outcome) bulkReply(kinds []string, errorsOnly bool) bson.D {
	counts := map[string]int32{}
	batch := []bson.Raw{}
	for i, result := range o.results {
		if result == nil {
			continue
		}
		n := int32(0)
		entry := bson.D{{Key: "ok", Value: 1.0}, {Key: "idx", Value: int32(i)}}
		for _, e := range result {
			switch count, isCount := e.Value.(int32); {
			case e.Key == "upserted":
				e.Value = bson.D{{Key: "_id", Value: e.Value}}
				counts["nUpserted"]++
				n = -1 // an upsert does not count as a match
			case isCount && e.Key == "n" && n == 0:
				n = count
			case isCount && e.Key == "nModified":
				counts["nModified"] += count
			}
			entry = append(entry, e)
		}
		switch n = max(n, 0); kinds[i] {
		case "insert":
			counts["nInserted"] += n
		case "update":
			counts["nMatched"] += n
		case "delete":
			counts["nDeleted"] += n
		}
		if !errorsOnly {
			batch = append(batch, marshal(entry))
		}
	}
	for _, e := range o.errors {
		failed := bson.D{{Key: "ok", Value: 0.0}, {Key: "n", Value: int32(0)}}
		for _, m := range e.(bson.D) {
			if m.Key == "index" {
				m.Key = "idx"
			}
			failed = append(failed, m)
		}
		batch = append(batch, marshal(failed))
	}
	reply := cursorReply("firstBatch", "admin.$cmd.bulkWrite", 0, batch)
	reply = append(reply, bson.E{Key: "nErrors", Value: int32(len(o.errors))})
	for _, name := range []string{"nInserted", "nMatched", "nModified", "nUpserted", "nDeleted"} {
		reply = append(reply, bson.E{Key: name, Value: counts[name]})
	}
	if len(o.retried) > 0 {
		reply = append(reply, bson.E{Key: "retriedStmtIds", Value: o.retried})
	}
	return reply
}
