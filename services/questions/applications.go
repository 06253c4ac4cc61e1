package questions

import (
	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
)

// ApplicationsOfConnection asks how many applications use a connection as authentication source. Without an answer,
// the connection is not deleted.
var ApplicationsOfConnection = bus.Question[ConnectionID, Count]{Service: "applications", Name: "of-connection"}

// NextApplicationsTenant asks which tenant follows a tenant among those that have applications. It is asked for the
// platform, not for a tenant. Without an answer, the asking service tries again later.
var NextApplicationsTenant = bus.Question[TenantName, TenantName]{Service: "applications", Name: "next-tenant"}

// Application is an application as an identity.
type Application struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Sequence int64  `json:"sequence"` // of the first event with the application's present state
}

// Applications are a page of applications. There may be fewer than Limit; Next is empty on the last page.
type Applications struct {
	Applications []Application `json:"applications"`
	Next         string        `json:"next"`
}

// ApplicationRecords asks for applications, so that the asking service can build up its copy of them. Without an
// answer, it tries again later.
var ApplicationRecords = bus.Question[RecordsPage, Applications]{
	Service: "applications", Name: "records", Refusals: []apperr.Kind{apperr.InvalidParameters},
}
