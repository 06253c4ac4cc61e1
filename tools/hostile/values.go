package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Marks stand in what is sent, so that an answer that has one shows where it comes from.
const (
	refusedMark = "hzqmark" // in hostile values: an answer that refuses a request must not repeat it
	secretMark  = "hzsmark" // in secrets: no answer at all may have it
	victimMark  = "hzvmark" // in names of the other tenant's records
)

// maker makes the values of one request.
type maker struct {
	*attack
	*rand.Rand
	number int64
}

func (m *maker) mark() string   { return fmt.Sprintf("%s%dx", refusedMark, m.number) }
func (m *maker) secret() string { return fmt.Sprintf("A1.%s%dx", secretMark, m.number) }

// texts are hostile where some program takes a text for something else. %s is the mark.
var texts = []string{
	"", " ", "%s", "%s\x00nul", "%s\r\nX-Injected: 1", "%s\u202egnp.exe", "\ufeff%s", "%s\ud7ff\ue000\uffff",
	"' OR 1=1 -- %s", "%s'); DROP TABLE users; --", `{"$ne": "%s"}`, "$where: %s", "%s${jndi:ldap://127.0.0.1:9/a}",
	"{{%s}}", "<script>alert('%s')</script>", "javascript:alert('%s')", "../../../../etc/passwd?%s", "..\\..\\%s",
	"/files/../%s", "%%2e%%2e/%s", "%s;id", "`id %s`", "$(id %s)", "| id %s", "*)(uid=*%s", "%s*", "%%s%%n%s", "-1 %s",
	"http://127.0.0.1:9/%s", "http://169.254.169.254/%s", "http://[::1]:9/%s", "file:///etc/passwd?%s",
	"gopher://127.0.0.1:9/%s",
	"0x10%s", "1e400", "NaN", "true", "null", "2026-02-30T25:61:00Z", "0001-01-01T00:00:00.000Z",
	"9999999999999999999999",
	"-9223372036854775809", "٣%s", "ﷺ%s", "a\u0301\u0327%s", "😀%s", "İi%s", "%s\u0000", "[(a+)+]+$%s",
	"(a|aa)+$%s", `\Q%s`,
	"request.x.y.z(%s)", "size([1,2,3].map(x,x).filter(y,y>0))>0 && '%s'!=''", "* * * * * %s",
	"*/0 * * * *", "@every 1ns",
	"while(true){}//%s", "idp.>%s", "*.*.%s", "__proto__", "constructor%s", "acme,%s", victims,
}

func (m *maker) text() string {
	t := texts[m.IntN(len(texts))]
	if strings.Contains(t, "%") {
		t = fmt.Sprintf(strings.Replace(t, "%s%n", "%%s%%n", 1), m.mark())
	}
	if m.IntN(200) == 0 {
		t += strings.Repeat("a"+m.mark(), 1<<m.IntN(15))
	}
	return t
}

var numbers = []any{
	0, -1, 1, 2, 201, 1000, 1001, json.Number("1e999"), json.Number("-0"), json.Number("9007199254740993"),
	json.Number("9223372036854775808"), json.Number("0.1"), json.Number("1e-400"), json.Number("1.0"), 2147483648,
}

// value is a hostile JSON value.
func (m *maker) value() any {
	switch m.IntN(12) {
	case 0, 1:
		return numbers[m.IntN(len(numbers))]
	case 2:
		return nil
	case 3:
		return m.IntN(2) == 0
	case 4:
		return map[string]any{m.name(): m.text()}
	case 5:
		return []any{m.text(), nil, 7, []any{}, map[string]any{}}
	case 6:
		return m.deep()
	case 7:
		return m.id()
	case 8:
		return slices.Repeat([]any{m.id()}, 1<<m.IntN(11))
	}
	return m.text()
}

var members = []string{
	"", "id", "tenant_id", "__proto__", "$ref", "$ne", "a.b", "a/b", "~1", "ü", "version", "scopes",
}

func (m *maker) name() string {
	return members[m.IntN(len(members))]
}

// deep is nested more than a reader should follow.
func (m *maker) deep() any {
	depth := 1 << m.IntN(13)
	if m.IntN(2) == 0 {
		return json.RawMessage(strings.Repeat("[", depth) + strings.Repeat("]", depth))
	}
	return json.RawMessage(strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth))
}

// id is one of a record: of the attacker's, of the other tenant's, or of none.
func (m *maker) id() string {
	if n := m.IntN(10); n < 5 && len(m.planted) > 0 {
		return m.planted[m.IntN(len(m.planted))].id
	} else if n < 9 {
		return strconv.Itoa(1<<20 + 1 + m.IntN(200))
	}
	return []string{"0", "-1", "01", "1.0", "9007199254740993", "18446744073709551616", "1e3", "null", "١"}[m.IntN(9)]
}

