// Package mongostore stores documents in MongoDB (a replica set or a sharded cluster), one database for each service.
//
// A stored document is the record under its own member names, with native dates, numbers and binaries, so that any
// MongoDB tool can read it. The engine adds:
//
//	_id     "<tenant>/<id>", so that the tenant is part of the key
//	_due    the document's Due time, only if it has one
//	_ix     the index entries by name: one text, one number or a list of texts. An absent value is stored as "" or the
//	        least number: every index then has one BSON type, and order and ranges need no special case
//	_reads  how often a transaction that read the document, but did not write it, has committed
//
// Raw JSON, maps and types with a JSON form of their own are stored as JSON text, because BSON cannot hold every key
// and number that JSON can.
//
// Transactions are MongoDB's, with snapshot reads. Snapshots alone permit write skew: two transactions that each read
// what the other changes. So a transaction that writes also increments _reads of the documents that it has read. If
// another transaction has changed one of them since, the server refuses the increment, and the transaction runs again.
// Ids and values of unique indexes that it looked for and did not find, and filters that it counted by, are fenced: see
// fence. Nothing else protects against phantoms, which are documents that others insert and that a query would have
// found. Code that relies on a filter selecting nothing, or no more than before, must count by the filter, and so must
// the code that inserts; or both must read a document that the other changes.
//
// The writes of a transaction are sent together at its end, or before a query that must see them, with its increments,
// fences and messages. Documents that it has read or written are not read from the server again.
package mongostore
