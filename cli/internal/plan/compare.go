package plan

import (
	"encoding/json"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Change is a member whose value the files want otherwise.
type Change struct {
	Member string `json:"member"` // delivery.url
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// differences are the members in which a record is not as wanted. What the files do not have is not looked at, except
// inside lists: those are wanted as they stand.
func differences(wanted, has map[string]any) []Change {
	var out []Change
	compare("", wanted, has, &out)
	return out
}

func compare(path string, wanted, has map[string]any, out *[]Change) {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		member := strings.TrimPrefix(path+"."+name, ".")
		want, is := wanted[name], has[name]
		inner, isObject := want.(map[string]any)
		if isObject && len(inner) > 0 {
			within, _ := is.(map[string]any)
			compare(member, inner, within, out)
			continue
		}
		if !same(want, is) {
			*out = append(*out, Change{member, is, want})
		}
	}
}

// same reports whether a value is as wanted. A value that is empty is the same as none.
func same(want, is any) bool {
	if empty(want) && empty(is) {
		return true
	}
	switch w := want.(type) {
	case Secret:
		return is == masked // it is there; nobody can see whether it is the same
	case []any:
		list, isList := is.([]any)
		return isList && slices.EqualFunc(w, list, same)
	case map[string]any: // an object in a list
		object, isObject := is.(map[string]any)
		if !isObject {
			return false
		}
		return sameMembers(w, object) && sameMembers(object, w)
	case json.Number:
		return sameNumber(w, is)
	case string:
		text, isText := is.(string)
		return isText && (w == text || sameTime(w, text))
	}
	return reflect.DeepEqual(want, is)
}

func sameMembers(a, b map[string]any) bool {
	for name, value := range a {
		if !same(value, b[name]) {
			return false
		}
	}
	return true
}

func sameNumber(want json.Number, is any) bool {
	other, isNumber := is.(json.Number)
	a, aOK := new(big.Rat).SetString(want.String())
	b, bOK := new(big.Rat).SetString(other.String())
	return isNumber && aOK && bOK && a.Cmp(b) == 0
}

// sameTime reports whether two texts are the same time: the platform answers in UTC with milliseconds, and files may
// have another zone.
func sameTime(want, is string) bool {
	stored, err := time.Parse("2006-01-02T15:04:05.000Z", is)
	if err != nil {
		return false
	}
	wanted, err := time.Parse(time.RFC3339Nano, want)
	return err == nil && wanted.Equal(stored)
}
