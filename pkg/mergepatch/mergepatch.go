// Package mergepatch applies JSON merge patches (RFC 7396).
package mergepatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// Into changes what v points to by a patch: null sets a member to its zero value, an object is merged, any other value
// replaces the member. The error is that of encoding/json for a value that does not fit; v then stays as it was.
func Into(v any, patch json.RawMessage) error {
	before, err := encode(v)
	if err != nil {
		return fmt.Errorf("merge patch: %w", err)
	}
	after, err := Apply(before, patch)
	if err != nil {
		return fmt.Errorf("merge patch: %w", err)
	}
	to := reflect.ValueOf(v).Elem()
	merged := reflect.New(to.Type())
	if err := json.Unmarshal(after, merged.Interface()); err != nil {
		return fmt.Errorf("merge patch: %w", err)
	}
	to.Set(merged.Elem())
	return nil
}

// Apply returns a document changed by a patch (RFC 7396 §2). It keeps the text of every value that the patch does not
// change. Libraries encode such values again, and a record would seem to change if only its escapes or the order of its
// members do.
func Apply(target, patch json.RawMessage) (json.RawMessage, error) {
	if !isObject(patch) {
		return patch, nil
	}
	merged, changes := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if isObject(target) {
		if err := json.Unmarshal(target, &merged); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal(patch, &changes); err != nil {
		return nil, err
	}
	changed := !isObject(target)
	for name, change := range changes {
		before, had := merged[name]
		if string(change) == "null" {
			delete(merged, name)
			changed = changed || had
			continue
		}
		value, err := Apply(before, change)
		if err != nil {
			return nil, err
		}
		merged[name] = value
		changed = changed || !bytes.Equal(before, value)
	}
	if !changed {
		return target, nil
	}
	return encode(merged)
}

func isObject(text json.RawMessage) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] == '{'
}

func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
