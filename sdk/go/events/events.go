// Package events has the types of the platform's events, and the data of each.
package events

import (
	"encoding/json"
	"fmt"
	"strings"

	idp "github.com/idplatform/idplatform/sdk/go"
)

// Type is a type of events as subscriptions name it: without the prefix idp.
type Type string

// TypeOf returns the type of an event.
func TypeOf(event idp.Event) Type { return Type(strings.TrimPrefix(event.Type, "idp.")) }

// Unknown is the data of an event whose type this version of the SDK does not know.
type Unknown struct{ Data json.RawMessage }

// Decode returns the data of an event as a pointer to the struct of its type: *UserCreated for TypeUserCreated. It is
// *Unknown for types that a newer platform has.
func Decode(event idp.Event) (any, error) {
	makeData, known := newData[TypeOf(event)]
	if !known {
		return &Unknown{event.Data}, nil
	}
	data := makeData()
	if err := json.Unmarshal(event.Data, data); err != nil {
		return nil, fmt.Errorf("event %s: its data is not as documented: %w", event.ID, err)
	}
	return data, nil
}
