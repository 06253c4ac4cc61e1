// Package settings is the domain of a tenant's settings of sign-in: how its pages look, what they say, and how many
// failures they bear.
package settings

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/outbox"
	"github.com/idplatform/idplatform/pkg/weburl"
)

// Settings are a tenant's. They have the same JSON form in the API, in events and in the store.
type Settings struct {
	docstore.Meta
	Profile
}

// Profile holds the members that clients set.
type Profile struct {
	Name             string   `json:"name" doc:"The organization's name, up to 64 characters; empty: none is shown" example:"Acme"`
	Logo             string   `json:"logo" doc:"A data URI in base64 of a PNG, JPEG, GIF or WebP, up to 64 KiB; empty: none"`
	Colour           string   `json:"colour" doc:"Of buttons and links on light pages, with a contrast of at least 4.5 to white; empty: the platform's" example:"#1a5fb4"`
	ColourDark       string   `json:"colour_dark" doc:"Of those on dark pages, with a contrast of at least 4.5 to #1c1f26; empty: the platform's" example:"#8ab4ff"`
	Locale           string   `json:"locale" enum:"en,zh" doc:"The language where nothing says which one a person reads"`
	Links            []Link   `json:"links" doc:"At the foot of each page, up to 5"`
	Texts            Texts    `json:"texts" doc:"What the tenant says on the pages"`
	Messages         Messages `json:"messages,omitzero" doc:"How mails look, and how many there may be"`
	FailuresPerMin   int      `json:"failures_per_minute" doc:"Wrong passwords from one address in a minute; beyond it, only browsers in which the person has signed in before may try" example:"10"`
	FailuresOfTenant int      `json:"failures_of_tenant" doc:"Wrong passwords of all in a minute; beyond it, attempts from browsers that are not known wait some seconds" example:"300"`
}

// Link is shown at the foot of each page.
type Link struct {
	Label string `json:"label" doc:"Up to 64 characters" example:"Privacy"`
	URL   string `json:"url" doc:"An https, http or mailto URL" example:"https://acme.test/privacy"`
}

// Messages are how the mails of sign-in look, and how many there may be. What is empty is the platform's.
type Messages struct {
	Sender       string            `json:"sender,omitempty" doc:"The name that mails come from, up to 64 characters; empty: the organization's" example:"Acme IT"`
	ReplyTo      string            `json:"reply_to,omitempty" doc:"A mail address that answers go to; empty: the sender's" example:"help@acme.test"`
	Footer       map[string]string `json:"footer,omitempty" doc:"At the foot of each mail, by language (en, zh); plain text of up to 500 characters"`
	Recovery     MessageTexts      `json:"recovery,omitzero" doc:"Of the mail with the code with which a person sets a new password"`
	Invitation   MessageTexts      `json:"invitation,omitzero" doc:"Of the mail with the link with which a person chooses a first password"`
	Verification MessageTexts      `json:"verification,omitzero" doc:"Of the mail with the code with which a person shows that an address is theirs"`
	OfAddress    int               `json:"per_hour_of_address,omitempty" doc:"Mails to one address in an hour, up to 100; 0: 5. A browser in which its owner has signed in before has as many of its own, and so have invitations" example:"5"`
	OfTenant     int               `json:"per_hour,omitempty" doc:"Mails in an hour that strangers have asked for, up to 100000; 0: 1000. Browsers that are known do not count. Invitations have as many of their own; the platform's mail server takes 1000 of them at most" example:"1000"`
}

// MostOfAddress is how many mails one address may have in an hour.
func (m Messages) MostOfAddress() int { return cmp.Or(m.OfAddress, mailsOfAddress) }

// MostOfTenant is how many mails strangers may ask for in an hour.
func (m Messages) MostOfTenant() int { return cmp.Or(m.OfTenant, mailsOfTenant) }

// MessageTexts are what a tenant says in a kind of mail, by language (en, zh); plain text.
type MessageTexts struct {
	Subject map[string]string `json:"subject,omitempty"`
	Words   map[string]string `json:"words,omitempty"` // above the code
}

