// Package replicaset simulates a MongoDB replica set for tests: a server in the test's process that speaks the wire
// protocol with the official driver, and has transactions. It is a test tool; no program contains it. Where it
// differs from what the manual says it is wrong: mongotest's behaviours are run on it and on a real server, and
// everything that it does should be among them.
//
// # What there is
//
// The commands, options, operators and stages that mongostore and the tests send, and no others: anything else is
// refused and named by Close, so that the test fails.
//
//   - Transactions have snapshot isolation. The first writer of a document or of a unique value wins; the other
//     meets a write conflict (112, TransientTransactionError), whether the first is in progress or has committed
//     since the other's snapshot. An update that changes nothing writes nothing. Writes outside of transactions wait
//     for those in progress, until maxTimeMS.
//     (https://www.mongodb.com/docs/manual/core/transactions-production-consideration/)
//   - A transaction ends with its session's next number, its session, its lifetime
//     (transactionLifetimeLimitSeconds), a step-down, or any error; what comes after is NoSuchTransaction (251). A
//     commit may be repeated.
//   - Retryable writes are answered from their record, by session, number and statement.
//   - A set may have several members, of which one is the primary. StepDown makes another the primary; monitors are
//     told by streamed hellos. All members have the same data: nothing that was answered is ever rolled back, as
//     with write concern majority.
//   - Queries are answered from indexes only, as with the server parameter notablescan: compound, multikey, unique
//     and partial ones. The order of values is that of BSON.
//   - Catalog changes wait for transactions that have used the collection. Those with an older snapshot are refused
//     afterwards.
//   - Documents, messages and batches have their limits (16 MiB, 48 MB, 100,000).
//
// Not simulated: authentication, TLS, compression, sharding, reads from secondaries, write concerns but majority,
// rollbacks, collections made inside transactions, locks held by a waiting catalog change, and memory limits (of
// sorts, of a transaction's size).
//
// # Order and faults by seed
//
// See Schedule. Reproducible is: of commands that wait at the same time the same one is run first, and the n-th
// arrival of a command is hit by the same fault, with the same seed. Not reproducible is which commands wait at the
// same time: that is the clients' speed, and the machine's. Where a command has something random in it (an id, a
// time), it is another command in each run.
package replicaset
