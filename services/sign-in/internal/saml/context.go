package saml

import (
	"slices"
	"strings"

	"github.com/idplatform/idplatform/services/questions"
	"github.com/idplatform/idplatform/services/sign-in/internal/protocol"
)

// The levels of a sign-in: one factor, two, two of which one resists phishing. acrs are their names in the platform.
const (
	anyLevel = iota
	oneFactor
	twoFactors
	phishingResistant
)

var acrs = []string{oneFactor: "urn:idplatform:aal:1", twoFactors: "urn:idplatform:aal:2", phishingResistant: "phr"}

const (
	classPrefix      = "urn:oasis:names:tc:SAML:2.0:ac:classes:"
	classUnspecified = classPrefix + "unspecified"
	classPassword    = classPrefix + "PasswordProtectedTransport"
	classMFA         = "https://refeds.org/profile/mfa"
)

// levels are the classes that an application can ask for (SAML authentication context §3.4, REFEDS, Microsoft). A class
// of one factor holds for every sign-in: applications that ask for a password must not lock people with better out.
var levels = map[string]int{
	classUnspecified: anyLevel, classPrefix + "Password": oneFactor, classPassword: oneFactor,
	"https://refeds.org/profile/sfa": oneFactor, acrs[oneFactor]: oneFactor,
	classMFA: twoFactors, "http://schemas.microsoft.com/claims/multipleauthn": twoFactors,
	classPrefix + "MobileTwoFactorContract": twoFactors, classPrefix + "MobileTwoFactorUnregistered": twoFactors,
	acrs[twoFactors]: twoFactors, acrs[phishingResistant]: phishingResistant,
}

// requestedContext is a RequestedAuthnContext (SAML core §3.3.2.2.1).
type requestedContext struct {
	Comparison string   `xml:"Comparison,attr"`
	Classes    []string `xml:"urn:oasis:names:tc:SAML:2.0:assertion AuthnContextClassRef"`
}

// level returns the classes that can be met, and the least level that meets one. ok is false if none can be.
func (r *requestedContext) level() (classes []string, least int, ok bool) {
	least = phishingResistant + 1
	highest := anyLevel
	for _, class := range r.Classes {
		class = strings.TrimSpace(class)
		level, known := levels[class]
		if !known || slices.Contains(classes, class) {
			continue
		}
		classes = append(classes, class)
		least, highest = min(least, level), max(highest, level)
	}
	switch r.Comparison {
	case "", "exact", "minimum", "maximum":
		return classes, least, len(classes) > 0
	case "better":
		return nil, highest + 1, len(classes) > 0 && highest < phishingResistant
	}
	return nil, 0, false
}

// acrFrom lists the acceptable classes of a sign-in, in the platform's names; none if every sign-in will do.
func acrFrom(level int) []string {
	if level <= oneFactor {
		return nil
	}
	return slices.Clone(acrs[level:])
}

// classOf is the class that the application is told: the first of those it has asked for that the sign-in meets, or
// else the one that is configured, or what the sign-in was. ok is false if the sign-in does not meet what was asked.
func classOf(m message, c questions.Client, p protocol.Person) (class string, ok bool) {
	level := max(oneFactor, slices.Index(acrs, p.ACR))
	if level < m.Level {
		return "", false
	}
	for _, class := range m.Contexts {
		if levels[class] <= level {
			return class, true
		}
	}
	if len(m.Contexts) > 0 {
		return "", false
	}
	if class := c.SAML.AuthnContextClassRef; class != "" && levels[class] <= level {
		return class, true
	}
	switch {
	case level >= twoFactors && m.Level > oneFactor:
		return classMFA, true
	case slices.Contains(p.AMR, "pwd"):
		return classPassword, true
	}
	return classUnspecified, true
}
