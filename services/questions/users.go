package questions

import (
	"encoding/json"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/secret"
)

// UserIDs is a list of user ids.
type UserIDs struct {
	IDs []string `json:"ids"`
}

// ExistingUsers asks which of the ids are users who have not resigned. Without an answer, nothing that refers to them
// is added.
var ExistingUsers = bus.Question[UserIDs, UserIDs]{Service: "users", Name: "existing"}

// TenantName names a tenant; an empty one is before the first and after the last.
type TenantName struct {
	Tenant string `json:"tenant"`
}

// NextUsersTenant asks which tenant follows a tenant among those that have users. It is asked for the platform, not for
// a tenant. Without an answer, the asking service tries again later.
var NextUsersTenant = bus.Question[TenantName, TenantName]{Service: "users", Name: "next-tenant"}

// RecordsPage asks for records of the tenant in the order of their ids: the first Limit (of users 1…500), or those
// after an earlier page, whose Next is given as After.
type RecordsPage struct {
	After string `json:"after"`
	Limit int    `json:"limit"`
}

// PartsOf asks where the tenant's records divide into at most that many Parts (1…16).
type PartsOf struct {
	Parts int `json:"parts"`
}

// Check returns apperr.InvalidParameters if there are not 1…16 parts.
func (p PartsOf) Check() error {
	if p.Parts < 1 || p.Parts > 16 {
		return apperr.Invalid("parts", "must lie in 1…16")
	}
	return nil
}

// Places are ids of records: a part begins after one of them, or with the first record, and ends with the next. There
// are none if the records are too few to be read in parts.
type Places struct {
	IDs []string `json:"ids"`
}

