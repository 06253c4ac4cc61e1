package replicaset

import (
	"errors"
	"reflect"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// command is a request whose members that all commands have in common are parsed.
type command struct {
	*request
	name     string
	envelope envelope
	db       string // the database
	session  *session
	deadline time.Time
	conn     int64           // the connection's number
	appName  string          // as the client called itself when it connected
	gone     <-chan struct{} // closed when the client has closed the connection
	done     map[int]bson.D  // the results of the statements that it has run so far; it may wait between statements
}

// envelope has the members that every command may have.
type envelope struct {
	DB      string `bson:"$db"`
	Session struct {
		ID bson.Binary `bson:"id"`
	} `bson:"lsid"`
	Number         *int64    `bson:"txnNumber"`
	Start          bool      `bson:"startTransaction"`
	Autocommit     *bool     `bson:"autocommit"`
	ReadConcern    *concern  `bson:"readConcern"`
	WriteConcern   *concern  `bson:"writeConcern"`
	MaxTime        int64     `bson:"maxTimeMS"`
	ClusterTime    bson.Raw  `bson:"$clusterTime"`
	ReadPreference bson.Raw  `bson:"$readPreference"`
	RecoveryToken  *bson.Raw `bson:"recoveryToken"`
}

type concern struct {
	Level   string        `bson:"level"`
	After   bson.RawValue `bson:"afterClusterTime"`
	W       bson.RawValue `bson:"w"`
	Journal *bool         `bson:"j"`
	Timeout int64         `bson:"wtimeout"`
}

var envelopeMembers = membersOf(reflect.TypeFor[envelope]())

func membersOf(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("bson"), ",")
		names[name] = true
	}
	return names
}

// defaultWait is how long a write waits for a transaction if the client sends no maxTimeMS.
const defaultWait = time.Minute

func parseCommand(r *request) (*command, error) {
	c := &command{request: r, name: commandName(r.body)}
	if err := bson.Unmarshal(r.body, &c.envelope); err != nil {
		return nil, refuse(codeFailedToParse, "%v", err)
	}
	c.db, c.deadline = c.envelope.DB, time.Now().Add(defaultWait)
	if c.envelope.MaxTime > 0 {
		c.deadline = time.Now().Add(time.Duration(c.envelope.MaxTime) * time.Millisecond)
	}
	if c.name == "bulkWrite" { // bulkWrite is sent to "admin"
		for i, ns := range c.list("nsInfo") {
			text, _ := ns.Lookup("ns").StringValueOK()
			name, _, _ := strings.Cut(text, ".")
			if i > 0 && name != c.db {
				return nil, unsupported("bulkWrite in several databases")
			}
			c.db = name
		}
	}
	return c, nil
}

// ending reports whether the command ends a transaction.
func (c *command) ending() bool { return c.name == "commitTransaction" || c.name == "abortTransaction" }

// list returns a member that is a list of documents, sent as a sequence or as an array.
func (c *command) list(name string) []bson.Raw {
	if docs, ok := c.sequences[name]; ok {
		return docs
	}
	array, ok := c.body.Lookup(name).ArrayOK()
	if !ok {
		return nil
	}
	values, _ := array.Values()
	var docs []bson.Raw
	for _, v := range values {
		doc, _ := v.DocumentOK()
		docs = append(docs, doc)
	}
	return docs
}

// decode decodes the command's own members. It refuses a member that into does not have: the simulation must not ignore
// one.
func (c *command) decode(into any) error {
	known := membersOf(reflect.TypeOf(into).Elem())
	for name := range c.sequences {
		if !known[name] {
			return unsupported("%s of %s", name, c.name)
		}
	}
	return decode(c.name, c.body, into, envelopeMembers)
}