// Texts are what a tenant says on the pages, by language (en, zh); plain text.
type Texts struct {
	SignIn map[string]string `json:"sign_in"` // above the form
	Help   map[string]string `json:"help"`    // whom to ask, where something is refused
}

// The defaults.
const (
	failuresPerMin   = 10
	failuresOfTenant = 300
	mailsOfAddress   = 5
	mailsOfTenant    = 1000
)

// Locales are the languages of the pages.
var Locales = []string{"en", "zh"}

// LogoTypes are the types that a logo can have. SVG is none of them: as a page of its own it could have scripts.
var LogoTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

const (
	maxName  = 64
	maxLogo  = 64 << 10 // of the data URI
	maxLinks = 5
	maxURL   = 2048
	maxText  = 500 // characters

	maxSubject = 100 // characters
	maxAddress = 320
)

var all = outbox.DefineSingleton("sign_in_settings", "/sign-in/settings", docstore.Schema[Settings]{
	Name: "settings", Noun: "sign-in settings",
}, func(id string) *Settings { return &Settings{Meta: docstore.Meta{ID: id}, Profile: initial()} })

// Collections are the collections that the store must have.
func Collections() []*docstore.Def { return []*docstore.Def{all.Def()} }

// Doc is a tenant's settings as read or written.
type Doc = docstore.Doc[Settings]

// Service are the use cases.
type Service struct{ Store *docstore.Store }

func initial() Profile {
	return Profile{Locale: "en", Links: []Link{}, FailuresPerMin: failuresPerMin, FailuresOfTenant: failuresOfTenant,
		Texts: Texts{SignIn: map[string]string{}, Help: map[string]string{}}}
}

// Of returns the tenant's settings; the defaults if it has none.
func (s *Service) Of(ctx context.Context) (*Settings, error) { return all.Value(ctx, s.Store) }

// In is Of inside a transaction.
func In(ctx context.Context, tx *docstore.Tx) (*Settings, error) { return all.Value(ctx, tx) }

// Get returns the tenant's settings, and stores the defaults if it has none.
func (s *Service) Get(ctx context.Context) (Doc, error) { return all.Get(ctx, s.Store) }

// Change applies edit to the tenant's settings. The error is apperr.InvalidParameters with every fault, or
// VersionMismatch.
func (s *Service) Change(ctx context.Context, edit func(*Profile) error) (Doc, error) {
	return all.Edit(ctx, s.Store, func(v *Settings) error {
		if err := edit(&v.Profile); err != nil {
			return err
		}
		return v.check()
	})
}

// Fresh is what a PUT starts from.
func Fresh(p *Profile) { *p = initial() }

var colour = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// check sets defaults and reports every fault.
func (p *Profile) check() error {
	var faults apperr.Faults
	p.Colour, p.ColourDark = strings.ToLower(p.Colour), strings.ToLower(p.ColourDark)
	if p.Links == nil {
		p.Links = []Link{}
	}
	faults.Check(utf8.RuneCountInString(p.Name) <= maxName, "name", "must have at most %d characters", maxName)
	faults.Check(p.Logo == "" || p.logoType() != "", "logo",
		"must be a data URI in base64 of at most %d KiB, of a PNG, JPEG, GIF or WebP", maxLogo>>10)
	checkColour(&faults, "colour", p.Colour, lightPage)
	checkColour(&faults, "colour_dark", p.ColourDark, darkPage)
	faults.Check(slices.Contains(Locales, p.Locale), "locale", "must be one of %s", strings.Join(Locales, ", "))
	faults.Check(len(p.Links) <= maxLinks, "links", "must have at most %d items", maxLinks)
	for i, l := range p.Links {
		of := faults.Within("links[" + string(rune('0'+i%10)) + "]")
		of.Check(strings.TrimSpace(l.Label) != "" && utf8.RuneCountInString(l.Label) <= maxName, "label",
			"must have 1…%d characters", maxName)
		of.Check(isLink(l.URL), "url", "must be an https, http or mailto URL of at most %d bytes", maxURL)
	}
	p.Texts.SignIn = checkTexts(&faults, "texts.sign_in", p.Texts.SignIn)
	p.Texts.Help = checkTexts(&faults, "texts.help", p.Texts.Help)
	p.Messages.check(faults.Within("messages"))
	faults.Check(p.FailuresPerMin >= 1 && p.FailuresPerMin <= 1000, "failures_per_minute", "must lie in 1…1000")
	faults.Check(p.FailuresOfTenant >= 1 && p.FailuresOfTenant <= 100_000, "failures_of_tenant", "must lie in 1…100000")
	return faults.Err()
}

