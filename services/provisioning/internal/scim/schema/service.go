package schema

// aboutService are the schemas of the documents about the service (RFC 7643 section 8.7.2). Clients only read them.
var aboutService = []*Schema{
	{ID: ConfigURN, Name: "Service Provider Configuration", Description: "What the service can do", Attributes: shown(
		of(Reference, "documentationUri", "The URI of help for people.", exact, to("external")),
		feature("patch", "PATCH."),
		feature("bulk", "Bulk requests.",
			of(Integer, "maxOperations", "The most operations of a request.", required),
			of(Integer, "maxPayloadSize", "The most bytes of a request.", required)),
		feature("filter", "Filters.", of(Integer, "maxResults", "The most resources of an answer.", required)),
		feature("changePassword", "Changes of passwords."),
		feature("sort", "Sorting."),
		feature("etag", "Entity tags."),
		of(Complex, "pagination", "How lists are read page by page (RFC 9865).", with(
			of(Boolean, "cursor", "Whether by cursors.", required),
			of(Boolean, "index", "Whether by startIndex.", required),
			text("defaultPaginationMethod", "The way if a request names none.", among("cursor", "index")),
			of(Integer, "defaultPageSize", "The resources of a page if a request does not say."),
			of(Integer, "maxPageSize", "The most resources of a page."))),
		list("authenticationSchemes", "The ways to authenticate requests.",
			text("type", "The kind of scheme.", required, among("oauth", "oauth2", "oauthbearertoken", "httpbasic",
				"httpdigest")),
			text("name", "Its name.", required),
			text("description", "What it is.", required),
			of(Reference, "specUri", "The URI of its specification.", exact, to("external")),
			of(Reference, "documentationUri", "The URI of help for people.", exact, to("external")),
			of(Boolean, "primary", "Whether it is the preferred one.")).but(required))},
	{ID: ResourceTypeURN, Name: "ResourceType", Description: "A kind of resources", Attributes: shown(
		text("id", "Its identifier."),
		text("name", "Its name.", required),
		text("description", "What it is."),
		of(Reference, "endpoint", "Its path below the root of the service.", required, to("uri")),
		of(Reference, "schema", "The URN of its schema.", required, exact, to("uri")),
		list("schemaExtensions", "Its extensions.",
			of(Reference, "schema", "The URN of the extension.", required, exact, to("uri")),
			of(Boolean, "required", "Whether resources must have it.", required)))},
	{ID: SchemaURN, Name: "Schema", Description: "The attributes of a kind of resources", Attributes: shown(
		text("id", "The URN of the schema.", required),
		text("name", "Its name.", required),
		text("description", "What it is."),
		attributes("attributes", attributes("subAttributes", nil)).but(required))},
}

// attributes is a list of definitions of attributes, which have the definitions below in them.
func attributes(name string, below *Attribute) *Attribute {
	subs := []*Attribute{
		text("name", "Its name.", required, exact),
		text("type", "The type of its values.", required, among("string", "complex", "boolean", "decimal", "integer",
			"dateTime", "reference", "binary")),
		of(Boolean, "multiValued", "Whether it has several values.", required),
		text("description", "What it is."),
		of(Boolean, "required", "Whether resources must have it.", required),
		text("canonicalValues", "Values that are usual.", many, exact),
		of(Boolean, "caseExact", "Whether case matters."),
		text("mutability", "Whether clients can write it.", exact, among("readOnly", "readWrite", "immutable",
			"writeOnly")),
		text("returned", "When answers have it.", exact, among("always", "never", "default", "request")),
		text("uniqueness", "Among which resources a value is unique.", exact, among("none", "server", "global")),
		text("referenceTypes", "To what it refers.", many, exact),
	}
	if below != nil {
		subs = append(subs, below)
	}
	return list(name, "Definitions of attributes.", subs...)
}

// feature is about one feature of the service.
func feature(name, description string, more ...*Attribute) *Attribute {
	return of(Complex, name, description, required, with(append([]*Attribute{
		of(Boolean, "supported", "Whether the service has it.", required)}, more...)...))
}

// shown are attributes that clients only read.
func shown(all ...*Attribute) []*Attribute {
	for _, a := range all {
		readOnly(a)
	}
	return all
}
