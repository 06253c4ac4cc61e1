package docstore

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// difference returns the members of before that after has with other values or not at all, without version and
// time_modified. Both are JSON forms of one document.
func difference(before, after []byte) map[string]json.RawMessage {
	was, err := membersOf(before)
	if err != nil {
		return nil
	}
	is, err := membersOf(after)
	if err != nil {
		return nil
	}
	changed := map[string]json.RawMessage{}
	for i, m := range was {
		if m.name == "version" || m.name == "time_modified" {
			continue
		}
		if i >= len(is) || is[i].name != m.name { // a member before this one is in only one of the two
			i = slices.IndexFunc(is, func(now member) bool { return now.name == m.name })
		}
		if i < 0 || !bytes.Equal(is[i].value, m.value) {
			changed[m.name] = m.value
		}
	}
	return changed
}

// usualMembers is how many members most records have at most.
const usualMembers = 32

type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of a JSON object. Their values are parts of the text: a decoder of a bytes.Buffer
// neither copies nor changes it.
func membersOf(object []byte) ([]member, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	members := make([]member, 0, usualMembers)
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		members = append(members, member{name, json.RawMessage(value)})
	}
	_, err := d.ReadToken()
	return members, err
}
