// Package rest is the HTTP side of every service: typed operations (huma) on a Gin engine, and once for all of them what the
// conventions ask: problem documents, credentials, scopes and tenants, paging, ETag and If-Match, Idempotency-Key, dry run, limits.
// No operation implements any of that.
//
// An operation is a function from a typed input to a body. A write ends in one docstore.Write whose result has the
// JSON form of the body; that is what lets a repeated Idempotency-Key be answered exactly, even after a crash.
//
// Its error names members as the domain knows them (email, items[3].email, page_sort). What the input type declares as a
// parameter is answered as query.page_sort or path.id, all else as body.email.
package rest
