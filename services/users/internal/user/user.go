package user

import (
	"encoding/json"
	"math"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/dnsname"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/textindex"
)

// Status says whether a user may sign in.
type Status string

// The statuses. A user becomes Resigned only by resigning.
const (
	Active   Status = "1"
	Disabled Status = "0"
	Resigned Status = "resigned"
)

// RealNameStatus says to what extent the real name is proven.
type RealNameStatus string

// The real-name statuses.
const (
	RealNameNone     RealNameStatus = "none"
	RealNamePending  RealNameStatus = "pending"
	RealNameVerified RealNameStatus = "verified"
	RealNameRejected RealNameStatus = "rejected"
)

// User is a user record. It has the same JSON form in the API, in events and in the store.
type User struct {
	docstore.Meta
	Profile
	Protected
	AvatarURL           string     `json:"avatar_url" readOnly:"true" doc:"Where the picture is; empty: none" example:"/v1/users/1048577/avatar"`
	PasswordSet         bool       `json:"password_set" readOnly:"true" doc:"Whether the user can sign in by password" example:"true"`
	TimePasswordChanged clock.Time `json:"time_password_changed" readOnly:"true" nullable:"true" doc:"When the password was set last; null: never"`
	TimeLastLogin       clock.Time `json:"time_last_login" readOnly:"true" nullable:"true" doc:"Changes without a new version; null: never"`
	TimeResigned        clock.Time `json:"time_resigned" readOnly:"true" nullable:"true" doc:"In the future while the resignation is only scheduled"`
	ManagedBy           *ManagedBy `json:"managed_by" readOnly:"true" doc:"The provisioning connection that owns members of the user, which change only through SCIM; null: none"`
	SharedContacts      []string   `json:"shared_contacts,omitempty" readOnly:"true" doc:"Those of email and mobile that other users have, too, where the settings of users allow that. Nobody signs in by them"`
	FirstContacts       []string   `json:"first_contacts,omitempty" readOnly:"true" doc:"Those of shared_contacts that this user had first. Others cannot have them as username, and only this user can have them verified"`
}

