// Package mongostore keeps documents in MongoDB (a replica set or a sharded cluster), a database per service.
//
// A stored document is the record under its natural names, with native dates, numbers and binaries, readable with any
// MongoDB tool, and what the engine adds:
//
//	_id     "<tenant>/<id>", so that the tenant is in the key
//	_due    when the document is Due; only if it ever is
//	_ix     the index entries by name: one text, one number or a list of texts. An absent value is stored as "" or the
//	        least number: every index then has one BSON type, and order and ranges need no special case
//	_reads  how often a transaction that read the document, but did not write it, has committed
//
// Raw JSON, maps and types with a JSON form of their own are kept as JSON text: BSON cannot hold every key and number of JSON.
//
// Transactions are MongoDB's, with snapshot reads. Snapshots alone permit write skew (two transactions that each read
// what the other changes), so a transaction that writes also increments _reads of the documents it was given to read: if
// another has changed one since, the server refuses that, and the transaction is run again. Ids and values of unique
// indexes that it looked for and did not find, and filters that it counted by, are fenced: see fence. What else a query
// would have found, had it been there, is not protected: who relies on a filter selecting nothing, or no more than it
// did, must count by it, as the other side does, or read a document that the other side changes.
//
// A transaction's writes, with all that protects it and its messages, are sent together at its end, or before a query
// that must see them. Documents that it has read or written are known, and not asked for again.
package mongostore
