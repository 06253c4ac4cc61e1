package textindex

import (
	"bytes"
	"encoding/json"
)

// Strings returns the first limit string values of a JSON document, at any depth, in the order of the document. The
// names of members are not values. If the document is not valid JSON, it returns the values before the fault.
func Strings(rawJSON []byte, limit int) []string {
	decoder := json.NewDecoder(bytes.NewReader(rawJSON))
	decoder.UseNumber() // so that no number is too large
	var found []string
	var objects []bool // one entry for each open array (false) or object (true)
	name := false      // the next string is a member's name
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
