package schema

// User is the resource type of users.
var User = &Resource{
	Name: "User", Endpoint: "/Users", Description: "A user account.",
	Core: userSchema(func(value *Attribute) {
		unique(value)
		value.Description += " That of the user is unique."
	}),
	Extensions: []*Schema{{
		ID: EnterpriseURN, Name: "EnterpriseUser", Description: "Enterprise User", Attributes: []*Attribute{
			text("employeeNumber", "The number that the organization gave the person."),
			text("costCenter", "The name of a cost center."),
			text("organization", "The name of an organization."),
			text("division", "The name of a division."),
			text("department", "The name of a department."),
			of(Complex, "manager", "The user's manager.", with(
				text("value", "The id of the manager's User resource, or another identifier, kept as sent."),
				of(Reference, "$ref", "The URI of the manager's User resource.", exact, to("User")),
				text("displayName", "The displayName of a manager who is a user.", readOnly))),
		},
	}},
}

// userSchema is the core schema of users. contact is applied to the values of e-mail addresses and phone numbers.
func userSchema(contact property) *Schema {
	return &Schema{ID: UserURN, Name: "User", Description: "User Account",
		Attributes: append(person(), lists(contact)...)}
}

var shared = userSchema(func(*Attribute) {})

// Sharing returns the resource type of users who may have the e-mail address or number of another user.
func (r *Resource) Sharing() *Resource {
	sharing := *r
	sharing.Core = shared
	return &sharing
}

// person are the attributes of users that have one value.
func person() []*Attribute {
	return []*Attribute{
		text("userName", "The name by which the user signs in.", required, unique),
		of(Complex, "name", "The parts of the user's real name.", with(
			text("formatted", "The full name, as displayed."),
			text("familyName", "The family name, or last name."),
			text("givenName", "The given name, or first name."),
			text("middleName", "The middle names."),
			text("honorificPrefix", "The title before the name."),
			text("honorificSuffix", "The suffix after the name."))),
		text("displayName",
			"The name displayed to people. Absent: name.formatted, the given and family name, userName."),
		text("nickName", "The casual way to address the user."),
		of(Reference, "profileUrl", "The URI of the user's online profile.", exact, to("external")),
		text("title", "The user's title, such as Vice President."),
		text("userType", "The relationship between the organization and the user."),
		text("preferredLanguage", "The user's preferred languages, as in Accept-Language."),
		text("locale", "The user's location for formats of dates, numbers and money: a BCP 47 tag."),
		text("timezone", "The user's time zone, by its IANA name."),
		of(Boolean, "active", "Whether the user may sign in."),
		text("password", "The user's password. Ignored unless the connection accepts passwords.", secret, exact),
	}
}

// lists are the attributes of users that have several values.
func lists(contact property) []*Attribute {
	return []*Attribute{
		values("emails", "E-mail addresses. The primary one, else that of type work, else the first is the user's.",
			text("value", "The address.", contact), "work", "home", "other"),
		values("phoneNumbers", "Phone numbers. That of type mobile is the user's.",
			text("value", "The number.", contact), "work", "home", "mobile", "fax", "pager",
			"other"),
		values("ims", "Instant messaging addresses.", text("value", "The address."),
			"aim", "gtalk", "icq", "xmpp", "msn", "skype", "qq", "yahoo"),
		values("photos", "URIs of photos of the user.",
			of(Reference, "value", "The URI of the photo.", exact, to("external")), "photo", "thumbnail"),
		list("addresses", "Postal addresses.",
			text("formatted", "The full address, as displayed."),
			text("streetAddress", "The street, house number and so on."),
			text("locality", "The city or locality."),
			text("region", "The state or region."),
			text("postalCode", "The postal code."),
			text("country", "The country: its ISO 3166-1 alpha 2 code."),
			text("type", "What the address is for.", among("work", "home", "other")),
			of(Boolean, "primary", "Whether this is the preferred address. At most one is.")),
		list("groups", "The groups that the user is a direct member of. Group resources change it.",
			text("value", "The id of the group.", exact),
			of(Reference, "$ref", "The URI of the group.", exact, to("Group")),
			text("display", "The group's displayName."),
			text("type", "How the user is a member.", among("direct"))).but(readOnly, onRequest),
		values("entitlements", "Entitlements that the user has.", text("value", "The entitlement.")),
		values("roles", "Roles that the user has.", text("value", "The role.")),
		values("x509Certificates", "Certificates of the user.",
			of(Binary, "value", "A DER-encoded X.509 certificate in base64.", exact)),
	}
}

// but changes an attribute that is being defined.
func (a *Attribute) but(properties ...property) *Attribute {
	for _, set := range properties {
		set(a)
	}
	return a
}
