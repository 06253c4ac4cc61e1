package replicaset

import (
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// session is the server's state of a client's session (https://www.mongodb.com/docs/manual/core/server-sessions/ and,
// for the numbers, https://github.com/mongodb/specifications/blob/master/source/retryable-writes/retryable-writes.md).
type session struct {
	number int64          // the highest txnNumber seen
	tx     *transaction   // the transaction with that number, if there is one
	done   map[int]bson.D // otherwise the results of a retryable write's statements
}

type transactionState int

const (
	inProgress transactionState = iota
	committed
	aborted
)

// transaction is a multi-document transaction with snapshot isolation
// (https://www.mongodb.com/docs/manual/core/transactions/).
type transaction struct {
	state    transactionState
	db       *database // the database of its first statement
	tree     *tree     // the snapshot with the transaction's own writes
	snapshot uint64
	changed  map[string]*collection // by the documents' keys
	used     map[*collection]bool   // collections that it has read or written; index builds wait for it
	locks    []*lock
	expiry   *time.Timer
	ended    chan struct{}

	appName string        // of the client that began it
	active  time.Duration // the time that its commands took
}

func (s *Server) begin(d *database) *transaction {
	tx := &transaction{
		db: d, tree: d.tree.Clone(), snapshot: s.time, changed: map[string]*collection{}, used: map[*collection]bool{},
		ended: make(chan struct{}),
	}
	d.open[tx] = true
	// "Transactions that exceed this limit are considered expired and will be aborted by a periodic cleanup process."
	tx.expiry = time.AfterFunc(s.options.Lifetime, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.end(tx, aborted)
	})
	return tx
}

// end ends a transaction in progress. Commands that wait for it continue.
func (s *Server) end(tx *transaction, state transactionState) {
	if tx.state != inProgress {
		return
	}
	tx.state = state
	tx.expiry.Stop()
	if state == committed && len(tx.changed) > 0 {
		s.time++
		s.apply(tx)
	}
	for _, l := range tx.locks {
		l.owner = nil
		if state == committed {
			l.changed = s.time
		}
	}
	delete(tx.db.open, tx)
	if len(tx.db.open) == 0 {
		clear(tx.db.locks) // no transaction has an older snapshot
	}
	tx.tree, tx.locks, tx.changed = nil, nil, nil
	close(tx.ended)
}

// apply commits a transaction's documents.
func (s *Server) apply(tx *transaction) {
	before := tx.db.changed
	tx.db.changed = s.time
	if before <= tx.snapshot {
		tx.db.tree = tx.tree // no other transaction has changed anything
		return
	}
	v := &view{db: tx.db, tree: tx.db.tree, applying: true}
	for _, key := range slices.Sorted(maps.Keys(tx.changed)) {
		after, _ := tx.tree.Get(item{key: key})
		if old := v.get(key); old != nil || after.doc != nil {
			s.must(v.put(tx.changed[key], old, after.doc))
		}
	}
}

// must is for operations that the locks guarantee to succeed.
func (s *Server) must(err error) {
	if err != nil {
		s.fault("a commit could not be applied: " + err.Error())
	}
}

func (s *Server) abortAll() {
	for _, d := range s.databases {
		for tx := range d.open {
			s.end(tx, aborted)
		}
	}
}

// enter finds the transaction that a command belongs to; nil outside transactions.
func (s *Server) enter(c *command) (*transaction, error) {
	e := &c.envelope
	if e.Number == nil {
		if e.Start || e.Autocommit != nil {
			return nil, refuse(codeInvalidOptions, "'startTransaction' and 'autocommit' need 'txnNumber'")
		}
		return nil, nil
	}
	sess := s.sessions[string(e.Session.ID.Data)]
	if sess == nil {
		sess = &session{number: -1}
		s.sessions[string(e.Session.ID.Data)] = sess
	}
	c.session = sess
	number := *e.Number
	if number < sess.number {
		return nil, refuse(codeTransactionTooOld,
			"Retryable write with txnNumber %d is prohibited on session because a newer one has started", number)
	}
	if e.Autocommit != nil {
		return s.enterTransaction(c, sess, number)
	}
	// It is a retryable write.
	if number > sess.number {
		s.renew(sess, number)
		sess.done = map[int]bson.D{}
	}
	if sess.done == nil {
		return nil, refuse(codeConflictingOperation, "txnNumber %d belongs to a transaction", number)
	}
	return nil, nil
}

// enterTransaction starts or continues the session's transaction with a number.
func (s *Server) enterTransaction(c *command, sess *session, number int64) (*transaction, error) {
	e := &c.envelope
	if *e.Autocommit {
		return nil, refuse(codeInvalidOptions, "'autocommit' must be false")
	}
	switch {
	case e.Start && number == sess.number:
		return nil, refuse(codeConflictingOperation, "Only one transaction can be started per txnNumber")
	case e.Start:
		s.renew(sess, number)
		d, err := s.database(c.db)
		if err != nil {
			return nil, err
		}
		sess.tx = s.begin(d)
		sess.tx.appName = c.appName
	case number > sess.number || sess.tx == nil:
		return nil, refuse(codeNoSuchTransaction,
			"Given transaction number %d does not match any in-progress transactions", number)
	}
	if !e.Start && e.ReadConcern != nil {
		return nil, refuse(codeInvalidOptions, "only the first command in a transaction may specify a readConcern")
	}
	if c.ending() {
		return sess.tx, nil
	}
	if e.WriteConcern != nil {
		return nil, refuse(codeInvalidOptions, "writeConcern is not allowed within a multi-statement transaction")
	}
	switch sess.tx.state {
	case aborted:
		return nil, refuse(codeNoSuchTransaction, "Transaction with { txnNumber: %d } has been aborted.", number)
	case committed:
		return nil, refuse(codeConflictingOperation, "Transaction %d has been committed.", number)
	}
	return sess.tx, nil
}

// renew starts a new number of the session. A transaction in progress under the earlier number is aborted.
func (s *Server) renew(sess *session, number int64) {
	if sess.tx != nil {
		s.end(sess.tx, aborted)
	}
	*sess = session{number: number}
}

func (s *Server) commit(_ *command, tx *transaction) (bson.D, error) {
	if tx == nil {
		return nil, refuse(codeInvalidOptions, "commitTransaction must be run within a transaction")
	}
	if tx.state == aborted {
		return nil, refuse(codeNoSuchTransaction, "Transaction has been aborted.")
	}
	s.end(tx, committed) // a repeated commit does nothing; the driver may ask again
	return bson.D{}, nil
}

func (s *Server) abort(_ *command, tx *transaction) (bson.D, error) {
	if tx == nil {
		return nil, refuse(codeInvalidOptions, "abortTransaction must be run within a transaction")
	}
	switch tx.state {
	case aborted:
		return nil, refuse(codeNoSuchTransaction, "Transaction has been aborted.")
	case committed:
		return nil, refuse(codeConflictingOperation, "Transaction has been committed.")
	}
	s.end(tx, aborted)
	return bson.D{}, nil
}

func (s *Server) endSessions(c *command, _ *transaction) (bson.D, error) {
	var args struct {
		Sessions []struct {
			ID bson.Binary `bson:"id"`
		} `bson:"endSessions"`
	}
	if err := c.decode(&args); err != nil {
		return nil, err
	}
	for _, ended := range args.Sessions {
		if sess := s.sessions[string(ended.ID.Data)]; sess != nil {
			s.renew(sess, sess.number)
			delete(s.sessions, string(ended.ID.Data))
		}
	}
	return bson.D{}, nil
}
