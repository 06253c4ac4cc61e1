// Package page makes the pages that people see: HTML without the tenant's own HTML, CSS or script, in English and
// Simplified Chinese, on light and on dark screens. They work without a script.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

//go:embed pages/*.html style.css script.js
var files embed.FS

var pages = template.Must(template.ParseFS(files, "pages/*.html"))

// Script is the only script.
var Script = read("script.js")

var style = read("style.css")

func read(name string) []byte {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is part of the program
	}
	return text
}

// Frame is what all pages of a tenant share.
type Frame struct {
	Base      string // /sign-in/<tenant>
	Locale    string // en or zh
	Here      string // the address of the page, for a link to it in another language; empty: there is none
	RequestID string
	settings  *settings.Settings
	signedIn  bool
	title     string
}

// New makes the frame of a page.
func New(base, locale, here, requestID string, s *settings.Settings) Frame {
	return Frame{Base: base, Locale: locale, Here: here, RequestID: requestID, settings: s}
}

// T is a text in the page's language.
func (f Frame) T(key string, args ...any) string {
	text, ok := texts[f.Locale][key]
	if !ok {
		text = texts["en"][key]
	}
	if len(args) > 0 {
		return fmt.Sprintf(text, args...)
	}
	return text
}

// Lang is the page's language (BCP 47).
func (f Frame) Lang() string {
	if f.Locale == "zh" {
		return "zh-Hans"
	}
	return "en"
}

// Title is the page's title.
func (f Frame) Title() string {
	if f.settings.Name == "" {
		return f.T(f.title)
	}
	return f.T(f.title) + " · " + f.settings.Name
}

// Name is the organization's.
func (f Frame) Name() string { return f.settings.Name }

// Links are the tenant's.
func (f Frame) Links() []settings.Link { return f.settings.Links }

// Logo is the address of the tenant's logo; empty if it has none.
func (f Frame) Logo() string {
	if f.settings.Logo == "" {
		return ""
	}
	return f.Base + "/logo?v=" + version([]byte(f.settings.Logo))
}

// Style is the address of the style sheet.
func (f Frame) Style() string { return f.Base + "/style.css?v=" + version(StyleOf(f.settings)) }

// ScriptURL is the address of the script.
func (f Frame) ScriptURL() string { return f.Base + "/script.js?v=" + version(Script) }

// SignedIn is set on pages that tell other tabs that the person has signed in.
func (f Frame) SignedIn() bool { return f.signedIn }

// own is a text of the tenant in the page's language; empty if it has none.
func (f Frame) own(of map[string]string) string {
	if text := of[f.Locale]; text != "" {
		return text
	}
	return of[f.settings.Locale]
}

// Welcome is what the tenant says above the form.
func (f Frame) Welcome() string { return f.own(f.settings.Texts.SignIn) }

// Help says whom to ask.
func (f Frame) Help() string {
	if text := f.own(f.settings.Texts.Help); text != "" {
		return text
	}
	return f.T("ask_administrator")
}

// Other is a language that the page can be read in.
type Other struct{ Lang, Label, URL string }

// Others are the other languages.
func (f Frame) Others() []Other {
	var all []Other
	for _, locale := range settings.Locales {
		if locale == f.Locale || f.Here == "" {
			continue
		}
		u, err := url.Parse(f.Here)
		if err != nil {
			continue
		}
		q := u.Query()
		q.Set("lang", locale)
		u.RawQuery = q.Encode()
		all = append(all, Other{Frame{Locale: locale}.Lang(), texts[locale]["language"], u.String()})
	}
	return all
}

// version changes with a file.
func version(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// StyleOf is the style sheet with the tenant's colours.
func StyleOf(s *settings.Settings) []byte {
	b := bytes.NewBuffer(slices.Clone(style))
	if s.Colour != "" {
		fmt.Fprintf(b, ":root{--accent:%s;--on-accent:%s}\n", s.Colour, settings.OnColour(s.Colour))
	}
	if s.ColourDark != "" {
		fmt.Fprintf(b, "@media(prefers-color-scheme:dark){:root{--accent:%s;--on-accent:%s}}\n", s.ColourDark,
			settings.OnColour(s.ColourDark))
	} else if s.Colour != "" { // a colour that suits light pages may not be readable on dark ones
		b.WriteString("@media(prefers-color-scheme:dark){:root{--accent:#8ab4ff;--on-accent:#0b1020}}\n")
	}
	return b.Bytes()
}

// Content is a page's own part.
type Content interface {
	about() (template, title string)
}

// Render makes the HTML of a page.
func Render(f Frame, c Content) ([]byte, error) {
	name, title := c.about()
	f.title = title
	leave, _ := c.(Leave)
	f.signedIn = leave.SignedIn
	var b bytes.Buffer
	err := pages.ExecuteTemplate(&b, name, struct {
		Frame
		Page Content
	}{f, c})
	return b.Bytes(), err
}

// Language picks the language of a page: the first of the wishes that the pages have. Wishes are BCP 47 tags, the best
// first.
func Language(wishes ...string) string {
	for _, wish := range wishes {
		head, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(wish)), "-")
		head, _, _ = strings.Cut(head, "_")
		if slices.Contains(settings.Locales, head) {
			return head
		}
	}
	return "en"
}

// Accepted are the languages of an Accept-Language header, the best first (RFC 9110 §12.5.4). Of equal weight, the
// earlier one is first.
func Accepted(header string) []string {
	type wish struct {
		tag string
		q   string
	}
	var wishes []wish
	for part := range strings.SplitSeq(header, ",") {
		if len(wishes) == maxWishes {
			break
		}
		tag, q, ok := strings.Cut(strings.TrimSpace(part), ";q=")
		if !ok {
			q = "1"
		}
		if q != "0" && tag != "" && tag != "*" {
			wishes = append(wishes, wish{tag, q})
		}
	}
	slices.SortStableFunc(wishes, func(a, b wish) int { return strings.Compare(b.q, a.q) })
	tags := make([]string, len(wishes))
	for i, w := range wishes {
		tags[i] = w.tag
	}
	return tags
}

const maxWishes = 16