// Check reports every fault. The error is apperr.InvalidParameters, below messages.
func (m *Messages) Check() error {
	var faults apperr.Faults
	m.check(faults.Within("messages"))
	return faults.Err()
}

func (m *Messages) check(faults *apperr.Faults) {
	checkLine(faults, "sender", m.Sender, maxName)
	if m.ReplyTo != "" {
		address, err := mail.ParseAddress(m.ReplyTo)
		faults.Check(err == nil && address.Name == "" && address.Address == m.ReplyTo && len(m.ReplyTo) <= maxAddress,
			"reply_to", "must be a mail address")
	}
	checkTexts(faults, "footer", m.Footer)
	m.Recovery.check(faults.Within("recovery"))
	m.Invitation.check(faults.Within("invitation"))
	m.Verification.check(faults.Within("verification"))
	faults.Check(m.OfAddress >= 0 && m.OfAddress <= 100, "per_hour_of_address", "must lie in 0…100")
	faults.Check(m.OfTenant >= 0 && m.OfTenant <= 100_000, "per_hour", "must lie in 0…100000")
}

func (t *MessageTexts) check(faults *apperr.Faults) {
	checkTexts(faults, "words", t.Words)
	checkTexts(faults, "subject", t.Subject)
	for _, text := range t.Subject {
		checkLine(faults, "subject", text, maxSubject)
	}
}

// checkLine checks a text that becomes part of a mail's header.
func checkLine(faults *apperr.Faults, member, text string, most int) {
	faults.Check(utf8.RuneCountInString(text) <= most && !strings.ContainsFunc(text, unicode.IsControl), member,
		"must be one line of at most %d characters", most)
}

func checkTexts(faults *apperr.Faults, member string, texts map[string]string) map[string]string {
	if texts == nil {
		return map[string]string{}
	}
	for locale, text := range texts {
		faults.Check(slices.Contains(Locales, locale), member, "must have only the members %s",
			strings.Join(Locales, ", "))
		faults.Check(utf8.RuneCountInString(text) <= maxText, member, "must have texts of at most %d characters",
			maxText)
	}
	return texts
}

func checkColour(faults *apperr.Faults, member, value string, page [3]float64) {
	switch {
	case value == "":
	case !colour.MatchString(value):
		faults.Add(member, "must be a colour like #1a5fb4")
	case contrast(rgb(value), page) < minContrast:
		faults.Add(member, "must have a contrast of at least 4.5 to the page, so that people can read it")
	}
}

func isLink(text string) bool {
	if len(text) > maxURL {
		return false
	}
	if address, ok := strings.CutPrefix(text, "mailto:"); ok {
		return address != "" && !strings.ContainsFunc(address, unicode.IsSpace)
	}
	_, err := weburl.HTTP(text)
	return err == nil
}

// logoType is the content type of the logo; "" if it is none.
func (p *Profile) logoType() string {
	kind, _, ok := p.LogoImage()
	if !ok {
		return ""
	}
	return kind
}

// LogoImage returns the logo.
func (p *Profile) LogoImage() (contentType string, image []byte, ok bool) {
	head, data, found := strings.Cut(strings.TrimPrefix(p.Logo, "data:"), ";base64,")
	if !found || len(p.Logo) > maxLogo || !slices.Contains(LogoTypes, head) {
		return "", nil, false
	}
	image, err := base64.StdEncoding.DecodeString(data)
	return head, image, err == nil && len(image) > 0
}
