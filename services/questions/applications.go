package questions

import "github.com/idplatform/idplatform/pkg/bus"

// ApplicationsOfConnection asks how many applications use a connection as authentication source. Without an answer,
// the connection is not deleted.
var ApplicationsOfConnection = bus.Question[ConnectionID, Count]{Service: "applications", Name: "of-connection"}
