// Package httpapi has the automation service's operations: wire forms and their conversion to the domain's, one file
// for each noun. It contains no rules and no storage.
package httpapi

import (
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/automation/internal/kv"
)

// Nouns are the use cases that the operations call.
type Nouns struct {
	KV *kv.KV
}

type api struct{ Nouns }

// Register adds all operations to the server.
func Register(s *rest.Server, nouns Nouns) {
	a := &api{nouns}
	storage := s.Tagged("Key-value storage", "JSON values by bucket and key, with compare-and-set, expiry and history.")
	a.registerBuckets(storage)
	a.registerObjects(storage)
}
