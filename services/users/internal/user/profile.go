package user

import (
	"net/mail"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // zone names can be checked on machines without the time zone database
	"unicode"

	"golang.org/x/text/language"

	"github.com/idplatform/idplatform/pkg/apperr"
)

// Limits of members, in characters unless stated otherwise.
const (
	maxUsername    = 128
	maxDisplayName = 256
	maxEmail       = 254 // bytes, RFC 5321 §4.5.3.1.3
	maxLocalPart   = 64  // bytes before the @, RFC 5321 §4.5.3.1.1
	maxLabel       = 63  // bytes between the dots of a domain, RFC 1035 §2.3.4
	maxText        = 64
	maxReason      = 256
)

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{1,14}$`)

// normalize sets absent members to their defaults.
func (p *Profile) normalize() {
	if p.Status == "" {
		p.Status = Active
	}
}

// check notes every fault.
func (p *Profile) check(faults *apperr.Faults) {
	faults.Check(validUsername(p.Username), "username",
		"must have 1…%d letters, digits or . _ - @ + ' ! # ^ ~", maxUsername)
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

func validUsername(s string) bool {
	n := 0
	for _, r := range s {
		n++
		if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-@+'!#^~", r) {
			return false
		}
		// invisible letters and marks
		if unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return false
		}
	}
	return n > 0 && n <= maxUsername
}

func validEmail(s string) bool {
	address, err := mail.ParseAddress(s)
	if err != nil || address.Address != s || len(s) > maxEmail || strings.ContainsFunc(s, unicode.IsSpace) {
		return false
	}
	at := strings.LastIndexByte(s, '@')
	return at <= maxLocalPart && validDomain(s[at+1:])
}

// validDomain reports whether a domain could exist in the DNS (RFC 5321 §2.3.5), including those with letters of other
// scripts (RFC 6531 §3.3). Address literals such as [192.0.2.1] are for mail servers, not for people.
func validDomain(s string) bool {
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
