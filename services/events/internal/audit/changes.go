package audit

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/idplatform/idplatform/pkg/jsonobject"
)

// Change is a member's value before and after.
type Change struct {
	Member string         `json:"member" doc:"Its name" example:"email"`
	Before jsontext.Value `json:"before" doc:"What it was; null: it was not there" example:"\"\""`
	After  jsontext.Value `json:"after" doc:"What it is; null: it is gone" example:"\"li.wei@acme.test\""`
}

const maxValue = 8 << 10 // in bytes; a larger value is replaced by its size

// changesOf lists the changes that the data of an event tell, in the order of members. It leaves out members that have
// the same value before and after, or are empty both times. There are no changes if the data are not a JSON object.
func changesOf(action string, data []byte) []Change {
	var record, previous []byte
	each(data, func(name string, value []byte) {
		switch name {
		case "record":
			record = value
		case "previous":
			previous = value
		}
	})
	list := make([]Change, 0, 16)
	add := func(name string, before, after []byte) {
		same := bytes.Equal(before, after) || isEmpty(before) && isEmpty(after)
		if !same && !follows(name) {
			list = append(list, Change{name, bounded(before), bounded(after)})
		}
	}
	if action == "updated" && previous == nil && isFirst(record) {
		action = "created" // a protocol is made by what changes it
	}
	switch action {
	case "created":
		each(record, func(name string, value []byte) { add(name, nil, value) })
	case "deleted":
		each(record, func(name string, value []byte) { add(name, value, nil) })
	default:
		after := map[string][]byte{}
		each(record, func(name string, value []byte) { after[name] = value })
		each(previous, func(name string, value []byte) { add(name, value, after[name]) })
	}
	slices.SortFunc(list, func(a, b Change) int { return strings.Compare(a.Member, b.Member) })
	return list
}

// each calls f for the members of a record. It ends at the first syntax error.
func each(record []byte, f func(name string, value []byte)) { _ = jsonobject.Each(record, f) }

// isFirst reports whether a record has its first version.
func isFirst(record []byte) (first bool) {
	each(record, func(name string, value []byte) { first = first || name == "version" && string(value) == "1" })
	return first
}

// follows reports whether a member is one that every record has and that follows from the change itself.
func follows(member string) bool {
	switch member {
	case "id", "tenant_id", "version", "time_created", "time_modified":
		return true
	}
	return false
}

// isEmpty reports whether a JSON value is a zero value.
func isEmpty(value []byte) bool {
	switch string(value) {
	case "", "null", `""`, "{}", "[]":
		return true
	}
	return false
}

var null = jsontext.Value("null")

// bounded replaces a large value by its size, and a missing one by null.
func bounded(value []byte) jsontext.Value {
	if value == nil {
		return null
	}
	if len(value) > maxValue {
		return jsontext.Value(`"(` + strconv.Itoa(len(value)) + ` bytes)"`)
	}
	return value
}

func appendChanges(b []byte, list []Change) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"member":`...)
		b, _ = jsontext.AppendQuote(b, list[i].Member) // invalid UTF-8 is replaced, which is all that can fail
		b = append(append(b, `,"before":`...), list[i].Before...)
		b = append(append(b, `,"after":`...), list[i].After...)
		b = append(b, '}')
	}
	return append(b, ']')
}