// Profile holds the members that create and update may set.
type Profile struct {
	Username           string          `json:"username" required:"true" doc:"1…255 printable characters, with blanks only between others. Unique with all emails and mobiles, without regard to case and width" example:"li.wei"`
	DisplayName        string          `json:"display_name" doc:"Up to 256 characters; how the person is shown" example:"李伟"`
	Email              string          `json:"email" doc:"RFC 5321 address; unique when not empty, unless the settings of users allow to share it" example:"li.wei@acme.test"`
	Mobile             string          `json:"mobile" doc:"E.164 number; unique when not empty, unless the settings of users allow to share it" example:"+8613800000000"`
	EmployeeNumber     string          `json:"employee_number" doc:"Up to 64 characters" example:"A-17"`
	Gender             string          `json:"gender" doc:"Up to 64 characters" example:""`
	Locale             string          `json:"locale" doc:"BCP 47 tag" example:"zh-CN"`
	Zoneinfo           string          `json:"zoneinfo" doc:"IANA time zone" example:"Asia/Shanghai"`
	Status             Status          `json:"status" doc:"1 active, 0 disabled, resigned (by resignation only)" enum:"1,0,resigned" example:"1"`
	EmailVerified      bool            `json:"email_verified" doc:"Whether the person has shown to own the address" example:"false"`
	MobileVerified     bool            `json:"mobile_verified" doc:"Whether the person has shown to own the number" example:"false"`
	MustChangePassword bool            `json:"must_change_password" doc:"Whether the next sign-in asks for a new password" example:"false"`
	SysExtProps        json.RawMessage `json:"sys_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
	FreeExtProps       json.RawMessage `json:"free_ext_props" doc:"Any JSON object up to 64 KiB, kept exactly"`
}

// Protected holds the members that only their own operations change. All of them can be compared with ==.
type Protected struct {
	Locked         bool           `json:"locked" changedBy:"lock-user unlock-user" doc:"Changed by lock and unlock" example:"false"`
	LockReason     string         `json:"lock_reason" changedBy:"lock-user unlock-user" doc:"Why, as the caller said" example:""`
	LockedUntil    clock.Time     `json:"locked_until" changedBy:"lock-user unlock-user" nullable:"true" doc:"When the lock ends by itself; null: it does not"`
	RealNameStatus RealNameStatus `json:"real_name_status" changedBy:"verify-real-name" enum:"none,pending,verified,rejected" doc:"Changed by real-name verification"`
	RealName       string         `json:"real_name" changedBy:"verify-real-name" doc:"Verified, or waiting for it; empty: none" example:""`
	IDNumberMasked string         `json:"id_number_masked" changedBy:"verify-real-name" doc:"The number of the document; all but the first and last character are *" example:""`
}

// users is the collection of user records.
var users = outbox.Define("user", "/users", docstore.Schema[User]{
	Name: "users", Noun: "user", Revision: 6,
	Sortable: sortable,
	Due:      (*User).due,
	ApplyDue: func(u *User, now clock.Time) { u.applyDue(now) },
	Indexes: []docstore.Index[User]{
		docstore.Spanned(docstore.Unique(docstore.ByList(byLogin, (*User).logins), "username", "email", "mobile"),
			letters),
		docstore.ByList(byWord, (*User).words),
		docstore.Spanned(docstore.ByText(byUsername, func(u *User) string {
			return textindex.Key(u.Username)
		}), letters),
		docstore.Spanned(docstore.ByText(byDisplayName,
			func(u *User) string { return textindex.Key(u.DisplayName) }), letters),
		docstore.Spanned(docstore.ByText(byEmail, func(u *User) string { return textindex.Key(u.Email) }), letters),
		docstore.Spanned(docstore.ByText(byEmployeeNumber,
			func(u *User) string { return textindex.Key(u.EmployeeNumber) }), letters),
		docstore.Facet(docstore.ByText(byState, func(u *User) string { return state(u.Status, u.Locked) }),
			// On MongoDB each order is one more index to write. Lists in another order sort the selected users.
			byTimeCreated, byTimeModified),
		docstore.ByNumber(byLockEnd, (*User).lockEnd),
		docstore.ByNumber(byLeaving, (*User).leaving),
		docstore.Spanned(docstore.ByNumber(byTimeCreated,
			func(u *User) docstore.Value { return docstore.Moment(u.TimeCreated) }), day),
		docstore.Spanned(docstore.ByNumber(byTimeModified,
			func(u *User) docstore.Value { return docstore.Moment(u.TimeModified) }), day),
	},
})

// The widths of index spans: keywords often have a few letters, and ranges of time many days.
const (
	letters = 4                   // bytes
	day     = 24 * 60 * 60 * 1000 // milliseconds
)

// The indexes. Those that lists can be sorted by have the names of the members.
const (
	byLogin          = "login"
	byWord           = "word"
	byUsername       = "username"
	byDisplayName    = "display_name"
	byEmail          = "email"
	byEmployeeNumber = "employee_number"
	byState          = "state"
	byLockEnd        = "lock_end"
	byLeaving        = "leaving"
	byTimeCreated    = "time_created"
	byTimeModified   = "time_modified"
)

// sortable are the fields that a list of users can be sorted by. The first is the default.
var sortable = []string{byTimeCreated, byUsername, byDisplayName, byEmail, byTimeModified}

// logins are the names that are the user's alone, as compared; "" for an absent one, and for a contact value that
// another user had first. They share one namespace: nobody's username is another's email.
func (u *User) logins() []string {
	keys := []string{loginKey(u.Username)}
	for _, c := range contacts {
		key := c.key(u)
		if c.shared(u) && !c.first(u) {
			key = ""
		}
		keys = append(keys, key)
	}
	return keys
}

// loginKey is the form in which login names are compared. Those of one mailbox are equal, however its domain is
// written.
func loginKey(name string) string { return dnsname.EmailKey(textindex.Key(name)) }

// words are what a search of all members finds, and the shared contact values; see sharing.
func (u *User) words() []string {
	texts := make([]string, 0, 12)
	texts = append(texts, u.Username, u.DisplayName, u.Email, u.Mobile, u.EmployeeNumber, u.RealName,
		countryCode.ReplaceAllString(u.Mobile, "")) // as people of that country know the number
	for _, props := range []json.RawMessage{u.SysExtProps, u.FreeExtProps} {
		if len(props) > len("{}") {
			texts = append(texts, textindex.Strings(props, maxSearchedProps)...)
		}
	}
	words := textindex.Starts(textindex.Words(texts...))
	for _, key := range u.sharedKeys() {
		words = append(words, sharedMark+key)
	}
	return words
}

// maxSearchedProps is how many text values of each of the ext props a search finds.
const maxSearchedProps = 256

// lockEnd is the time until which the user is locked, so that "locked now" is a range of it.
func (u *User) lockEnd() docstore.Value {
	switch {
	case !u.Locked:
		return docstore.NoNumber
	case u.LockedUntil.IsZero():
		return docstore.Number(math.MaxInt64)
	}
	return docstore.Moment(u.LockedUntil)
}

// leaving is the time at which a scheduled resignation takes effect.
func (u *User) leaving() docstore.Value {
	if u.Status == Resigned {
		return docstore.NoNumber
	}
	return docstore.Moment(u.TimeResigned)
}

// state is the stored status and lock in one text, so that lists by either or both have an index for each order, and
// counters.
func state(status Status, locked bool) string {
	if locked {
		return string(status) + " locked"
	}
	return string(status)
}

// due is the time from which the stored record is out of date: when a lock ends or a scheduled resignation takes
// effect.
func (u *User) due() clock.Time {
	var due clock.Time
	if u.Locked {
		due = u.LockedUntil
	}
	if u.Status != Resigned && !u.TimeResigned.IsZero() && (due.IsZero() || u.TimeResigned.Before(due)) {
		due = u.TimeResigned
	}
	return due
}

// applyDue brings the record up to date at now and reports whether a lock has ended and a resignation has taken effect.
func (u *User) applyDue(now clock.Time) (unlocked, resigned bool) {
	if u.Locked && !u.LockedUntil.IsZero() && !u.LockedUntil.After(now) {
		u.unlock()
		unlocked = true
	}
	if u.Status != Resigned && !u.TimeResigned.IsZero() && !u.TimeResigned.After(now) {
		u.Status = Resigned
		resigned = true
	}
	return unlocked, resigned
}

func (u *User) lock(reason string, until clock.Time) {
	u.Locked, u.LockReason, u.LockedUntil = true, reason, until
}

func (u *User) unlock() { u.Locked, u.LockReason, u.LockedUntil = false, "", clock.Time{} }
