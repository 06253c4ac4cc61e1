package replicaset

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// killSessions ends the transactions of sessions, which can be used again
// (https://www.mongodb.com/docs/manual/reference/command/killSessions/).
func (s *Server) killSessions(c *command, _ *transaction) (bson.D, error) {
	var args struct {
		Sessions []struct {
			ID bson.Binary `bson:"id"`
		} `bson:"killSessions"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	if len(args.Sessions) == 0 {
		return nil, unsupported("killSessions of all sessions")
	}
	for _, killed := range args.Sessions {
		if sess := s.sessions[string(killed.ID.Data)]; sess != nil && sess.tx != nil {
			s.end(sess.tx, aborted)
		}
	}
	return bson.D{}, nil
}

func isCurrentOp(c *command) bool {
	stages := c.list("pipeline")
	return c.db == "admin" && len(stages) > 0 && commandName(stages[0]) == "$currentOp"
}

// currentOp lists the open transactions that run no command, with idleSessions, and then a $match
// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/currentOp/). The server runs one command at a
// time, so all other transactions are idle.
func (s *Server) currentOp(c *command) (bson.D, error) {
	var args struct {
		Collection int32      `bson:"aggregate"`
		Pipeline   []bson.Raw `bson:"pipeline"`
		Cursor     bson.Raw   `bson:"cursor"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	if concern := c.envelope.ReadConcern; concern != nil && concern.Level != "" && concern.Level != "local" {
		return nil, refuse(codeInvalidOptions, "Aggregation stage $currentOp requires read concern 'local'")
	}
	idle, _ := args.Pipeline[0].Lookup("$currentOp", "idleSessions").BooleanOK()
	if len(args.Pipeline) != 2 || commandName(args.Pipeline[1]) != "$match" || !idle {
		return nil, unsupported("$currentOp but with idleSessions and $match")
	}
	query, err := parseFilter(args.Pipeline[1].Lookup("$match").Document())
	if err != nil {
		return nil, err
	}
	var found []bson.Raw
	for id, sess := range s.sessions {
		if sess.tx == nil || sess.tx.state != inProgress {
			continue
		}
		doc := marshal(bson.D{
			{Key: "type", Value: "idleSession"}, {Key: "desc", Value: "inactive transaction"},
			{Key: "appName", Value: sess.tx.appName}, {Key: "active", Value: false},
			{Key: "lsid", Value: bson.D{
				{Key: "id", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte(id)}},
			}},
			{Key: "transaction", Value: bson.D{
				{Key: "parameters", Value: bson.D{{Key: "txnNumber", Value: sess.number}}},
				{Key: "timeActiveMicros", Value: sess.tx.active.Microseconds()},
			}},
		})
		if ok, err := query.matches(doc); err != nil {
			return nil, err
		} else if ok {
			found = append(found, doc)
		}
	}
	slices.SortFunc(found, func(a, b bson.Raw) int { return slices.Compare(a, b) })
	return s.firstBatch("admin.$cmd.aggregate", found, len(found), true), nil
}