// idBelow is the id of a record below a path, of the attacker's if there is one, or sometimes of the other tenant's.
func (m *maker) idBelow(path string) string {
	if m.IntN(4) == 0 {
		for _, i := range m.Perm(len(m.planted)) {
			if m.planted[i].path == path {
				return m.planted[i].id
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if all := m.own[path]; len(all) > 0 {
		return all[m.IntN(len(all))]
	}
	return m.id()
}

// idOf is the id of a record to which a member refers by its name: user_id, node_ids, parent_id.
func (m *maker) idOf(member string) string {
	if m.IntN(5) == 0 {
		return m.id()
	}
	noun, _, _ := strings.Cut(member, "_id")
	if kind := refers[noun]; kind != "" {
		return m.idBelow(kind)
	}
	return m.id()
}

// refers says where the records are to which members refer.
var refers = map[string]string{
	"user": "/v1/users", "identity": "/v1/users", "application": "/v1/applications", "app": "/v1/applications",
	"node": "/v1/tree-nodes", "parent": "/v1/tree-nodes",
	"connection": "/v1/idp/connections", "config": "/v1/idp/connections",
	"idp_config": "/v1/idp/connections", "function": "/v1/functions", "resource": "/v1/resources",
	"unit":     "/v1/auth-units",
	"template": "/v1/auth-templates", "subscription": "/v1/event-subscriptions", "set": "/v1/resource-sets",
}

var isSecret = regexp.MustCompile(`(?i)(password|secret|callback_token|_key|id_number)$`)

// fill makes a value that fits a schema, for operations without an example.
func (m *maker) fill(s *schema, depth int) any {
	s = m.resolve(s)
	if s == nil || depth > 6 {
		return m.text()
	}
	switch {
	case len(s.Examples) > 0:
		return atHome(s.Examples[m.IntN(len(s.Examples))])
	case len(s.Enum) > 0:
		return s.Enum[m.IntN(len(s.Enum))]
	case s.Properties != nil:
		made := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[name]
			if made[name] = m.fill(p, depth+1); isSecret.MatchString(name) {
				made[name] = m.secret()
			}
		}
		return made
	case s.Items != nil:
		return []any{m.fill(s.Items, depth+1)}
	}
	switch kind := fmt.Sprint(s.Type); { // one type, or a list
	case strings.Contains(kind, "boolean"):
		return m.IntN(2) == 0
	case strings.Contains(kind, "integer"):
		return m.IntN(4)
	}
	return m.value()
}

// spoil returns a copy of a value with hostile values in some places. Ids are those of records, and secrets have marks.
func (m *maker) spoil(v any, s *schema, name string, chance int) any {
	s = m.resolve(s)
	if isSecret.MatchString(name) || s != nil && s.WriteOnly && s.Properties == nil {
		if _, ok := v.(string); ok || v == nil {
			return m.secret()
		}
	}
	if chance > 0 && m.IntN(chance) == 0 {
		return m.value()
	}
	switch v := v.(type) {
	case map[string]any:
		made := map[string]any{}
		for _, member := range slices.Sorted(maps.Keys(v)) {
			value := v[member]
			if chance > 0 && m.IntN(2*chance) == 0 {
				continue
			}
			var of *schema
			if s != nil {
				of = s.Properties[member]
			}
			made[member] = m.spoil(value, of, member, chance)
		}
		if chance > 0 && s != nil && m.IntN(chance) == 0 { // a member that the example lacks
			if names := slices.Sorted(maps.Keys(s.Properties)); len(names) > 0 {
				member := names[m.IntN(len(names))]
				made[member] = m.spoil(m.fill(s.Properties[member], 1), s.Properties[member], member, chance)
			}
		}
		if chance > 0 && m.IntN(4*chance) == 0 {
			made[m.name()] = m.text()
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i := range v {
			made[i] = m.spoil(v[i], nil, name, chance)
		}
		return made
	case string:
		if v == "" && m.IntN(2) == 0 { // such as the parent of a root
			return v
		}
		if strings.HasSuffix(name, "_id") || name == "id" || name == "ids" || strings.HasSuffix(name, "_ids") {
			return m.idOf(name)
		}
		if m.IntN(5) > 0 && unique.MatchString(name) {
			return other(name, v, m.number)
		}
	case float64:
		if strings.HasSuffix(name, "_id") {
			return json.Number(m.idOf(name))
		}
	}
	return v
}

var unique = regexp.MustCompile(`^(username|name|code|key|email|mobile|employee_number|account)$`)

// other is a value of a member that nobody else has.
func other(member, value string, n int64) string {
	switch member {
	case "email":
		return fmt.Sprintf("u%d@acme.test", n)
	case "mobile":
		return fmt.Sprintf("+86138%08d", n)
	}
	return fmt.Sprintf("%s-%d", value, n)
}

// encode is the JSON of a value, sometimes broken.
func (m *maker) encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // a number that is none
		text = []byte(`{"a":1e}`)
	}
	switch m.IntN(80) {
	case 0:
		return text[:m.IntN(len(text)+1)]
	case 1:
		return append(text, text...)
	case 2:
		return []byte(strings.Replace(string(text), `"`, "\"\xff\xfe", 1))
	case 3:
		return []byte(strings.Replace(string(text), `":"`, `":"\ud800`, 1))
	case 4:
		return []byte(strings.Replace(string(text), "{", `{"name":"a","name":"b",`, 1))
	case 5:
		return append([]byte("\xef\xbb\xbf"), text...)
	case 6:
		if m.IntN(10) == 0 {
			return []byte(strings.Repeat(" ", 1<<20) + string(text))
		}
	}
	return text
}
