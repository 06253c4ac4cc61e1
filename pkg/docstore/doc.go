// Package docstore is the storage port: typed documents in named collections with declared indexes, every one of them in a tenant.
//
// A service declares its collections once (Define), opens a Store on an Engine, reads through a Reader (the Store or a
// transaction), and writes only inside Write. Engines (sqlitestore, mongostore) map, query and index; they hold no rules. What all
// engines must agree on is a case in docstoretest.
//
// The tenant of every call is the one in its context (package request), so that none can forget it; a call without one fails.
// One read finds the tenant: FindGlobal, by a value that is unique over all tenants.
//
// A document's version is +1 for each change of its content; its revision grows with every write, also with one that
// changes only what is declared as Counts. Concurrent writers, ETags of such records, and the sequence of events go by
// revisions: see Stamp.
//
// A document's JSON form is the API's record, the event's record and, in sqlitestore, the stored bytes: made once, when written.
package docstore