func decode(what string, doc bson.Raw, into any, others map[string]bool) error {
	known := membersOf(reflect.TypeOf(into).Elem())
	members, err := doc.Elements()
	if err != nil {
		return refuse(codeFailedToParse, "%v", err)
	}
	for _, m := range members {
		if name := m.Key(); !known[name] && !others[name] {
			return unsupported("%s of %s", name, what)
		}
	}
	if err := bson.Unmarshal(doc, into); err != nil {
		return refuse(codeFailedToParse, "%s: %v", what, err)
	}
	return nil
}

// runs has the function of each command, by its name.
var runs map[string]func(*Server, *command, *transaction) (bson.D, error)

func init() {
	runs = map[string]func(*Server, *command, *transaction) (bson.D, error){
		"ping":              (*Server).ping,
		"find":              (*Server).find,
		"aggregate":         (*Server).aggregate,
		"getMore":           (*Server).getMore,
		"killCursors":       (*Server).killCursors,
		"insert":            (*Server).insert,
		"update":            (*Server).update,
		"delete":            (*Server).delete,
		"findAndModify":     (*Server).findAndModify,
		"bulkWrite":         (*Server).bulkWrite,
		"create":            (*Server).create,
		"createIndexes":     (*Server).createIndexes,
		"dropIndexes":       (*Server).dropIndexes,
		"listIndexes":       (*Server).listIndexes,
		"drop":              (*Server).drop,
		"dropDatabase":      (*Server).dropDatabase,
		"commitTransaction": (*Server).commit,
		"abortTransaction":  (*Server).abort,
		"endSessions":       (*Server).endSessions,
		"killSessions":      (*Server).killSessions,
	}
}

// outsideOnly are the commands that MongoDB does not allow in transactions
// (https://www.mongodb.com/docs/manual/core/transactions-operations/#restricted-operations), and some that it allows
// but that mongostore does not send there.
var outsideOnly = map[string]bool{
	"ping": true, "create": true, "createIndexes": true, "dropIndexes": true, "listIndexes": true, "drop": true,
	"dropDatabase": true,
	"endSessions":  true, "killSessions": true,
}

func (s *Server) ping(*command, *transaction) (bson.D, error) { return bson.D{}, nil }

// answer runs a command and makes its reply. A fault may lose the reply with the connection.
func (s *Server) answer(m *member, conn int64, appName string, r *request, gone <-chan struct{}) (reply bson.Raw,
	lost bool) {
	c, err := parseCommand(r)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return marshal(s.refusal(c, err)), false
	}
	c.gone, c.conn, c.appName = gone, conn, appName
	var hit Fault
	alone := true
	if s.scheduler != nil {
		hit, alone = s.scheduler.turn(c)
	}
	if f := s.injection(c); f != None {
		hit = f
	}
	if hit == LoseRequest {
		return nil, true
	}
	d := s.runUntilFree(m, c, hit)
	if !alone {
		s.scheduler.delay(c)
	}
	return marshal(d), hit == LoseReply
}

// runUntilFree runs a command, and again after each transaction that it had to wait for.
func (s *Server) runUntilFree(m *member, c *command, hit Fault) bson.D {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[c.name]++
	term := s.term
	switch hit {
	case StepDown:
		s.stepDown()
	case Expire:
		s.abortOf(c)
	}
	for {
		if m.number != s.primary {
			code := int32(codeNotPrimary)
			if c.name == "find" || c.name == "aggregate" {
				code = codeNotPrimaryNoRead
			}
			return s.refusal(c, refuse(code, "not primary"))
		}
		if term != s.term {
			return s.refusal(c, refuse(codeInterruptedByRepl, "operation was interrupted"))
		}
		if c.abandoned() {
			// A server does not run an operation whose client has disconnected (ClientDisconnect), and aborts its
			// transaction.
			if !c.ending() {
				s.abortOf(c)
			}
			return bson.D{} // nobody reads the reply
		}
		reply, err := s.run(c, hit)
		var held *heldError
		if !errors.As(err, &held) {
			if err != nil {
				return s.refusal(c, err)
			}
			if hit == UnknownCommit && c.name == "commitTransaction" {
				reply = append(reply, bson.E{Key: "writeConcernError", Value: bson.D{
					{Key: "code", Value: int32(codeWriteConcernTimeout)},
					{Key: "codeName", Value: codeNames[codeWriteConcernTimeout]},
					{Key: "errmsg", Value: "waiting for replication timed out"},
					{Key: "errInfo", Value: bson.D{{Key: "wtimeout", Value: true}}},
				}})
			}
			return s.finished(reply)
		}
		if !s.wait(c, held.by) {
			return s.refusal(c, refuse(codeMaxTimeExpired, "operation exceeded time limit"))
		}
	}
}