// UserPlaces asks where the tenant's users divide, so that they can be read in parts at the same time. An earlier
// version of the users service does not answer: then there is one part.
var UserPlaces = bus.Question[PartsOf, Places]{
	Service: "users", Name: "places", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// UsersPage asks for a page of users, of whose records the answer has only these Members (at most 64); all if there
// are none. AfterID stands for After on the first page of a part.
type UsersPage struct {
	RecordsPage
	AfterID string   `json:"after_id,omitempty"`
	Members []string `json:"members,omitempty"`
}

// Records are user records in the form that events carry. There may be fewer than Limit; Next is empty on the last
// page.
type Records struct {
	Users []json.RawMessage `json:"users"`
	// Sequences has, for each user, the sequence of the first event with the user's present state: events with a
	// lower sequence are outdated.
	Sequences []int64 `json:"sequences"`
	Next      string  `json:"next"`
}

// UserRecords asks for user records, so that the asking service can build up its copy of all users. Without an
// answer, it tries again later.
var UserRecords = bus.Question[UsersPage, Records]{
	Service: "users", Name: "records", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// Search describes a full-text search for Keyword among the users with these IDs (at most 1000), or among all users
// if IDs is null. The answer has at most Limit (1…1000) ids.
type Search struct {
	Keyword string   `json:"keyword"`
	IDs     []string `json:"ids"`
	Limit   int      `json:"limit"`
}

// Found has the ids of the users found, in the order of ids, and says whether there are more.
type Found struct {
	IDs  []string `json:"ids"`
	More bool     `json:"more"`
}

// MatchingUsers asks for a full-text search. Without an answer, the list that the asking service was making fails.
var MatchingUsers = bus.Question[Search, Found]{
	Service: "users", Name: "matching", Refusals: []apperr.Kind{apperr.InvalidParameters},
}

// ConnectionNumber names a connection of the identity-sources service in the form that stored credentials use.
type ConnectionNumber struct {
	ID int64 `json:"id"`
}

// Count is a number of records.
type Count struct {
	Count int64 `json:"count"`
}

// CredentialsOfConnection asks how many stored credentials refer to a connection. Without an answer, the connection is
// not deleted.
var CredentialsOfConnection = bus.Question[ConnectionNumber, Count]{
	Service: "users", Name: "credentials-of-connection",
}

// UserSettings are the tenant's settings of users.
type UserSettings struct {
	SharedContacts bool `json:"shared_contacts"` // users may have the email or mobile of another user
}

// SettingsOfUsers asks for them. An earlier version of the users service does not answer: then nothing is shared.
var SettingsOfUsers = bus.Question[Nothing, UserSettings]{Service: "users", Name: "settings"}

// Nothing is a request or an answer without members.
type Nothing struct{}

// TransitKeyOfUsers asks for the key under which passwords travel to the users service. All its replicas have the same.
// Without an answer, no password is sent.
var TransitKeyOfUsers = bus.Question[Nothing, secret.TransitKey]{Service: "users", Name: "transit-key"}

// The uses of passwords that travel; see PasswordFor.
const (
	ToVerify = "users.verify-login"
	ToSet    = "users.set-password"
)

// PasswordFor is the use for which a password of a tenant is sealed (secret.TransitKey.Seal), so that it is good for no
// other question and for no other login name or user.
func PasswordFor(use, tenant, whose string) string { return use + " " + tenant + " " + whose }

// Login is a login name (username, email or mobile) with its password, sealed with TransitKeyOfUsers for ToVerify and
// the login name.
type Login struct {
	LoginName string  `json:"login_name"`
	Password  string  `json:"password"`
	Browser   Browser `json:"browser,omitzero"`
}

// Browser is where a login comes from. Wrong passwords from a browser count apart for the users whom it is known to, so
// that strangers cannot lock them out of it.
type Browser struct {
	ID      string   `json:"id,omitempty"`       // at most 64 characters, no secret
	KnownTo []string `json:"known_to,omitempty"` // ids of users who have signed in with it
}

// LoginVerified is the answer to a login. It has a Reason if it is not Verified, as login-verification of the users
// service has, and the other members if it is.
type LoginVerified struct {
	Verified           bool   `json:"verified"`
	Reason             string `json:"reason,omitempty"`
	MustChangePassword bool   `json:"must_change_password,omitempty"`
	SignedIn
}

// SignedIn is a user's record in the form that events carry. Events about the user with a sequence up to Sequence
// were before the answer.
type SignedIn struct {
	User     json.RawMessage `json:"user,omitempty"`
	Sequence int64           `json:"sequence,omitempty"`
}

// VerifyLogin asks whether a password is the right one. Wrong ones count, and lock the user after too many. The refusal
// VersionMismatch says that the password was sealed with a key that the service does not have. Without an answer,
// nobody is signed in.
var VerifyLogin = bus.Question[Login, LoginVerified]{
	Service: "users", Name: "verify-login", Patience: 10 * time.Second,
	Refusals: []apperr.Kind{apperr.VersionMismatch},
}

// LoginName names a user as people do who sign in.
type LoginName struct {
	LoginName string `json:"login_name"`
}

// Recoverable is a user who may set a new password without the old one, once it is proven that the user's mails are
// theirs. Found is false if there is none.
type Recoverable struct {
	Found bool `json:"found"`
	SignedIn
}

// RecoverableUser asks for the user with a login name, if they may sign in, have a password, an email address that is
// nobody else's, and no scope of the platform's API. A user who is locked because of wrong passwords is found, too.
// Without an answer, the asking service tries again later.
var RecoverableUser = bus.Question[LoginName, Recoverable]{
	Service: "users", Name: "recoverable", Patience: 5 * time.Second,
}

// UserToInvite names a user by id.
type UserToInvite struct {
	UserID string `json:"user_id"`
}

// The reasons for which a user cannot be invited, beside the states locked, disabled and resigned.
const (
	HasPassword = "has_password"
	HasNoEmail  = "has_no_email"
	HasScopes   = "has_scopes"
)

// Invitable says whether a user can be invited to choose a first password: they may sign in, have no password, an email
// address, and no scope of the platform's API. Reason says why not; empty: they can.
type Invitable struct {
	Reason string `json:"reason,omitempty"`
	SignedIn
}

// InvitableUser asks whether a user can be invited. NotFound says that there is no such user. Without an answer, nobody
// is invited, and no invitation serves.
var InvitableUser = bus.Question[UserToInvite, Invitable]{
	Service: "users", Name: "invitable", Patience: 5 * time.Second, Refusals: []apperr.Kind{apperr.NotFound},
}

// ProvenEmail is an address that a user has shown to own.
type ProvenEmail struct {
	UserID string `json:"user_id"`
	Email  string `json:"email"`
}

// VerifyEmail asks to make the address of a user a verified one. InvalidState refuses an address that is not the user's
// any more, or that another user had before, and a user who cannot sign in. Without an answer, the user can enter the
// code again.
var VerifyEmail = bus.Question[ProvenEmail, SignedIn]{
	Service: "users", Name: "verify-email", Patience: 5 * time.Second,
	Refusals: []apperr.Kind{apperr.NotFound, apperr.InvalidState},
}

// Invite is the member of the data of user.created that is true if the user is to be invited.
const Invite = "invite"

// LockedByFailures is the lock_reason of users whom the platform has locked because of wrong passwords. Others could
// cause this, so it does not end the user's sessions.
const LockedByFailures = "too many failed logins"

// NewPassword is a password that a user has chosen after a sign-in, sealed with TransitKeyOfUsers for ToSet and the
// user's id. However often it is asked for, a change is made once for its ID.
type NewPassword struct {
	ID       string `json:"change_id"`
	UserID   string `json:"user_id"`
	Password string `json:"password"`
	// TimePasswordChanged is the record's when the old password was proven; zero: there was none.
	TimePasswordChanged clock.Time `json:"time_password_changed"`
	// Email is the address that the user has shown to own, if that is what was proven. It becomes verified.
	Email string `json:"email,omitempty"`
}

// SetPassword asks to set it. Faults are located at new_password. VersionMismatch is as in VerifyLogin, InvalidState
// refuses a user who cannot sign in, or whose password or address is no longer what was proven. Without an answer, the
// user is asked for a new password again.
var SetPassword = bus.Question[NewPassword, SignedIn]{
	Service: "users", Name: "set-password", Patience: 10 * time.Second,
	Refusals: []apperr.Kind{
		apperr.InvalidParameters, apperr.InvalidState, apperr.NotFound, apperr.VersionMismatch,
	},
}

// ForeignIdentity is somebody whom the provider of a connection has signed in. Subject is what the provider knows them
// by, and Subject2 a second such marker, if it has one; at most 256 characters each.
type ForeignIdentity struct {
	ConnectionID string `json:"connection_id"`
	ProviderCode string `json:"provider_code"`
	Subject      string `json:"subject"`
	Subject2     string `json:"subject2,omitempty"`
	Username     string `json:"username,omitempty"`
	DisplayName  string `json:"display_name,omitempty"`
}

// Linked is the user whom an identity is linked to by a stored credential. It has a Reason if nobody can sign in by it:
// NotLinked, LinkDisabled, or the states locked, disabled and resigned.
type Linked struct {
	Reason string `json:"reason,omitempty"`
	LinkID string `json:"link_id,omitempty"` // the stored credential's
	// HasScopes says that the user has a scope of the platform's API: whoever can change the connection must not get it
	// by signing in as the user.
	HasScopes bool `json:"has_scopes,omitempty"`
	SignedIn
}

// The reasons for which nobody can sign in by an identity, beside the states of users.
const (
	NotLinked    = "not_linked"
	LinkDisabled = "link_disabled"
)

// FindLinked asks for the user whom an identity is linked to. Without an answer, nobody is signed in.
var FindLinked = bus.Question[ForeignIdentity, Linked]{
	Service: "users", Name: "find-linked", Patience: 5 * time.Second,
}

// NewLink is an identity to be linked to a user: to the one with UserID, who has proven both, or to the one user whose
// verified address is Email, which the provider has verified, too. The other member is empty.
type NewLink struct {
	ForeignIdentity
	UserID string `json:"user_id,omitempty"`
	Email  string `json:"email,omitempty"`
}

// Link asks to link an identity. An Email that is nobody's, or that of a user who has a scope of the platform's API,
// links nobody: the answer's Reason is NotLinked. AlreadyExists refuses an identity of another user, InvalidState
// a user who cannot sign in or has as many links as can be, InvalidParameters an identity that cannot be stored. To ask
// twice links once. Without an answer, the person tries again.
var Link = bus.Question[NewLink, Linked]{
	Service: "users", Name: "link", Patience: 5 * time.Second,
	Refusals: []apperr.Kind{
		apperr.AlreadyExists, apperr.InvalidParameters, apperr.InvalidState, apperr.NotFound,
	},
}

// LinksQuestion names a user.
type LinksQuestion struct {
	UserID string `json:"user_id"`
}

// UserLinks are the identities at other providers that a user is linked to, of connections, the oldest first: at most
// 100.
type UserLinks struct {
	Links []UserLink `json:"links"`
}

// UserLink is one of them. Name is what the provider calls the person.
type UserLink struct {
	ID           string     `json:"id"` // the stored credential's
	ConnectionID string     `json:"connection_id"`
	ProviderCode string     `json:"provider_code"`
	Name         string     `json:"name,omitempty"`
	Enabled      bool       `json:"enabled"`
	TimeCreated  clock.Time `json:"time_created"`
}

// LinksOf asks for them. Without an answer, the person's own page does without.
var LinksOf = bus.Question[LinksQuestion, UserLinks]{Service: "users", Name: "links-of-user"}

// EndedLink is a link that its user does not want any more. MayBeLast says that the user can sign in without it by
// something that the users service does not know, such as a passkey. Disabled are those connections of
// the user's links through which people cannot sign in at present.
type EndedLink struct {
	UserID    string   `json:"user_id"`
	ID        string   `json:"id"`
	MayBeLast bool     `json:"may_be_last,omitempty"`
	Disabled  []string `json:"disabled,omitempty"`
}

// Unlink asks to delete it. NotFound says that the user has no such link, InvalidState that the user could not sign in
// without it. Without an answer, the person tries again.
var Unlink = bus.Question[EndedLink, Nothing]{
	Service: "users", Name: "unlink", Patience: 5 * time.Second,
	Refusals: []apperr.Kind{apperr.NotFound, apperr.InvalidState},
}
