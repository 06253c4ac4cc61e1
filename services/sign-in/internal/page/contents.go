package page

import (
	"html/template"
	"net/url"
	"strings"
)

// Form is what every form of a flow has.
type Form struct {
	Action  string // where it is sent
	Request string // sealed; see flow.Seal
	Locale  string // that was chosen on the page
}

// SignIn asks for the login name and the password.
type SignIn struct {
	Form
	App       string // the application's name; empty on the way to the person's own page
	LoginName string
	Notice    string // the key of a text about the last try
	Current   string // who is signed in and may go on
	Recovers  bool   // a code can be mailed to who has forgotten the password
	Password  bool   // a password says who it is
	AsksName  bool   // the login name is asked for first, alone
	Sources   []Source
	// What stands above the form: the application wants it.
	SourcesFirst, PasskeyFirst bool
	// Linking is who the person is at another provider, to whom nobody is linked yet.
	Linking   struct{ Through, There string }
	Challenge *Challenge
}

// Source is a connection by which the person can sign in at another provider.
type Source struct{ ID, Name string }

// Challenge asks the browser for a passkey.
type Challenge struct{ Options, Sealed string }

func (SignIn) about() (string, string) { return "sign_in.html", "sign_in" }

// NewPassword asks for a new password, before the person is signed in.
type NewPassword struct {
	Form
	Title     string // the key of a text
	LoginName string
	Why       string // the key of a text
	Notice    string
	// A passkey can be set up instead, or an identity linked of one of Sources.
	Passkey bool
	Sources []Source
}

func (p NewPassword) about() (string, string) { return "new_password.html", p.Title }

// Forgotten asks for the login name of who has forgotten the password.
type Forgotten struct {
	Form
	LoginName string
	Notice    string
}

func (Forgotten) about() (string, string) { return "forgotten.html", "forgotten" }

// EnterCode asks for a code that was mailed. It says the same whether there was anybody to send one to.
type EnterCode struct {
	Form
	LoginName string
	Notice    string
}

func (EnterCode) about() (string, string) { return "enter_code.html", "enter_code" }

// Later says that a person may go on without a factor.
type Later struct {
	Can   bool
	Until string // the last day; empty: for ever
}

// EnterFactor asks for a code of an authenticator app, or a recovery code.
type EnterFactor struct {
	Form
	Later     Later
	LoginName string
	App       bool // the person has an app
	Codes     bool // the person has recovery codes
	Sources   []Source
	Challenge *Challenge
	Notice    string
}

func (EnterFactor) about() (string, string) { return "enter_factor.html", "enter_factor" }

// ChooseFactor begins to set up a factor.
type ChooseFactor struct {
	Form
	App           string // the application that demands it; empty if none does
	Own           bool   // it is the person's own wish
	Later         Later
	Passkey       bool // can be set up
	Authenticator bool
	Notice        string
}

func (ChooseFactor) about() (string, string) { return "choose_factor.html", "set_up_factor" }

// SetUpApp shows the key of an authenticator app, and asks for a code of it.
type SetUpApp struct {
	Form
	Picture template.URL // a QR code
	Address template.URL // what it says: apps on the same device open it
	Key     string
	Digits  int // of a code
	Period  int // how many seconds a code lasts
	Own     bool
	Later   Later
	Notice  string
}

func (SetUpApp) about() (string, string) { return "set_up_app.html", "set_up_app" }

// SetUpPasskey asks the browser to make a passkey.
type SetUpPasskey struct {
	Form
	Invited bool // the person can choose a password instead
	Options string
	Own     bool
	Later   Later
	Notice  string
}

func (SetUpPasskey) about() (string, string) { return "set_up_passkey.html", "set_up_passkey" }

// KeepCodes shows recovery codes, once; without any it says that the person has shown all that is due.
type KeepCodes struct {
	Form
	Codes []string
}

func (p KeepCodes) about() (string, string) {
	if len(p.Codes) == 0 {
		return "keep_codes.html", "all_shown"
	}
	return "keep_codes.html", "keep_codes"
}

// AskNewCodes asks whether recovery codes are to be made.
type AskNewCodes struct{ Form }

func (AskNewCodes) about() (string, string) { return "ask_new_codes.html", "new_codes" }

// Invitation asks whoever is invited to go on. Without a code it asks for one, too.
type Invitation struct {
	Code   string
	Notice string
}

func (Invitation) about() (string, string) { return "invitation.html", "invitation" }

// ConfirmLink asks whether who the person is at another provider is to be linked to who they are here.
type ConfirmLink struct {
	Form
	Through string // the name of the connection
	There   string // the person's name there
	Here    string
	Invited bool // the person has no password yet
	Notice  string
}

func (ConfirmLink) about() (string, string) { return "confirm_link.html", "confirm_link" }

// AskDirectory asks for the name and the password of a directory.
type AskDirectory struct {
	Form
	App       string
	Through   string // the name of the connection
	LoginName string
	Notice    string
	Back      bool // to the page with the other ways
}

func (AskDirectory) about() (string, string) { return "ask_directory.html", "sign_in" }

// AskToLink leads to another provider, to link who the person is there.
type AskToLink struct {
	Form
	Through, Connection string // its name and id; empty if nobody can sign in through it any more
	Notice              string
}

