package federation

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/clock"
)

// casClient is this platform as a service of a CAS server, for one connection (CAS Protocol 3.0). The address that
// people come back to has the state in it: a ticket is good for that address alone.
type casClient struct {
	fields fields
	ask    caller
}

func (c *casClient) begin(r Request, _ clock.Time) (string, Kept) {
	kept := Kept{Callback: r.Callback + "?" + url.Values{"state": {r.State}}.Encode()}
	q := url.Values{"service": {kept.Callback}}
	if r.Fresh || r.MaxAge != nil {
		kept.Fresh = true
		q.Set("renew", "true")
	}
	return c.address("/login", q), kept
}

func (c *casClient) address(path string, q url.Values) string {
	return strings.TrimSuffix(c.fields.ServerURL, "/") + path + "?" + q.Encode()
}

// casAnswer is what a server says of a ticket (§2.5.2, §2.6).
type casAnswer struct {
	XMLName xml.Name `xml:"http://www.yale.edu/tp/cas serviceResponse"`
	Failure *struct {
		Code string `xml:"code,attr"`
	} `xml:"authenticationFailure"`
	Success *struct {
		User       string `xml:"user"`
		Attributes struct {
			All []struct {
				XMLName xml.Name
				Value   string `xml:",chardata"`
			} `xml:",any"`
		} `xml:"attributes"`
	} `xml:"authenticationSuccess"`
}

func (c *casClient) end(ctx context.Context, kept Kept, a Answer) (Identity, error) {
	if a.Code == "" {
		return Identity{}, refused("the answer has no ticket")
	}
	path, q := "/p3/serviceValidate", url.Values{"service": {kept.Callback}, "ticket": {a.Code}}
	if c.fields.Version == "2.0" {
		path = "/serviceValidate"
	}
	if kept.Fresh {
		q.Set("renew", "true")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.address(path, q), nil)
	if err != nil {
		return Identity{}, refused("its address is not a URL")
	}
	text, err := c.ask.read(r, "application/xml")
	if err != nil {
		return Identity{}, err
	}
	var answer casAnswer
	if err := xml.Unmarshal(text, &answer); err != nil {
		return Identity{}, refused("the answer is not that of a CAS server: %w", err)
	}
	switch {
	case answer.Failure != nil:
		return Identity{}, refused("the server refuses the ticket: %.100q", answer.Failure.Code)
	case answer.Success == nil:
		return Identity{}, refused("the answer says nothing of the ticket")
	}
	return answer.identity(a.Code)
}

// identity is who a ticket was given to. A CAS server has no other name for people than the one they sign in with.
func (a *casAnswer) identity(ticket string) (Identity, error) {
	user := strings.TrimSpace(a.Success.User)
	if n := utf8.RuneCountInString(user); n == 0 || n > maxSubject {
		return Identity{}, refused("the user of the ticket has %d characters", n)
	}
	values := map[string][]string{}
	for _, one := range a.Success.Attributes.All {
		if value := strings.TrimSpace(one.Value); len(values[one.XMLName.Local]) < maxValues {
			values[one.XMLName.Local] = append(values[one.XMLName.Local], value)
		}
	}
	first := func(names ...string) (value string) {
		for _, name := range names {
			if len(values[name]) > 0 {
				value = cmp.Or(value, values[name][0])
			}
		}
		return value
	}
	claims := map[string]any{}
	for name, all := range values {
		if claims[name] = any(all); len(all) == 1 {
			claims[name] = all[0]
		}
	}
	claims["sub"] = user
	text, err := json.Marshal(claims)
	return Identity{
		Subject: user, Username: user, DisplayName: first("displayName", "cn", "name"), Email: first("mail", "email"),
		Session: ticket, Claims: text,
	}, err
}

// TicketOf is the ticket whose session has ended, of a logout request that a CAS server sends (§2.3.3). The error is
// ErrRefused.
func TicketOf(request string) (string, error) {
	var r struct {
		XMLName xml.Name `xml:"urn:oasis:names:tc:SAML:2.0:protocol LogoutRequest"`
		Ticket  string   `xml:"urn:oasis:names:tc:SAML:2.0:protocol SessionIndex"`
	}
	if err := xml.Unmarshal([]byte(request), &r); err != nil {
		return "", refused("it is no logout request: %w", err)
	}
	if r.Ticket = strings.TrimSpace(r.Ticket); r.Ticket == "" {
		return "", refused("the logout request has no ticket")
	}
	return r.Ticket, nil
}
