package stream

import (
	"errors"
	"fmt"
	"strings"

	"github.com/idplatform/idplatform/pkg/bus"
)

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

func (t Types) check() error {
	for _, pattern := range t {
		if !ValidType(pattern) {
			return fmt.Errorf("%q selects no events", pattern)
		}
	}
	if len(t) == 0 {
		return errors.New("no type of events")
	}
	return nil
}

// subjects are those of the events whose types are selected, of all tenants.
func (t Types) subjects() []string {
	subjects := make([]string, len(t))
	for i, pattern := range t {
		if subjects[i] = bus.EventsPrefix + "*." + pattern; pattern == "*" {
			subjects[i] = bus.EventsPrefix + ">"
		}
	}
	return subjects
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
