package feed

import (
	"slices"
	"strings"
	"sync"

	"github.com/idplatform/idplatform/pkg/bus"
	"github.com/idplatform/idplatform/pkg/condition"
	"github.com/idplatform/idplatform/services/events/internal/catalogue"
)

// Event is an event of the stream. All readers share it and must not change it.
type Event struct {
	bus.Event
	Place uint64 // its sequence number in the stream

	decode   sync.Once
	input    map[string]any
	inputErr error
}

// NewEvent makes an Event from a message. The error says why the message is not an event.
func NewEvent(place uint64, subject string, payload []byte) (*Event, error) {
	decoded, err := bus.Decode(subject, payload)
	if err != nil {
		return nil, err
	}
	return &Event{Event: decoded, Place: place}, nil
}

// Input is the event as the variable of a condition. It is decoded once for all conditions.
func (e *Event) Input() (map[string]any, error) {
	e.decode.Do(func() { e.input, e.inputErr = condition.FromJSON(e.JSON) })
	return e.input, e.inputErr
}

// Types are patterns of event types: user.created, user.*, *.deleted, or * for all. No patterns select all types.
type Types []string

// Match reports whether one of the patterns selects the type of an event, such as idp.user.created.
func (t Types) Match(eventType string) bool {
	entity, action, _ := strings.Cut(strings.TrimPrefix(eventType, "idp."), ".")
	for _, pattern := range t {
		wantEntity, wantAction, _ := strings.Cut(pattern, ".")
		ofEntity, ofAction := wantEntity == "*" || wantEntity == entity, wantAction == "*" || wantAction == action
		if pattern == "*" || ofEntity && ofAction {
			return true
		}
	}
	return len(t) == 0
}

// among returns the events whose types are selected.
func (t Types) among(events []*Event) []*Event {
	if len(t) == 0 {
		return events
	}
	var selected []*Event
	for _, e := range events {
		if t.Match(e.Type) {
			selected = append(selected, e)
		}
	}
	return selected
}

// ValidType reports whether a pattern of event types is well formed.
func ValidType(pattern string) bool {
	if pattern == "*" {
		return true
	}
	entity, action, ok := strings.Cut(pattern, ".")
	return ok && isWord(entity) && isWord(action)
}

// Exists reports whether a pattern selects a type of the catalogue.
func Exists(pattern string) bool {
	types := Types{pattern}
	return slices.ContainsFunc(catalogue.All(), func(t catalogue.Type) bool { return types.Match(t.Type) })
}

// isWord reports whether s is * or a lower-case word, as in the types of events.
func isWord(s string) bool {
	if s == "*" {
		return true
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (i == 0 || (c < '0' || c > '9') && c != '_' && c != '-') {
			return false
		}
	}
	return s != "" && len(s) <= 63
}
