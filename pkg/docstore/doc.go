// Package docstore is the storage port: typed documents in named collections with declared indexes. Every document
// belongs to a tenant.
//
// A service declares its collections once (Define) and opens a Store on an Engine. It reads through a Reader (the Store
// or a transaction) and writes only inside Write. Engines (sqlitestore, mongostore) map, query and index; they hold no
// business rules. What all engines must agree on is a case in docstoretest.
//
// The tenant of a call is the one in its context (package request), so that no caller can forget it. A call without a
// tenant fails. The one exception is FindGlobal, which finds the tenant by a value that is unique over all tenants.
//
// A document's version grows by 1 with each change of its content. Its revision grows with every write, including one
// that changes only members declared as Counts. Conflicts between writers, the ETags of documents with Counts, and the
// sequence of events depend on the revision: see Stamp.
//
// A document has one JSON form, made when it is written. Answers of the API and events contain it, and sqlitestore
// stores it.
package docstore
