// Package rest is the HTTP side of every service: typed operations (huma) on a Gin engine. For all operations it
// implements what the conventions require: problem documents, credentials, scopes and tenants, paging, ETag and
// If-Match, Idempotency-Key, dry run, limits. No operation implements any of these itself.
//
// An operation is a function from a typed input to a body. An operation that writes ends in one docstore.Write whose
// result has the JSON form of the body. That is how a repeated Idempotency-Key gets exactly the first answer, even
// after a crash.
//
// An operation's error names members as the domain knows them (email, items[3].email, page_sort). In the answer,
// members that the input type declares as parameters become query.page_sort or path.id; all others become body.email.
package rest
