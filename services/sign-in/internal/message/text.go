package message

import (
	"bytes"
	"cmp"
	"crypto/rand"
	_ "embed"
	"fmt"
	"html/template"
	"math/big"
	"slices"
	"strings"
	texttemplate "text/template"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/services/sign-in/internal/settings"
)

// Text is what a mail says.
type Text struct {
	Sender  string `json:"sender" doc:"The name that the mail comes from" example:"Acme"`
	ReplyTo string `json:"reply_to" doc:"Where an answer goes; empty: to the sender's address"`
	Subject string `json:"subject" doc:"The subject" example:"Your code: BCDF-GHJK"`
	Plain   string `json:"text" doc:"What mail programs show that show no HTML"`
	HTML    string `json:"html" doc:"What the others show"`
	Lang    string `json:"lang" doc:"The language (BCP 47)" example:"en"`
}

// words are all that mails say, by language and key.
var words = map[string]map[string]string{
	"en": {
		"lang": "en", "hello": "Hello %s,", "platform": "Sign-in",
		"recovery_subject": "Your code: %s",
		"recovery_words":   "Somebody, most likely you, has asked for a new password for your account.",
		"recovery_code":    "Enter this code on the page that asks for it:",
		"recovery_ends": "It works once, within %d minutes, and only in the browser that has asked for it. " +
			"Nobody will ask you for it by phone or by mail.",
		"recovery_not_you": "If it was not you, ignore this mail. Your password stays as it is.",

		"verification_subject": "Your code: %s",
		"verification_words":   "You have asked to show that this address is yours.",
		"verification_code":    "Enter this code on your own page:",
		"verification_ends":    "It works once, within %d minutes, and only in the browser that has asked for it.",
		"verification_not_you": "If it was not you, ignore this mail. Nothing changes.",

		"linked_subject": "You can sign in in another way",
		"linked_words":   "Your account is linked to an account at %s: with that you can sign in, too.",
		"linked_button":  "See your linked accounts",
		"linked_not_you": "If it was not you, remove it there, change your password, and tell your administrator.",

		"invitation_subject": "Your account at %s", "invitation_subject_plain": "Your account",
		"invitation_words":   "You have an account. Choose a password, and you are signed in.",
		"invitation_login":   "You sign in as %s.",
		"invitation_button":  "Choose a password",
		"invitation_code":    "If that does not work, open %s and enter this code:",
		"invitation_ends":    "The link and the code work once, until %s.",
		"invitation_not_you": "If you do not know what this is about, ignore this mail: nothing happens.",
	},
	"zh": {
		"lang": "zh-Hans", "hello": "%s，您好：", "platform": "登录",
		"recovery_subject": "您的验证码：%s",
		"recovery_words":   "有人（很可能是您本人）要求为您的账号设置新密码。",
		"recovery_code":    "请在要求输入验证码的页面上输入：",
		"recovery_ends":    "验证码在 %d 分钟内有效，只能使用一次，并且只能在提出请求的浏览器中使用。不会有人通过电话或邮件向您索要验证码。",
		"recovery_not_you": "如果不是您本人操作，无需理会，您的密码不会改变。",

		"verification_subject": "您的验证码：%s",
		"verification_words":   "您要求验证此邮箱地址属于您本人。",
		"verification_code":    "请在您的个人页面上输入：",
		"verification_ends":    "验证码在 %d 分钟内有效，只能使用一次，并且只能在提出请求的浏览器中使用。",
		"verification_not_you": "如果不是您本人操作，无需理会，不会有任何改变。",

		"linked_subject": "您可以使用另一种方式登录",
		"linked_words":   "您的账号已与%s的账号关联，您也可以用它登录。",
		"linked_button":  "查看已关联的账号",
		"linked_not_you": "如果不是您本人操作，请在该页面取消关联，修改密码，并联系管理员。",

		"invitation_subject": "您在 %s 的账号", "invitation_subject_plain": "您的账号",
		"invitation_words":   "已为您开通账号。请设置密码，设置后即登录。",
		"invitation_login":   "您的登录名：%s",
		"invitation_button":  "设置密码",
		"invitation_code":    "如果无法打开，请访问 %s 并输入验证码：",
		"invitation_ends":    "链接和验证码只能使用一次，有效期至 %s。",
		"invitation_not_you": "如果您不清楚此邮件的来由，无需理会，不会有任何影响。",
	},
}

// Minutes is how long codes work.
const Minutes = 10

