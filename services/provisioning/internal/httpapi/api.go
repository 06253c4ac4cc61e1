// Package httpapi defines the provisioning service's operations: those on connections, and those of SCIM (RFC 7644),
// one file per noun. It has no rules and no storage.
package httpapi

import (
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/provisioning/internal/connection"
	"github.com/idplatform/idplatform/services/provisioning/internal/gate"
	"github.com/idplatform/idplatform/services/provisioning/internal/groups"
	"github.com/idplatform/idplatform/services/provisioning/internal/journal"
	"github.com/idplatform/idplatform/services/provisioning/internal/people"
)

// Domain is what the operations call.
type Domain struct {
	Store       *docstore.Store
	Connections *connection.Connections
	Users       *people.Users
	Groups      *groups.Groups
	Gate        *gate.Gate
	Journal     *journal.Journal
	Base        string // the URI of the SCIM service: https://id.example.com/scim/v2
}

type api struct{ Domain }

// Register adds all operations to the server.
func Register(s *rest.Server, d Domain) {
	a := &api{d}
	s.ServeSCIM(rest.SCIMRoot{Path: root, Fault: fault, Absent: []string{"/Me", "/.search"}})
	a.registerConnections(s.Tagged("Provisioning", "Connections of SCIM clients: what each owns, its tokens, its log."))
	a.registerGate(s.Tagged("Held requests",
		"Removals in large numbers, and memberships that give scopes of this API: they wait for a person's approval."))
	a.registerDiscovery(s.Tagged("Provisioning protocol",
		"What the SCIM service can do (RFC 7643), and Bulk requests."))
	a.registerResources(s.Tagged("Provisioned users", "Users as SCIM resources (RFC 7644)."), a.users())
	a.registerResources(s.Tagged("Provisioned groups",
		"Nodes of a connection's tree as SCIM resources (RFC 7644)."), a.groups())
}
