// Package docstore is the storage port: typed documents in named collections with declared indexes, every one of them in a tenant.
//
// A service declares its collections once (Define), opens a Store on an Engine, reads through a Reader (the Store or a
// transaction), and writes only inside Write. Engines (sqlitestore, mongostore) map, query and index; they hold no rules. What all
// engines must agree on is a case in docstoretest.
//
// The tenant of every call is the one in its context (package request), so that none can forget it; a call without one fails.
//
// A document's JSON form is the API's record, the event's record and, in sqlitestore, the stored bytes: made once, when written.
package docstore