func (AskToLink) about() (string, string) { return "ask_to_link.html", "link_account" }

// Account is a sub-account to choose.
type Account struct {
	ID, Account, DisplayName string
	Checked                  bool
}

// Choose asks with which account the person enters the application.
type Choose struct {
	Form
	App      string
	Accounts []Account
}

func (Choose) about() (string, string) { return "choose.html", "choose_account" }

// Consent asks whether the application may know what it asks for.
type Consent struct {
	Form
	App    string
	Name   string   // the person's
	Scopes []string // texts
	Device *AskingDevice
}

// AskingDevice is the device that a program has asked from. Address and Browser are empty if they are not known.
type AskingDevice struct{ Code, Address, Browser string }

func (Consent) about() (string, string) { return "consent.html", "consent" }

// Refused says that the person may not use the application.
type Refused struct {
	Form
	App, Name string
	Reason    string // the key of a text for the person
	Admin     string // the key of a text for an administrator
	Rule      string
}

func (Refused) about() (string, string) { return "refused.html", "refused" }

// Missing says that the application demands methods that are not there.
type Missing struct {
	Form
	App  string
	Text string // the key of a text
	// Personal says that others can enter the application: the person lacks a factor, and can perhaps set one up on
	// their own page, Home.
	Personal, Home bool
	Methods        []string // texts
}

func (Missing) about() (string, string) { return "missing.html", "missing" }

// Problem says that something does not work, and how to go on.
type Problem struct {
	Head   string // the key of the headline
	Text   string // the key of a text
	Detail string // for whoever develops the application; in English
	OnURL  string // a way on; empty: none
	On     string // the key of its text
}

func (p Problem) about() (string, string) { return "problem.html", p.Head }

// Leave leads to the application at once. The frames tell applications of a logout meanwhile.
type Leave struct {
	App    string
	URL    string
	Frames []string
	// SignedIn is true on the way of a person who has signed in, and not after a logout or an error. Other tabs are
	// told.
	SignedIn bool
}

// Href is the address as a link. It is one that the application has registered, such as an app's own scheme, which
// html/template would not take.
func (l Leave) Href() template.URL { return href(l.URL) }

func href(to string) template.URL {
	scheme, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(to)), ":")
	switch scheme {
	case "javascript", "data", "vbscript", "blob", "file":
		return "about:blank"
	}
	return template.URL(to) //nolint:gosec // the schemes that run something are refused
}

func (Leave) about() (string, string) { return "leave.html", "leaving" }

// Post hands a form to the application at once.
type Post struct {
	App    string
	URL    string
	Fields url.Values
}

func (Post) about() (string, string) { return "post.html", "leaving" }

// Logout asks whether the person wants to sign out.
type Logout struct {
	Form
	App, Name string
	Hidden    url.Values // the request's parameters
}

func (Logout) about() (string, string) { return "logout.html", "sign_out" }

// LoggedOut says that the person is signed out. The frames tell applications.
type LoggedOut struct {
	Frames []string
	OnURL  string // back to the application; empty: to the person's own page
	App    string
	Missed []string // the names of applications in which the person may still be signed in
}

func (LoggedOut) about() (string, string) { return "logged_out.html", "signed_out" }

// Home is the person's own page.
type Home struct {
	Name, LoginName string
	Notice          string
	Good            bool // the notice tells of a success
	Email           string
	Verifiable      bool // the email address, which is not verified
	CodeIsOut       bool // a code was mailed to it
	Password        bool // the person has one
	Apps            []HomeApp
	AppsAway        bool // a service that knows them does not answer
	MoreApps        bool // than Apps
	Factors         []HomeFactor
	CodesLeft       int // recovery codes
	Links           []HomeLink
	LinksAway       bool // a service that knows them does not answer
	Linkable        []Source
	Sessions        []HomeSession
	Consents        []HomeConsent
	Grants          []HomeGrant
}

func (Home) about() (string, string) { return "home.html", "home" }

// HomeApp is an application that the person may open.
type HomeApp struct {
	Name, URL string
	Host      string       // of the URL; empty if the sign-in begins here
	Icon      template.URL // a monogram
}

// HomeFactor is a second factor of the person. Used is empty if it was not used since it was set up.
// Kind is the key of a text.
type HomeFactor struct{ ID, Name, Kind, Since, Used string }

// HomeLink is a link of the person to another provider: Through the name of the connection, Name theirs there. Off says
// that nobody can sign in by it.
type HomeLink struct {
	ID, Through, Name, Since string
	Off                      bool
}

// HomeSession is a session of the person.
type HomeSession struct {
	ID, Browser, Address, Since string
	Here                        bool
}

// HomeConsent is a consent of the person.
type HomeConsent struct {
	ID, App string
	Scopes  []string
}

// HomeGrant is access of an application that goes on after the person's session.
type HomeGrant struct{ ID, App, Since, Until string }

// Device asks for the code that a device shows, or says what has come of it.
type Device struct {
	Code   string
	Notice string
	Done   string // 1: the device may, 0: it may not; empty: nothing has come of it yet
}

func (Device) about() (string, string) { return "device.html", "device" }
