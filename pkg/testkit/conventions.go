package testkit

import (
	"strings"
	"testing"

	"github.com/idplatform/idplatform/pkg/auth"
)

// Resource describes a service to Conventions: one record type that can be created, read, changed, deleted and listed.
type Resource struct {
	Collection string // its path, such as /v1/users
	// Body makes a body that creates the n-th record. It is nil for a service without such a record: then only what the
	// document and the operations have in common is checked, and Change, Faulty, Faults and Unique are not needed.
	Body      func(n int) any
	Change    map[string]any // a PATCH body that changes a record
	Faulty    map[string]any // a body with faults that only the domain finds, not the schema
	Faults    []string       // the locations of the faults of Faulty, such as body.email
	Unique    []string       // members of Body that no two records share, such as username
	Read      auth.Scope
	Write     auth.Scope
	Also      []auth.Scope // what creates and changes need beside Write
	Unrelated auth.Scope   // a scope that gives no access to the service

	Open []string // ids of the operations without a credential; all others must require one
	// OwnTokens are ids of open operations that take bearer tokens of another kind than the platform's.
	OwnTokens []string
	AnyToken  []string // ids of the operations that every valid token admits; all other operations must require a scope
	Sealed    []string // members of Body that are secrets and never shown

	Secrets map[string]Secret // of all the service's collections with sealed members, by the collection's name

	// Query is the query that lists and deletes require, such as object_code=company; "" means none. It must select the
	// records that Body creates, and no others.
	Query string
	Seeds int // the number of events that a new service publishes by itself, before the first request
}

// editor is a client that may read and change the records.
func (r Resource) editor(s *Service, tenant string) *Client {
	return s.As(tenant, append([]auth.Scope{r.Read, r.Write}, r.Also...)...)
}

// list is the path of a list with a query.
func (r Resource) list(query string) string { return r.with(r.Collection + "?" + query) }

// with adds Query to a path.
func (r Resource) with(path string) string {
	switch {
	case r.Query == "":
	case strings.Contains(path, "?"):
		path += "&" + r.Query
	default:
		path += "?" + r.Query
	}
	return path
}

// Conventions checks what holds for every operation of every service, from its OpenAPI document and one of its
// resources. start must return a new service each time.
func Conventions(t *testing.T, start func(testing.TB) *Service, r Resource) {
	t.Run("document", func(t *testing.T) { t.Parallel(); documented(t, start(t), r) })
	t.Run("admission", func(t *testing.T) { t.Parallel(); admission(t, start(t), r) })
	t.Run("open operations", func(t *testing.T) { t.Parallel(); openOperations(t, start(t), r) })
	t.Run("forms", func(t *testing.T) { t.Parallel(); forms(t, start(t)) })
	t.Run("pages", func(t *testing.T) { t.Parallel(); pages(t, start(t)) })
	t.Run("event streams", func(t *testing.T) { t.Parallel(); eventStreams(t, start(t)) })
	t.Run("ended tokens", func(t *testing.T) { t.Parallel(); endedTokens(t, start, r) })
	t.Run("secrets", func(t *testing.T) { t.Parallel(); secrets(t, start(t), r) })
	t.Run("marked secrets", func(t *testing.T) { t.Parallel(); markedSecrets(t, start(t), r) })
	t.Run("rerouted secrets", func(t *testing.T) { t.Parallel(); rerouted(t, start(t), r) })
	t.Run("bodies", func(t *testing.T) { t.Parallel(); bodies(t, start(t), r) })
	t.Run("paths", func(t *testing.T) { t.Parallel(); paths(t, start(t), r) })
	t.Run("request ids", func(t *testing.T) { t.Parallel(); requestIDs(t, start(t), r) })
	if r.Body == nil {
		return
	}
	t.Run("unique members", func(t *testing.T) { t.Parallel(); uniqueMembers(t, start(t), r) })
	t.Run("tenants", func(t *testing.T) { t.Parallel(); tenants(t, start(t), r) })
	t.Run("events", func(t *testing.T) { t.Parallel(); events(t, start(t), r) })
	t.Run("conditional requests", func(t *testing.T) { t.Parallel(); conditionalRequests(t, start(t), r) })
	t.Run("dry run", func(t *testing.T) { t.Parallel(); dryRun(t, start(t), r) })
	t.Run("idempotency", func(t *testing.T) { t.Parallel(); idempotency(t, start, r) })
	t.Run("kept answers", func(t *testing.T) { t.Parallel(); keptAnswers(t, start(t)) })
	t.Run("paging", func(t *testing.T) { t.Parallel(); paging(t, start(t), r) })
}
