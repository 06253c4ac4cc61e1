package docstore

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/idplatform/idplatform/pkg/jsonobject"
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

// membersOf returns the members of a JSON object. Their values are parts of the text.
func membersOf(object []byte) ([]member, error) {
	list := make([]member, 0, usualMembers)
	err := jsonobject.Each(object, func(name string, value []byte) { list = append(list, member{name, value}) })
	return list, err
}
