package cas

import (
	"encoding/json"
	"encoding/xml"
	"strconv"
	"strings"
)

// plain is the answer of CAS 1.0 (§2.4.2).
func plain(r result) []byte {
	if r.ticket == nil {
		return []byte("no\n\n")
	}
	return []byte("yes\n" + strings.NewReplacer("\r", " ", "\n", " ").Replace(r.ticket.User) + "\n")
}

// member is an attribute of the answer: its name and its text, flag or list.
type member struct {
	name  string
	value any
}

// members lists the attributes in the order of the schema (Appendix A): those of CAS first.
func (a *Attributes) members() []member {
	all := []member{
		{"authenticationDate", a.AuthTime.String()},
		{"longTermAuthenticationRequestTokenUsed", false},
		{"isFromNewLogin", a.FromNewLogin},
	}
	if len(a.Groups) > 0 {
		all = append(all, member{"memberOf", a.Groups})
	}
	for _, m := range []member{
		{"user_id", a.UserID}, {"username", a.Username}, {"display_name", a.DisplayName}, {"email", a.Email},
		{"employee_number", a.EmployeeNumber},
	} {
		if m.value != "" {
			all = append(all, m)
		}
	}
	return all
}

// element is an element without a namespace declaration of its own: clients look for the prefix.
type element struct {
	XMLName  xml.Name
	Space    string    `xml:"xmlns:cas,attr,omitempty"`
	Code     string    `xml:"code,attr,omitempty"`
	Text     string    `xml:",chardata"`
	Children []element `xml:",any"`
}

func named(name, text string, children ...element) element {
	return element{XMLName: xml.Name{Local: "cas:" + name}, Text: text, Children: children}
}

// asXML is the answer of CAS 2.0 and 3.0 (Appendix A).
func asXML(version Version, r result) []byte {
	inner := named("authenticationFailure", descriptions[r.code])
	inner.Code = r.code
	if r.ticket != nil {
		inner = named("authenticationSuccess", "", named("user", r.ticket.User))
		if version == V3 {
			inner.Children = append(inner.Children, named("attributes", "", r.ticket.Attributes.elements()...))
		}
	}
	whole := named("serviceResponse", "", inner)
	whole.Space = "http://www.yale.edu/tp/cas"
	body, err := xml.Marshal(whole)
	if err != nil {
		panic(err) // only types that cannot be marshalled fail
	}
	return body
}

func (a *Attributes) elements() []element {
	var all []element
	for _, m := range a.members() {
		switch value := m.value.(type) {
		case string:
			all = append(all, named(m.name, value))
		case bool:
			all = append(all, named(m.name, strconv.FormatBool(value)))
		case []string:
			for _, text := range value {
				all = append(all, named(m.name, text))
			}
		}
	}
	return all
}

type success struct {
	User       string         `json:"user"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

type failure struct {
	Code        string `json:"code"`
	Description string `json:"description"`
}

// asJSON is the same in JSON (§2.5.1, format).
func asJSON(version Version, r result) []byte {
	var whole struct {
		Response struct {
			Success *success `json:"authenticationSuccess,omitempty"`
			Failure *failure `json:"authenticationFailure,omitempty"`
		} `json:"serviceResponse"`
	}
	if r.ticket == nil {
		whole.Response.Failure = &failure{r.code, descriptions[r.code]}
	} else {
		whole.Response.Success = &success{User: r.ticket.User}
		if version == V3 {
			whole.Response.Success.Attributes = map[string]any{}
			for _, m := range r.ticket.Attributes.members() {
				whole.Response.Success.Attributes[m.name] = m.value
			}
		}
	}
	body, err := json.Marshal(whole)
	if err != nil {
		panic(err) // only types that cannot be marshalled fail
	}
	return body
}
