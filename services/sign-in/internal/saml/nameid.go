package saml

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	crewjam "github.com/crewjam/saml"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/attribute"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// NameID is the name of a person for an application (SAML core §2.2.3).
type NameID struct {
	Value           string `json:"value" xml:",chardata"`
	Format          string `json:"format,omitempty" xml:"Format,attr"`
	NameQualifier   string `json:"name_qualifier,omitempty" xml:"NameQualifier,attr"`
	SPNameQualifier string `json:"sp_name_qualifier,omitempty" xml:"SPNameQualifier,attr"`
}

func (n NameID) element() *crewjam.NameID {
	return &crewjam.NameID{
		Value: n.Value, Format: n.Format, NameQualifier: n.NameQualifier, SPNameQualifier: n.SPNameQualifier,
	}
}

// known reports whether names can have a format. The empty one leaves the choice here.
func known(format string) bool {
	switch format {
	case "", formatUnspecified, formatUnspecified2, formatEmail, formatPersistent, formatTransient:
		return true
	}
	return false
}

// nameOf is the person's name in the format that the application asks for, or else in the configured one. ok is false
// if the person has none. Persistent names differ from application to application, and are the same for ever; transient
// ones are those of a session. Both come from the tenant's secret, so nobody can tell whose they are.
func nameOf(
	m message, issuer string, c questions.Client, p protocol.Person, user attribute.Record, salt []byte,
) (name NameID, ok bool) {
	format := m.NameIDFormat
	if format == "" || format == formatUnspecified || format == formatUnspecified2 {
		format = c.SAML.NameIDFormat
	}
	account := ""
	if p.SubAccount != nil {
		account = p.SubAccount.Account
	}
	switch format {
	case "", formatUnspecified, formatUnspecified2:
		name = NameID{Value: account, Format: formatUnspecified}
		if account == "" {
			name.Value = user.Text("username")
		}
	case formatEmail:
		name = NameID{Value: user.Text("email"), Format: formatEmail}
	case formatPersistent, formatTransient:
		whose := p.UserID
		if format == formatTransient {
			whose = p.SessionID
		}
		name = NameID{
			Value: derive(salt, format, c.SAML.SPEntity, whose, account), Format: format,
			NameQualifier: entityID(issuer), SPNameQualifier: c.SAML.SPEntity,
		}
	}
	return name, name.Value != ""
}

// derive makes an opaque value of 160 bits. It begins with a letter, as ids of XML do.
func derive(salt []byte, parts ...string) string {
	mac := hmac.New(sha256.New, salt)
	mac.Write([]byte(strings.Join(parts, "\x00"))) // none of the parts can have a NUL: XML has no such character
	return "_" + hex.EncodeToString(mac.Sum(nil)[:20])
}

// isFor reports whether a name is that of the subject that the application has asked for (SAML core §3.4.1.4). Names in
// other formats cannot be compared; there the subject was only proposed to the person.
func (n NameID) isFor(subject *NameID) bool {
	if subject == nil || subject.Format != n.Format && !(isUnspecified(subject.Format) && isUnspecified(n.Format)) {
		return true
	}
	return n.Value == subject.Value || n.Format == formatEmail && strings.EqualFold(n.Value, subject.Value)
}

func isUnspecified(format string) bool {
	return format == "" || format == formatUnspecified || format == formatUnspecified2
}