func (c *command) abandoned() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// abortOf aborts the transaction that a command belongs to.
func (s *Server) abortOf(c *command) {
	sess := s.sessions[string(c.envelope.Session.ID.Data)]
	if sess != nil && sess.tx != nil && c.envelope.Number != nil && *c.envelope.Number == sess.number {
		s.end(sess.tx, aborted)
	}
}

// wait waits for a transaction to end. It returns false if the command's time is up.
func (s *Server) wait(c *command, tx *transaction) bool {
	s.mu.Unlock()
	defer s.mu.Lock()
	timer := time.NewTimer(time.Until(c.deadline))
	defer timer.Stop()
	select {
	case <-tx.ended:
	case <-c.gone:
	case <-s.closing:
		return false
	case <-timer.C:
		return false
	}
	if s.scheduler != nil {
		_, _ = s.scheduler.turn(c) // the scheduler has decided its fault already
	}
	return true
}

func (s *Server) run(c *command, hit Fault) (bson.D, error) {
	do := runs[c.name]
	if do == nil || c.name == "bulkWrite" && s.options.Wire < bulkWriteWire {
		return nil, unsupported("command %s", c.name)
	}
	tx, err := s.enter(c)
	if err != nil {
		return nil, err
	}
	if tx == nil {
		return do(s, c, nil)
	}
	if outsideOnly[c.name] {
		err = refuse(codeNotPermittedInTxn, "Cannot run '%s' in a multi-document transaction.", c.name)
	} else if hit == Conflict && !c.ending() && writes[c.name] {
		err = refuse(codeWriteConflict, "a write conflict decided by the schedule")
	}
	var reply bson.D
	if err == nil {
		began := time.Now()
		reply, err = do(s, c, tx)
		tx.active += max(time.Since(began), time.Microsecond)
	}
	if err != nil && !c.ending() {
		s.end(tx, aborted) // with any error
	}
	return reply, err
}

// refusal is the reply to a command that failed, with the labels that the server adds.
func (s *Server) refusal(c *command, err error) bson.D {
	var missing *unsupportedError
	if errors.As(err, &missing) {
		s.fault(missing.what)
		err = refuse(codeBadValue, "%v", missing)
	}
	var e *commandError
	if !errors.As(err, &e) {
		s.fault(err.Error())
		e = refuse(codeBadValue, "%v", err)
	}
	var labels []string
	if c != nil && c.envelope.Number != nil {
		inTransaction := c.envelope.Autocommit != nil
		if inTransaction && transient(e.code, c.ending()) {
			labels = append(labels, labelTransient)
		}
		if stateChange(e.code) && (!inTransaction || c.ending()) {
			labels = append(labels, labelRetryableWrite)
		}
	}
	reply := bson.D{
		{Key: "errmsg", Value: e.message}, {Key: "code", Value: e.code}, {Key: "codeName", Value: codeNames[e.code]},
	}
	if len(labels) > 0 {
		reply = append(reply, bson.E{Key: "errorLabels", Value: labels})
	}
	if stateChange(e.code) {
		reply = append(reply, bson.E{Key: "topologyVersion", Value: s.topologyVersion()})
	}
	reply = append(reply, e.details...)
	reply = s.finished(reply)
	for i := range reply {
		if reply[i].Key == "ok" {
			reply[i].Value = 0.0
		}
	}
	return reply
}
