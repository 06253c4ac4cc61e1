// Package httpapi has the automation service's operations: wire forms and their conversion to the domain's, one file
// for each noun. It contains no rules and no storage.
package httpapi

import "github.com/idplatform/idplatform/pkg/rest"

// Nouns are the use cases that the operations call.
type Nouns struct{}

// Register adds all operations to the server.
func Register(*rest.Server, Nouns) {}
