package questions

import "github.com/idplatform/idplatform/pkg/bus"

// ConnectionID names a connection of the identity-sources service.
type ConnectionID struct {
	ID string `json:"id"`
}

// Exists says whether there is such a record in the tenant.
type Exists struct {
	Exists bool `json:"exists"`
}

// ConnectionExists asks whether there is a connection. Without an answer nothing is stored that refers to it.
var ConnectionExists = bus.Question[ConnectionID, Exists]{Service: "identity-sources", Name: "connection-exists"}
