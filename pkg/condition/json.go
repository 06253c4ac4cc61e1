package condition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"cel.dev/cel-go/common/types"
)

// maxText bounds the texts that a condition can use, in bytes. A call is charged after it has run, so no single call
// may take long.
const maxText = 64 << 10

// FromJSON puts these errors in the place of values that conditions cannot use: a condition that uses one is
// undecided, all others are not affected.
var (
	tooLong    = types.NewErrWithNodeID(nowhere, "a text is longer than %d bytes", maxText)
	outOfRange = types.NewErrWithNodeID(nowhere, "a number is out of range")
)

// FromJSON makes the value of a Map variable from a record. Numbers that are written as integers become 64-bit
// integers if they fit; others become doubles. Times remain strings: a condition writes timestamp(user.time_created).
// A condition that uses a text of more than 64 KiB, or a number outside a double's range, is undecided.
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

// usable converts v, in place where possible, to values that conditions can use.
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