var (
	//go:embed mail.html
	htmlText string
	html     = template.Must(template.New("mail").Parse(htmlText))
	//go:embed mail.txt
	plainText string
	plain     = texttemplate.Must(texttemplate.New("mail").Parse(plainText))
)

// content is what the templates show.
type content struct {
	Lang, Title, Organization, Hello, Words, Login, CodeLabel, Code, Ends, NotYou, Footer string
	Link, Button, Colour                                                                  string
}

// platformColour is that of the pages' buttons.
const platformColour = "#1a56c4"

// Compose makes the text of a message, with the tenant's words in place of the platform's. Whatever a tenant or a
// person has written is text, and no HTML. link is the address of the page that the message leads to, if it does; now
// is when it leaves.
func Compose(of *settings.Settings, m Message, link string, now clock.Time) Text {
	say, ok := words[m.Locale]
	if !ok {
		say = words["en"]
	}
	text := func(of string, args ...any) string {
		if len(args) == 0 {
			return say[string(m.Kind)+"_"+of]
		}
		return fmt.Sprintf(say[string(m.Kind)+"_"+of], args...)
	}
	code := Grouped(m.Code.Reveal())
	messages := of.Messages
	own := map[Kind]settings.MessageTexts{
		Recovery: messages.Recovery, Invitation: messages.Invitation, Verification: messages.Verification,
	}[m.Kind]
	t := Text{
		Sender: cmp.Or(messages.Sender, of.Name, say["platform"]), ReplyTo: messages.ReplyTo, Lang: say["lang"],
	}
	c := content{
		Lang: t.Lang, Organization: of.Name, Code: code, NotYou: text("not_you"), Footer: messages.Footer[m.Locale],
	}
	said := ""
	switch m.Kind {
	case Linked:
		t.Subject, said = text("subject"), text("words", m.Through)
		c.Link, c.Button, c.Colour = link, text("button"), cmp.Or(of.Colour, platformColour)
	case Invitation:
		page, _, _ := strings.Cut(link, "?")
		if t.Subject = text("subject_plain"); of.Name != "" {
			t.Subject = text("subject", of.Name)
		}
		c.Login, c.Link, c.Button = text("login", m.LoginName), link, text("button")
		c.Colour = cmp.Or(of.Colour, platformColour)
		c.CodeLabel, c.Ends = text("code", page), text("ends", m.Ends.Std().UTC().Format("2006-01-02 15:04 UTC"))
	default:
		t.Subject, c.CodeLabel, c.Ends = text("subject", code), text("code"), text("ends", minutes(m.Ends.Sub(now)))
	}
	t.Subject = cmp.Or(own.Subject[m.Locale], t.Subject)
	c.Title, c.Words = t.Subject, cmp.Or(own.Words[m.Locale], said, text("words"))
	if m.Name != "" {
		c.Hello = fmt.Sprintf(say["hello"], m.Name)
	}
	var body, page bytes.Buffer
	_ = plain.Execute(&body, c) // writing to a buffer does not fail
	_ = html.Execute(&page, c)
	t.Plain, t.HTML = strings.TrimSpace(body.String())+"\n", page.String()
	return t
}

// minutes is a time in minutes as a mail says it, at least one.
func minutes(d time.Duration) int { return max(1, int(d.Round(time.Minute)/time.Minute)) }

// Alphabet has the signs of codes. They are easy to tell apart, and make no words.
const Alphabet = "BCDFGHJKMNPQRTVWXY346789"

// CodeSigns is how many signs a code has that only one browser can use, for some minutes and a few times. An invitation
// has LinkSigns: nobody can guess it, however often they try.
const (
	CodeSigns = 8
	LinkSigns = 16
)

// NewCode makes a code of signs of Alphabet.
func NewCode(signs int) string {
	code := make([]byte, signs)
	for i := range code {
		n, _ := rand.Int(rand.Reader, big.NewInt(int64(len(Alphabet)))) // never fails (crypto/rand)
		code[i] = Alphabet[n.Int64()]
	}
	return string(code)
}

// ReadCode returns a code as it was made, however a person has written it.
func ReadCode(code string) string {
	code = norm.NFKC.String(code) // letters as wide as Chinese signs are letters, too
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(Alphabet, r) {
			return r
		}
		return -1
	}, strings.ToUpper(code))
}

// Grouped is a code as people read it: in groups of four signs.
func Grouped(code string) string {
	var groups []string
	for group := range slices.Chunk([]byte(code), 4) {
		groups = append(groups, string(group))
	}
	return strings.Join(groups, "-")
}
