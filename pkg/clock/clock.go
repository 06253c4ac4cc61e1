// Package clock is the only source of time: services take a Clock, so that tests own it.
package clock

import (
	"fmt"
	"time"
)

// Clock tells the time. Implementations are safe for concurrent use.
type Clock interface {
	Now() Time
}

// System is the machine's clock.
var System Clock = system{}

type system struct{}

func (system) Now() Time { return Of(time.Now()) }

// Time is a moment in UTC, exact to the millisecond, the precision that every store keeps. The zero Time
// means "never" or "not set"; in JSON it is null, every other one RFC 3339 with three decimals.
type Time struct{ t time.Time }

// Layout is the form of every time in requests' answers, events and stored documents.
const Layout = "2006-01-02T15:04:05.000Z"

// Of cuts t to the millisecond. A zero t gives the zero Time.
func Of(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Millisecond)}
}

// FromMillis is the inverse of Millis.
func FromMillis(ms int64) Time { return Time{time.UnixMilli(ms).UTC()} }

// Parse reads RFC 3339 with any offset, or a bare date (midnight UTC). In UTC too the year must lie in 1…9999: what is stored must be
// readable again, and an offset can lead out of what RFC 3339 can write.
func Parse(s string) (Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil && t.UTC().Year() >= 1 && t.UTC().Year() <= 9999 {
			return Of(t), nil
		}
	}
	return Time{}, fmt.Errorf("must be an RFC 3339 time or a date like 2026-01-31")
}

// Millis counts milliseconds since 1970-01-01T00:00:00Z.
func (t Time) Millis() int64 { return t.t.UnixMilli() }

// IsZero reports whether t is not set.
func (t Time) IsZero() bool { return t.t.IsZero() }

// Before reports whether t is earlier than u.
func (t Time) Before(u Time) bool { return t.t.Before(u.t) }

// After reports whether t is later than u.
func (t Time) After(u Time) bool { return t.t.After(u.t) }

// Add moves t by d, which counts in whole milliseconds.
func (t Time) Add(d time.Duration) Time { return Of(t.t.Add(d)) }

// Sub is the time that passed from u to t.
func (t Time) Sub(u Time) time.Duration { return t.t.Sub(u.t) }

// Std gives the standard library's form.
func (t Time) Std() time.Time { return t.t }

// String is the JSON form without quotes; empty for the zero Time.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return t.t.Format(Layout)
}

// MarshalJSON writes null or RFC 3339 with milliseconds.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	b := make([]byte, 0, len(Layout)+2)
	b = append(b, '"')
	b = t.t.AppendFormat(b, Layout)
	return append(b, '"'), nil
}

// UnmarshalJSON reads what MarshalJSON writes, and any other RFC 3339 time.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Time{}
		return nil
	}
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return fmt.Errorf("a time must be a string")
	}
	parsed, err := Parse(string(b[1 : len(b)-1]))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}
