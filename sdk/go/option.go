package idp

import (
	"net/http"
	"strconv"
)

// Option is something that a call can have beside its parameters.
type Option func(*Request)

// IfMatch makes a change only if the record still has this ETag; otherwise it is refused with CodeVersionMismatch.
func IfMatch(etag string) Option { return Header("If-Match", etag) }

// IfVersion is IfMatch with a record's Version.
func IfVersion(version int64) Option { return IfMatch(`"` + strconv.FormatInt(version, 10) + `"`) }

// IfNoneMatch reads a record only if it has another ETag. With "*", it writes an object only if there is none.
func IfNoneMatch(etag string) Option { return Header("If-None-Match", etag) }

// IdempotencyKey is the key of a POST, instead of one that is made up. Who keeps the key can repeat the call after a
// crash: the platform makes the change once within 24 hours.
func IdempotencyKey(key string) Option { return Header("Idempotency-Key", key) }

// DryRun checks a change, and answers as it would be answered, without making it.
func DryRun() Option {
	return func(r *Request) { r.setQuery("dry_run", "true") }
}

// ForTenant names the tenant of the call. Another one than the token's is for the scope platform:admin.
func ForTenant(tenant string) Option { return Header("X-Tenant-Id", tenant) }

// PayloadOrigin says what made a change. It stands in the change's events.
func PayloadOrigin(origin string) Option { return Header("X-Payload-Origin", origin) }

// ConsistencyToken makes a check take a write into account. The token is the header X-Consistency-Token of the write's
// answer (see AnswerHeader).
func ConsistencyToken(token string) Option { return Header("X-Consistency-Token", token) }

// Header sets a header of the request.
func Header(name, value string) Option {
	return func(r *Request) {
		if r.Header == nil {
			r.Header = http.Header{}
		}
		r.Header.Set(name, value)
	}
}

// AnswerHeader stores the header of the answer in h: its ETag, X-Request-Id, X-Consistency-Token and the like.
func AnswerHeader(h *http.Header) Option {
	return func(r *Request) { r.answerHeader = h }
}
