// Package replicaset simulates a MongoDB replica set for tests: a server in the test's process that speaks the wire
// protocol with the official driver, and has transactions. It is a test tool; no program contains it. Any difference
// from MongoDB's manual is a fault of the simulation: mongotest runs its tests of behaviour on the simulation and on a
// real server, and they should cover all that the simulation does.
//
// # What is simulated
//
// The commands, options, operators and stages that mongostore and the tests send, and no others. It refuses anything
// else, and Close reports it, so that the test fails.
//
//   - Transactions have snapshot isolation. The first writer of a document or of a unique value wins; the other
//     meets a write conflict (112, TransientTransactionError), whether the first is in progress or has committed
//     since the other's snapshot. An update that changes nothing writes nothing. Writes outside transactions wait
//     for those in progress, until maxTimeMS.
//     (https://www.mongodb.com/docs/manual/core/transactions-production-consideration/)
//   - A transaction ends with the session's next number, with its session, after its lifetime
//     (transactionLifetimeLimitSeconds), at a step-down, or with any error. Later commands get NoSuchTransaction
//     (251). A commit may be repeated.
//   - Open transactions are listed by $currentOp, with idleSessions, and ended by killSessions. One whose client has
//     disconnected between two commands stays open.
//   - Retryable writes that are repeated get the recorded answer, by session, number and statement.
//   - A set may have several members, one of which is the primary. StepDown makes another the primary; monitors
//     learn it from streamed hellos. All members have the same data: nothing that was answered is ever rolled back,
//     as with write concern majority.
//   - Queries are answered from indexes only, as with the server parameter notablescan: compound, multikey, unique
//     and partial ones. The order of values is that of BSON.
//   - Catalog changes wait for transactions that have used the collection. Transactions with an older snapshot are
//     refused afterwards.
//   - Documents, messages and batches have their limits (16 MiB, 48 MB, 100,000).
//
// Not simulated: authentication, TLS, compression, sharding, reads from secondaries, write concerns other than
// majority, rollbacks, collections created inside transactions, locks held by a waiting catalog change, and memory
// limits (of sorts, of a transaction's size).
//
// # Order and faults by seed
//
// See Schedule. With the same seed, the same one of the commands that wait at the same time runs first, and the n-th
// arrival of a command meets the same fault. Which commands wait at the same time is not reproducible: it depends on
// the speed of the clients and the machine. A command that contains something random (an id, a time) is a different
// command in each run.
package replicaset
