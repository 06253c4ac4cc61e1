package textindex

import (
	"bytes"
	"encoding/json"
)

// Strings lists the first limit string values of a JSON document, wherever they are nested, in its order. Names of members are not
// values. Of a text that is not JSON, it lists what comes before the fault.
func Strings(rawJSON []byte, limit int) []string {
	decoder := json.NewDecoder(bytes.NewReader(rawJSON))
	decoder.UseNumber() // no number is too large for it
	var found []string
	var objects []bool // for each open array or object: is it an object?
	name := false      // a string here is a member's name
	for len(found) < limit {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		switch t := token.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				objects = append(objects, t == '{')
				name = t == '{'
				continue
			}
			objects = objects[:len(objects)-1]
		case string:
			if name {
				name = false
				continue
			}
			found = append(found, t)
		}
		name = len(objects) > 0 && objects[len(objects)-1]
	}
	return found
}
