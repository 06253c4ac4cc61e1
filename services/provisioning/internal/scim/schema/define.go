package schema

// The URNs of the schemas.
const (
	UserURN       = "urn:ietf:params:scim:schemas:core:2.0:User"
	GroupURN      = "urn:ietf:params:scim:schemas:core:2.0:Group"
	EnterpriseURN = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
	NodeURN       = "urn:idplatform:scim:2.0:Node"
)

// property changes an attribute that is being defined.
type property func(*Attribute)

func of(t Type, name, description string, properties ...property) *Attribute {
	a := &Attribute{
		Name: name, Type: t, Description: description,
		Mutability: ReadWrite, Returned: Default, Uniqueness: None,
	}
	for _, set := range properties {
		set(a)
	}
	return a
}

func text(name, description string, properties ...property) *Attribute {
	return of(String, name, description, properties...)
}

// list is a multi-valued complex attribute.
func list(name, description string, subs ...*Attribute) *Attribute {
	return of(Complex, name, description, many, with(subs...))
}

// values is a list with the usual sub-attributes (RFC 7643 §2.4).
func values(name, description string, value *Attribute, types ...string) *Attribute {
	return list(name, description, value, text("display", "A name for people to read."),
		text("type", "What the value is for.", among(types...)),
		of(Boolean, "primary", "Whether this is the preferred one. At most one value of a list is."))
}

func many(a *Attribute)     { a.MultiValued = true }
func required(a *Attribute) { a.Required = true }
func exact(a *Attribute)    { a.CaseExact = true }
func always(a *Attribute)   { a.Returned = Always }
func unique(a *Attribute)   { a.Uniqueness = Server }

func readOnly(a *Attribute) {
	a.Mutability = ReadOnly
	for _, sub := range a.SubAttributes {
		readOnly(sub)
	}
}

func unbounded(a *Attribute) { a.Unbounded = true }

func immutable(a *Attribute) { a.Mutability = Immutable }

func onRequest(a *Attribute) { a.Returned = Request }

func secret(a *Attribute) { a.Mutability, a.Returned = WriteOnly, Never }

func with(subs ...*Attribute) property { return func(a *Attribute) { a.SubAttributes = subs } }

func among(canonical ...string) property {
	return func(a *Attribute) { a.CanonicalValues = canonical }
}

func to(types ...string) property { return func(a *Attribute) { a.ReferenceTypes = types } }

// common are the attributes of all resources. They belong to no schema (RFC 7643 §3.1).
var common = []*Attribute{
	of(Reference, "schemas", "The URNs of the schemas of the resource.", many, required, readOnly, always, to("uri")),
	text("id", "The identifier that the service gave.", exact, readOnly, always, unique),
	text("externalId", "The identifier that the client gave; unique among the resources of a connection.", exact),
	of(Complex, "meta", "About the resource itself.", with(
		text("resourceType", "User or Group.", exact),
		of(DateTime, "created", "When the resource was made."),
		of(DateTime, "lastModified", "When the resource last changed."),
		of(Reference, "location", "The URI of the resource.", exact, to("uri")),
		text("version", "The entity tag of the resource.", exact)), readOnly),
}

// Group is the resource type of groups: nodes of the connection's tree.
var Group = &Resource{
	Name: "Group", Endpoint: "/Groups", Description: "A node of the organization tree of the connection.",
	Core: &Schema{
		ID: GroupURN, Name: "Group", Description: "Group", Attributes: []*Attribute{
			text("displayName", "The name of the group.", required),
			list("members", "The direct members of the group: users.",
				text("value", "The id of the user.", exact, immutable),
				of(Reference, "$ref", "The URI of the user.", exact, readOnly, to("User")),
				text("type", "User.", immutable, among("User")),
				text("display", "The user's displayName.", readOnly)).but(unbounded),
		},
	},
	Extensions: []*Schema{{
		ID: NodeURN, Name: "Node", Description: "The node of the organization tree that the group is",
		Attributes: []*Attribute{
			text("code", "The code of the node.", exact, readOnly),
			text("parent", "The id of the group above it; absent below the root.", exact, readOnly),
			text("path", "The ids of the groups above it, from below the root, and its own.", many, exact, readOnly),
		},
	}},
}
