// Package plan compares configuration in files with what a tenant has, and makes the tenant as the files say.
package plan

import (
	"slices"
	"sync"

	"github.com/idplatform/idplatform/cli/internal/operations"
)

// Ref names a record as people do: the kind, and a key such as crm, crm:data:invoice or company/rd.
type Ref struct {
	Kind string `json:"kind"`
	Key  string `json:"key"`
}

func (r Ref) String() string { return r.Kind + " " + r.Key }

// The kinds. Those after Subscription have no documents of their own: they are parts of others.
const (
	application  = "Application"
	resource     = "Resource"
	resourceSet  = "ResourceSet"
	tree         = "Tree"
	rule         = "Rule"
	connection   = "Connection"
	subscription = "Subscription"

	protocol = "Protocol" // of an application
	source   = "Source"   // a connection that an application offers for sign-in
	member   = "ResourceSetMember"
	node     = "Node"
	user     = "User" // only named by rules, never changed
)

// kind says what documents of a kind may have, and which operations write its records.
type kind struct {
	name                   string
	create, update, remove string   // operations
	members                []field  // beside those of the operation create
	without                []string // members of that operation that documents do not have
	fixed                  []string // members that cannot change
	parts                  bool     // it is a part of another kind's document
}

// field is a member of a document.
type field struct {
	name     string
	kind     string // string, integer, boolean, array, object; "": any
	values   []string
	about    string
	required bool
	part     string // the kind of the list's items
}

// kinds are all kinds, in the order in which they depend on each other.
var kinds = []*kind{
	{
		name: connection, create: "create-connection", update: "replace-connection", remove: "delete-connection",
	},
	{
		name: tree, create: "create-core-object", update: "update-core-object", remove: "delete-core-object",
		without: []string{"root"}, fixed: []string{"code"},
		members: []field{{name: "nodes", kind: "array", part: node, about: "The nodes below the root"}},
	},
	{
		name: node, create: "create-tree-node", update: "update-tree-node", remove: "delete-tree-node", parts: true,
		without: []string{"object_code", "parent_id", "pointer_id"},
		members: []field{
			{name: "code", kind: "string", required: true, about: "Unique in the tree"},
			formerName,
			{name: "pointer", kind: "string", about: "The node that it stands for, such as company/rd"},
			{name: "nodes", kind: "array", part: node, about: "The nodes below it"},
		},
	},
	{
		name: application, create: "create-application", update: "update-application", remove: "delete-application",
		without: []string{"protocol_prop", "sso_enabled", "mfa_enabled", "type"},
		members: []field{
			formerName,
			{name: "protocols", kind: "array", part: protocol, about: "Its protocols"},
			{name: "sources", kind: "array", about: "Connections that it offers for sign-in, such as github/Our"},
		},
	},
	{
		name: protocol, create: "put-protocol", update: "put-protocol", remove: "disable-protocol", parts: true,
		members: []field{
			{name: "type", kind: "string", required: true, values: []string{"cas", "oauth2", "saml", "oidc", "sxp"}},
			{name: "status", kind: "string", values: []string{"1", "0"}, about: "1: enabled"},
		},
	},
	{
		name: source, create: "attach-source", remove: "detach-source", parts: true,
		without: []string{"config_id", "config_ids"},
	},
	{
		name: resource, create: "create-resource", update: "update-resource", remove: "delete-resource",
		without: []string{"application_id"}, fixed: []string{"is_global"}, members: []field{ofApplication},
	},
	{
		name: resourceSet, create: "create-resource-set", update: "replace-resource-set", remove: "delete-resource-set",
		without: []string{"application_id"},
		members: []field{ofApplication, {name: "members", kind: "array", part: member, about: "Its resources"}},
	},
	{
		name: member, create: "add-resource-set-members", update: "replace-resource-set-member",
		remove: "remove-resource-set-member", parts: true,
		without: []string{"members", "resource_code", "resource_id", "resource_type"},
		members: []field{
			{name: "type", kind: "string", required: true, values: resourceTypes, about: "Of the resource"},
			{name: "code", kind: "string", required: true, about: "Of the resource"},
			{name: "resource_application", kind: "string", about: "Of a global resource of another application"},
		},
	},
	{
		name: rule, create: "replace-auth-unit-rule", update: "replace-auth-unit-rule", remove: "revoke-auth-rules",
		without: []string{"application_id", "inherited_from", "resource_id", "resource_set_id"},
		members: []field{
			ofApplication,
			{name: "identity", kind: "object", required: true, about: "Whom it reaches: {type, name}"},
			{name: "resource_application", kind: "string", about: "Of a global resource or set of another application"},
		},
	},
	{
		name: subscription, create: "create-event-subscription", update: "update-event-subscription",
		remove: "delete-event-subscription",
	},
}

var resourceTypes = []string{"data", "api", "ui"}

// formerName is the name, or the code of a node, from which a record is renamed in place.
var formerName = field{
	name: "was", kind: "string", about: "Its former name or code: it is renamed, and stays the same record",
}

var ofApplication = field{name: "application", kind: "string", required: true, about: "The application's name"}

// kindOf finds a kind by its name; nil if there is none.
func kindOf(name string) *kind {
	at := slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })
	if at < 0 {
		return nil
	}
	return kinds[at]
}

// rank is the place of a kind in the order of dependence.
func rank(name string) int {
	return slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })
}

// fields are all members that a document, or a part, of the kind may have.
func (k *kind) fields() []field { return fieldsOfKinds()[k.name] }

var fieldsOfKinds = sync.OnceValue(func() map[string][]field {
	out := map[string][]field{}
	for _, k := range kinds {
		fields := slices.Clone(k.members)
		for _, p := range operations.CompiledIn().Find(k.create).Members {
			known := slices.ContainsFunc(fields, func(f field) bool { return f.name == p.Name })
			if !known && !slices.Contains(k.without, p.Name) {
				fields = append(fields, field{
					name: p.Name, kind: p.Type, values: p.Values, about: p.Description, required: p.Required,
				})
			}
		}
		out[k.name] = fields
	}
	return out
})

// find returns the member with a name; nil if there is none.
func (k *kind) find(name string) *field {
	all := k.fields()
	at := slices.IndexFunc(all, func(f field) bool { return f.name == name })
	if at < 0 {
		return nil
	}
	return &all[at]
}

// Kinds are the names of the kinds that have documents.
func Kinds() []string {
	var out []string
	for _, k := range kinds {
		if !k.parts {
			out = append(out, k.name)
		}
	}
	slices.Sort(out)
	return out
}
