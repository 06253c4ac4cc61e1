package message

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"strings"
	texttemplate "text/template"

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
	},
	"zh": {
		"lang": "zh-Hans", "hello": "%s，您好：", "platform": "登录",
		"recovery_subject": "您的验证码：%s",
		"recovery_words":   "有人（很可能是您本人）要求为您的账号设置新密码。",
		"recovery_code":    "请在要求输入验证码的页面上输入：",
		"recovery_ends":    "验证码在 %d 分钟内有效，只能使用一次，并且只能在提出请求的浏览器中使用。不会有人通过电话或邮件向您索要验证码。",
		"recovery_not_you": "如果不是您本人操作，无需理会，您的密码不会改变。",
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
	Lang, Title, Organization, Hello, Words, CodeLabel, Code, Ends, NotYou, Footer string
}

// Compose makes the text of a message, with the tenant's words in place of the platform's. Whatever a tenant or a
// person has written is text, and no HTML.
func Compose(of *settings.Settings, m Message) Text {
	say, ok := words[m.Locale]
	if !ok {
		say = words["en"]
	}
	key := func(of string) string { return string(m.Kind) + "_" + of }
	code := Grouped(m.Code.Reveal())
	own := of.Messages
	t := Text{
		Sender: cmp.Or(own.Sender, of.Name, say["platform"]), ReplyTo: own.ReplyTo, Lang: say["lang"],
		Subject: cmp.Or(own.Recovery.Subject[m.Locale], fmt.Sprintf(say[key("subject")], code)),
	}
	c := content{
		Lang: t.Lang, Title: t.Subject, Organization: of.Name, Code: code,
		Words:     cmp.Or(own.Recovery.Words[m.Locale], say[key("words")]),
		CodeLabel: say[key("code")], Ends: fmt.Sprintf(say[key("ends")], Minutes), NotYou: say[key("not_you")],
		Footer: own.Footer[m.Locale],
	}
	if m.Name != "" {
		c.Hello = fmt.Sprintf(say["hello"], m.Name)
	}
	var text, page bytes.Buffer
	_ = plain.Execute(&text, c) // writing to a buffer does not fail
	_ = html.Execute(&page, c)
	t.Plain, t.HTML = strings.TrimSpace(text.String())+"\n", page.String()
	return t
}

// Alphabet has the signs of codes. They are easy to tell apart, and make no words.
const Alphabet = "BCDFGHJKMNPQRTVWXY346789"

// CodeSigns is how many signs a code has.
const CodeSigns = 8

// Grouped is a code as people read it.
func Grouped(code string) string {
	if len(code) != CodeSigns {
		return code
	}
	return code[:CodeSigns/2] + "-" + code[CodeSigns/2:]
}
