package condition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"cel.dev/cel-go/common/types"
)

// maxText bounds texts, in bytes, in which to search or which to look up: the cost is charged after a call, so that no single call may
// be able to take long.
const maxText = 64 << 10

// These stand in a record for what conditions can't use, and make undecided what uses it, and nothing else.
var (
	tooLong    = types.NewErrWithNodeID(nowhere, "a text is longer than %d bytes", maxText)
	outOfRange = types.NewErrWithNodeID(nowhere, "a number is out of range")
)

// FromJSON makes the value of a Map out of a record. Numbers written as integers are integers, exact to 64 bits; others are doubles.
// Times stay the strings they are; conditions write timestamp(user.time_created). A condition that uses a text of more than 64 KiB or a
// number beyond a double is undecided.
func FromJSON(raw []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("a condition's input: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) || object == nil {
		return nil, errors.New("a condition's input: must be one JSON object")
	}
	usable(object)
	return object, nil
}

// usable makes v, in place, what conditions can use.
func usable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			v[key] = usable(member)
		}
	case []any:
		for i, entry := range v {
			v[i] = usable(entry)
		}
	case string:
		if len(v) > maxText {
			return tooLong
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if n, err := v.Float64(); err == nil {
			return n
		}
		return outOfRange
	}
	return v
}
