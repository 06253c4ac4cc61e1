package user

import (
	"net/mail"
	"net/netip"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // zone names can be checked on machines without the time zone database
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Limits of members, in characters unless stated otherwise.
const (
	maxUsername    = 255
	maxDisplayName = 256
	maxEmail       = 254 // bytes, RFC 5321 §4.5.3.1.3
	maxLocalPart   = 64  // bytes before the @, RFC 5321 §4.5.3.1.1
	maxLabel       = 63  // bytes between the dots of a domain, RFC 1035 §2.3.4
	maxText        = 64
	maxReason      = 256
)

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{1,14}$`)

// countryCode is that of an E.164 number. All have three digits but those of zones 1 and 7 and the ones of two digits
// (ITU-T E.164, list of assigned country codes).
var countryCode = regexp.MustCompile(
	`^\+([17]|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|[2-9][0-9]{2})`)

// normalize sets absent members to their defaults.
func (p *Profile) normalize() {
	if p.Status == "" {
		p.Status = Active
	}
}

// check notes every fault.
func (p *Profile) check(faults *apperr.Faults) {
	faults.Check(validUsername(p.Username), "username",
		"must have 1…%d printable characters, and blanks only between others", maxUsername)
	faults.Text("display_name", p.DisplayName, maxDisplayName)
	faults.Text("employee_number", p.EmployeeNumber, maxText)
	faults.Text("gender", p.Gender, maxText)
	faults.Check(p.Email == "" || validEmail(p.Email), "email", "must be an email address")
	faults.Check(p.Mobile == "" || e164.MatchString(p.Mobile), "mobile", "must be an E.164 number like +8613800000000")
	faults.Check(p.Status == Active || p.Status == Disabled, "status", `must be "1" or "0"`)
	if p.Locale != "" {
		_, err := language.Parse(p.Locale)
		faults.Check(err == nil && len(p.Locale) <= maxText, "locale", "must be a language tag like zh-CN")
	}
	if p.Zoneinfo != "" {
		_, err := time.LoadLocation(p.Zoneinfo)
		faults.Check(err == nil && p.Zoneinfo != "Local", "zoneinfo", "must be a time zone like Asia/Shanghai")
	}
	faults.Props("sys_ext_props", &p.SysExtProps)
	faults.Props("free_ext_props", &p.FreeExtProps)
}

// differs notes the members that differ from the record.
func (p Protected) differs(is Protected, faults *apperr.Faults) {
	const message = "is changed by its own operation only"
	faults.Check(p.Locked == is.Locked, "locked", message)
	faults.Check(p.LockReason == is.LockReason, "lock_reason", message)
	faults.Check(p.LockedUntil == is.LockedUntil, "locked_until", message)
	faults.Check(p.RealNameStatus == is.RealNameStatus, "real_name_status", message)
	faults.Check(p.RealName == is.RealName, "real_name", message)
	faults.Check(p.IDNumberMasked == is.IDNumberMasked, "id_number_masked", message)
}

// validUsername takes every name that other directories have, such as DOMAIN\user, as RFC 7643 section 4.1.1 asks.
func validUsername(s string) bool {
	n := 0
	for _, r := range s {
		n++
		invisible := unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
		if !unicode.IsPrint(r) || r == utf8.RuneError || invisible {
			return false
		}
	}
	return n > 0 && n <= maxUsername && strings.TrimSpace(s) == s
}

// validEmail reports whether a text is a mailbox of RFC 5321 §4.1.2, also with characters of other scripts (RFC 6531
// §3.3).
func validEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > maxLocalPart || len(s) > maxEmail || !validDomain(s[at+1:]) {
		return false
	}
	if s[0] == '"' {
		return validQuoted(s[:at])
	}
	address, err := mail.ParseAddress(s[:at] + "@domain")
	return err == nil && address.Address == s[:at]+"@domain" && !strings.ContainsFunc(s, unicode.IsSpace)
}

// validQuoted reports whether a local part is a quoted string.
func validQuoted(s string) bool {
	inner, closed := strings.CutSuffix(s[1:], `"`)
	escaped := false
	for _, r := range inner {
		switch {
		case r < ' ' || r == 0x7f || r == utf8.RuneError || r > 0x7f && !unicode.IsPrint(r):
			return false
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case r == '"':
			return false
		}
	}
	return closed && !escaped && inner != ""
}

// validDomain reports whether a domain could exist in the DNS (RFC 5321 §2.3.5), or is an address literal.
func validDomain(s string) bool {
	if literal, ok := strings.CutPrefix(s, "["); ok {
		literal, closed := strings.CutSuffix(literal, "]")
		text, isV6 := strings.CutPrefix(literal, "IPv6:")
		address, err := netip.ParseAddr(text)
		return closed && err == nil && address.Is6() == isV6 && address.Zone() == ""
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > maxLabel || strings.Trim(label, "-") != label {
			return false
		}
		for _, r := range label {
			if r != '-' && !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) {
				return false
			}
		}
	}
	return true
}
